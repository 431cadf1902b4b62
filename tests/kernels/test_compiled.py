"""What the compiler makes of small kernels, on cards that are not there.

This process interprets kernels, so that they are compiled in another, which `there` runs functions in.
"""

import shutil
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest
import small_kernels
import torch
from small_kernels import (
    compiled,
    copy,
    costs_of,
    described,
    exponentials,
    facts_of,
    identity,
    matmul,
    meta,
    product,
    specialised,
)
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from kernels.check.compiled import SHARED_LIMIT, compile_only
from kernels.check.sass import hot_loops

USUAL = {"num_warps": 8, "num_stages": 2}
SPILLING = {"BLOCK_N": 256, "num_warps": 4}  # 256 sums a thread, of 255 registers


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with compiling_process(Path(__file__).parent, tmp_path_factory.mktemp("cache")) as there:
        yield there


@contextmanager
def compiling_process(folder, cache):
    """Its small_kernels come from `folder`, and its binaries go to `cache`."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("TRITON_INTERPRET", raising=False)
            patch.setenv("TRITON_CACHE_DIR", str(cache))
            patch.syspath_prepend(str(folder))
            pool.submit(int).result()  # it has started
        yield lambda function, *args, **options: pool.submit(function, *args, **options).result()


@pytest.mark.parametrize(
    ("sm", "unit"), [(80, "hmma"), (86, "hmma"), (89, "hmma"), (90, "hgmma"), (100, "utcmma"), (120, "hmma")]
)
def test_a_product_runs_on_the_tensor_cores_of_every_card(there, sm, unit):
    seen = there(facts_of, sm, matmul, **USUAL)
    assert [other for other in ("hmma", "hgmma", "utcmma") if seen[other]] == [unit]
    assert seen["spill_stores"] == seen["spill_loads"] == 0 and seen["notes"] == []
    assert 64 <= seen["registers"] <= 255 and 0 < seen["shared_bytes"] <= seen["shared_limit"] == SHARED_LIMIT[sm]


def test_a_copy_needs_next_to_nothing(there):
    seen = there(facts_of, 90, copy)
    assert 0 < seen["registers"] <= 32 and 0 < seen["instructions"] < 100
    assert not any(seen[fact] for fact in ("hmma", "hgmma", "tma", "setmaxreg", "shared_bytes", "spill_stores"))


def test_a_tile_too_large_for_the_registers_spills(there):
    seen = there(facts_of, 90, matmul, **SPILLING)
    assert seen["registers"] == 255 and seen["spill_stores"] > 50 and seen["spill_loads"] > 50


def test_a_pipeline_too_deep_for_a_card_exceeds_its_shared_memory(there):
    """Five stages keep four pairs of 16 KB tiles."""
    small, large = (there(facts_of, sm, matmul, num_warps=8, num_stages=5) for sm in (86, 80))
    assert small["shared_bytes"] == large["shared_bytes"] == 128 * 1024
    assert small["shared_bytes"] > small["shared_limit"] and large["shared_bytes"] <= large["shared_limit"]


def test_products_that_the_assembler_makes_wait_for_each_other_are_noted(there):
    assert there(facts_of, 90, matmul, **SPILLING)["notes"] == ["C7511"]


def test_descriptors_use_the_copy_engine_where_there_is_one(there):
    assert there(facts_of, 90, described)["tma"] > 0 and there(facts_of, 80, described)["tma"] == 0


@pytest.mark.parametrize("asked", [True, False])
def test_a_specialised_loop_moves_registers_between_its_warps(there, asked):
    assert (there(facts_of, 90, specialised, asked)["setmaxreg"] > 0) == asked


def multiples_of_16(*args):
    """The arguments of the copy of which the compiler knows it, and those whose value it knows."""
    source = compiled(90, copy, *args).src
    return [i for (i,), known in source.attrs.items() if known], [i for (i,) in source.constants]


@pytest.mark.parametrize(("n", "known", "constant"), [(1024, [0, 1, 2], [3]), (1000, [0, 1], [3]), (1, [0, 1], [2, 3])])
def test_what_is_compiled_depends_on_the_sizes_as_in_a_launch(there, n, known, constant):
    assert there(multiples_of_16, None, n) == (known, constant)


def skewed(device):
    """A copy from the second element on, which is not aligned."""
    return multiples_of_16(torch.empty(1025, dtype=torch.float16, device=device)[1:], 1024)


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_what_is_compiled_depends_on_the_addresses_as_in_a_launch(there, device):
    assert there(skewed, device) == ([1, 2], [3])


def test_the_same_sources_give_the_same_bytes_in_another_process_and_folder(there, tmp_path):
    shutil.copy(small_kernels.__file__, tmp_path)
    *mine, here = there(identity, 90, matmul, **USUAL)
    with compiling_process(tmp_path, tmp_path / "cache") as elsewhere:
        *theirs, there_too = elsewhere(identity, 90, matmul, **USUAL)
    assert mine == theirs and Path(here).parent != Path(there_too).parent == tmp_path


def nested():
    with compile_only(90) as outer:
        copy()
        with compile_only(80) as inner:
            copy()
        copy()
    return [[(name, kernel.metadata.target.arch) for name, kernel in kernels] for kernels in (outer, inner)]


def test_one_inside_another_compiles_for_its_own_card_into_its_own_list(there):
    assert there(nested) == [[("copy_kernel", 90)] * 2, [("copy_kernel", 80)]]


def state():
    return driver._active, JITFunction.run, small_kernels.triton.knobs.compilation.disable_line_info


def after(act):
    """Is Triton as it was, after an act in a compile_only? And what did the act raise?"""
    before, raised = state(), None
    try:
        with compile_only(90):
            act()
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
    return state() == before, raised


def fail():
    with compile_only(80):
        raise KeyError("mine")


def miscompile():
    small_kernels.copy_kernel[(1,)](meta(4), meta(4), 4, BLOCK=3)


def autotune():
    small_kernels.tuned_kernel[(4,)](meta(1024), meta(1024), 1024)


def test_triton_is_afterwards_as_it_was(there):
    assert there(after, copy) == (True, None)
    assert there(after, fail) == (True, "KeyError: 'mine'")
    same, raised = there(after, miscompile)
    assert same and raised.startswith("CompilationError") and "power of 2" in raised
    same, raised = there(after, autotune)
    assert same and "cannot time its configurations" in raised


def copied():
    x = torch.ones(1024)
    with compile_only(90):
        small_kernels.copy_kernel[(4,)](x, y := torch.zeros(1024), 1024, BLOCK=256)
    return y.sum().item()


def test_nothing_is_launched(there):
    assert there(copied) == 0


def test_an_unknown_card_is_refused(there):
    with pytest.raises(ValueError, match="sm is 75; known are 80, 86, 89, 90, 100, 120"):
        there(facts_of, 75, copy)


def test_a_process_that_interprets_kernels_is_told_to_compile_in_another(monkeypatch):
    monkeypatch.delenv("TRITON_INTERPRET")  # too late: this one imported triton with it
    with pytest.raises(RuntimeError, match="unset it before Python starts"), compile_only(90):
        pass


def late():
    """TRITON_INTERPRET is set after triton was imported: new kernels would be interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        return facts_of(90, copy)


