"""What the shipped kernels compile to. Slow (a minute and a half on two cores): a hundred binaries are made.

The compiler runs in processes of its own, since kernels that were made for the interpreter cannot be compiled.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton

HERE = Path(__file__).parent
RECORDED = HERE / f"facts-{triton.__version__}.json"
COMPILED = """
import json
from kernels.facts import rows, shipped
if __name__ == "__main__":
    print(json.dumps(rows([one for one in shipped() if {chosen}])))
"""
# Every kernel and card; both halves at the two head dimensions that matter most, one of them at all others.
CHOSEN = (
    "'float32' not in str(one[3]) and (one[2] in (64, 128) or 'bfloat16' in str(one[3]) and one[2] not in (80, 96))"
)
PINNED = ("registers", "spill_stores", "spill_loads", "hmma", "hgmma", "shared_bytes")


def compiled(folder, chosen):
    script = folder / "compiled.py"
    script.write_text(COMPILED.format(chosen=chosen))
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    variables |= {"TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=variables, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("facts"), CHOSEN)


def name(row):
    return f"{row['kernel']} {row['arch']} D {row['head_dim']} {row['dtype']} {'causal' if row['causal'] else 'full'}"


def those(rows, wrong):
    return [(name(row), row) for row in rows if wrong(row)]


def test_every_kernel_is_there_for_every_card(rows):
    everywhere = {
        (kernel, arch) for kernel in ("forward", "queries", "keys", "decode") for arch in ("sm_80", "sm_86", "sm_90")
    }
    assert {(row["kernel"], row["arch"]) for row in rows} == everywhere | {
        ("hopper", "sm_90"),
        ("specialised", "sm_90"),
    }


def test_hoppers_kernel_copies_by_the_accelerator_and_specialises_warps_where_it_is_asked_to(rows):
    hoppers = [row for row in rows if row["kernel"] in ("hopper", "specialised")]
    assert hoppers and not those(hoppers, lambda row: row["tma"] == 0)
    assert not those(hoppers, lambda row: (row["setmaxreg"] > 0) != (row["kernel"] == "specialised"))


def test_no_register_is_spilled(rows):
    assert not those(rows, lambda row: row["spill_stores"] or row["spill_loads"])


def test_shared_memory_is_within_the_cards_limit(rows):
    assert not those(rows, lambda row: row["shared_bytes"] > row["shared_limit"])


def test_tensor_cores_are_used(rows):
    prefill = [row for row in rows if row["kernel"] != "decode"]
    wide = [row for row in prefill if row["arch"] == "sm_90" and row["head_dim"] < 256]
    assert not those(wide, lambda row: row["hgmma"] == 0)
    assert not those(rows, lambda row: row["hmma"] + row["hgmma"] == 0)  # small tiles fill no wider instruction


def test_the_assembler_serialises_no_product(rows):
    assert not those(rows, lambda row: row["notes"])


def test_the_facts_are_those_recorded(rows):
    """A change is shown, old beside new; to accept it, delete the file and run this test once more."""
    found = {name(row): {fact: row[fact] for fact in PINNED} for row in rows}
    if not RECORDED.exists():
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
        pytest.fail(f"{RECORDED.name} was not there and has been written; look at it, and commit it")
    recorded = json.loads(RECORDED.read_text())
    changed = {
        key: (recorded.get(key), found.get(key)) for key in {*recorded, *found} if recorded.get(key) != found.get(key)
    }
    assert not changed, "\n".join(f"{key}: {old} → {new}" for key, (old, new) in sorted(changed.items()))


def test_float32_fits_every_card_too(tmp_path):
    """It uses no tensor cores, which would round it."""
    found = compiled(tmp_path, "'float32' in str(one[3]) and one[2] in (64, 256) and one[4] is False")
    assert not those(found, lambda row: row["shared_bytes"] > row["shared_limit"] or row["hmma"] + row["hgmma"])