def test_and_so_is_one_that_would_interpret_the_next(there):
    with pytest.raises(RuntimeError, match="unset it before Python starts"):
        there(late)


@pytest.mark.parametrize(("sm", "flop"), [(80, 2048), (90, 4096), (120, 2048)])
@pytest.mark.parametrize(("dtype", "slower"), [(torch.float16, 1), (torch.float32, 2)])
def test_the_inner_loop_of_a_product_costs_what_its_size_says(there, sm, flop, dtype, slower):
    [trip] = there(costs_of, sm, matmul, 8, num_stages=2, dtype=dtype)
    assert trip["tensor"] == 2 * 128 * 128 * 64 / flop * slower and trip["exp2"] == 0
    assert 64 < trip["instructions"] < 400 and trip["issue"] == 2 * trip["instructions"]


@pytest.mark.parametrize("warps", [4, 8])
def test_an_exponential_a_score_costs_a_sixteenth_of_a_cycle(there, warps):
    [trip] = there(costs_of, 90, exponentials, warps)
    assert trip["exp2"] == 128 * 128 / 16 and trip["tensor"] == 2 * 128 * 128 * 64 / 4096


def hot(sm, launcher, *args, **options):
    """Of each hot loop, how many products it holds."""
    loops = hot_loops(compiled(sm, launcher, *args, **options))
    return [sum("MMA" in instruction.opcode for instruction in loop) for loop in loops]


def test_a_loop_is_found_though_its_waiting_stands_behind_the_end(there):
    """sm_100: the wait for a product is out of line and jumps back into the middle of the loop, which is no loop."""
    assert there(hot, 100, matmul, **USUAL) == [4]


def test_each_specialised_group_of_warps_has_its_own_loop(there):
    assert there(hot, 90, specialised) == [4, 4]


@pytest.mark.parametrize("launcher", [copy, product])
def test_where_there_is_no_loop_none_is_found(there, launcher):
    """sm_100: the wait for the one product jumps back, too."""
    assert there(hot, 100, launcher) == []


def test_the_cost_of_a_product_whose_name_lacks_its_size_is_refused(there):
    with pytest.raises(ValueError, match="UTCHMMA"):
        there(costs_of, 100, matmul, 8)
