"""Flash attention on every shape, layout and dtype, against the formula in float64: each was somebody's bug."""

import math
import os
import subprocess
import sys

import pytest
import torch
from comparing import TOLERANCE, agrees, cache, decodes, inputs, layouts, near

import kernels
from kernels import attention, backward, configurations, decode, forward, hopper
from kernels.check.memory import checked
from kernels.configurations import Config

TILES = [Config(16, 64, 4, 1), Config(64, 16, 4, 1), Config(32, 128, 4, 1), Config(128, 32, 4, 1)]


@pytest.fixture(params=TILES, ids=lambda c: f"{c.BLOCK_N}x{c.BLOCK_S}")
def tiles(request, monkeypatch):
    monkeypatch.setattr(configurations, "INTERPRETED", request.param)


@pytest.mark.parametrize("D", [1, 8, 16, 40, 64, 80, 96, 128, 200, 256])
def test_every_head_dimension(D):
    assert agrees(*inputs(D=D, N=20, S=37), causal=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "S"), [(1, 1), (1, 20), (20, 1), (7, 8), (8, 7), (65, 63), (129, 64), (33, 150)])
def test_every_pair_of_lengths(N, S, causal):
    assert agrees(*inputs(N=N, S=S), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "S"), [(70, 70), (50, 131), (131, 50)])
def test_tiles_of_any_proportion(tiles, N, S, causal):
    assert agrees(*inputs(N=N, S=S, D=16), causal=causal)


@pytest.mark.parametrize(("Hq", "Hkv"), [(4, 2), (6, 2), (4, 1), (6, 3), (3, 3)])
def test_heads_that_share_keys(Hq, Hkv):
    assert agrees(*inputs(B=2, Hq=Hq, Hkv=Hkv, N=21, S=40, D=16), causal=True)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_dtype(dtype, causal):
    assert agrees(*inputs(N=70, S=90, D=64, dtype=dtype), causal=causal)


def test_each_head_of_each_sequence_is_what_it_is_alone():
    q, k, v, _ = inputs(B=3, Hq=4, Hkv=2, N=35, S=50)
    out = kernels.flash_attention(q, k, v, causal=True)
    for b in range(3):
        for h in range(4):
            one = [q[b : b + 1, h : h + 1], *(x[b : b + 1, h // 2 : h // 2 + 1] for x in (k, v))]
            assert torch.equal(out[b : b + 1, h : h + 1], kernels.flash_attention(*one, causal=True))


def test_the_last_query_sees_the_last_key():
    q, k, v, _ = inputs(N=2, S=5, D=16)
    out = kernels.flash_attention(q, k, v, causal=True)
    seen = torch.tensor([[True] * 4 + [False], [True] * 5])
    assert near(out, torch.nn.functional.scaled_dot_product_attention(q, k, v, seen), 2e-6)


def test_a_query_that_sees_no_key_gets_zeros_and_gives_no_gradient():
    q, k, v, d_out = (x.requires_grad_() for x in inputs(N=40, S=10))
    out, lse = kernels.flash_attention_forward(q, k, v, causal=True)
    assert not out[:, :, :30].any() and (lse[:, :, :30] == -math.inf).all()
    kernels.flash_attention(q, k, v, causal=True).backward(d_out)
    assert not q.grad[:, :, :30].any() and not any(x.grad.isnan().any() for x in (q, k, v))


@pytest.mark.parametrize(("N", "S"), [(0, 5), (5, 0), (0, 0)])
def test_no_queries_or_no_keys(N, S):
    q, k, v, d_out = (x.requires_grad_() for x in inputs(N=N, S=S))
    out = kernels.flash_attention(q, k, v)
    out.backward(d_out)
    assert out.shape == q.shape and not out.any() and not any(x.grad.any() for x in (q, k, v))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's: rows that are not there overflow, and are not stored
def test_scores_far_below_zero():
    q, k, v, d_out = inputs()
    q[..., 0], k[..., 0] = 40, -40
    assert agrees(q, k, v, d_out, times=100)


def test_large_activations_in_half_precision_stay_finite():
    q, k, v, _ = inputs(N=64, D=64, dtype=torch.float16)
    assert kernels.flash_attention(30 * q, 30 * k, v).isfinite().all()


def test_another_scale():
    assert agrees(*inputs(), scale=0.7, times=4) and agrees(*inputs(), scale=2, times=20)


def test_each_tensor_in_a_layout_of_its_own():
    q, k, v, d_out = inputs(B=2, N=20, S=30)
    assert agrees(layouts(q)[0], layouts(k)[1], layouts(v)[2], layouts(d_out)[2], causal=True)
    assert agrees(layouts(q)[2], layouts(k)[0], layouts(v)[1], layouts(d_out)[0])


def test_expanded_keys_and_an_expanded_gradient():
    q, k, v, _ = inputs(B=3, N=20, S=30)
    k, v = (x[:1, :1].expand(3, 2, -1, -1) for x in (k, v))
    assert agrees(q, k, v, torch.ones(()).expand(q.shape))


@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "S", "D"), [(33, 77, 40), (70, 40, 64), (20, 0, 16), (64, 64, 32)])
def test_hoppers_kernel_gives_the_same_numbers(N, S, D, causal, specialised):
    q, k, v, _ = inputs(B=2, Hq=4, Hkv=2, N=N, S=S, D=D, dtype=torch.float16)
    with checked() as report:
        out, lse = hopper.forward(q, k, v, causal, D**-0.5, configurations.INTERPRETED, specialised)
        assert (report.written(out) == 1).all() and (report.written(lse) == 1).all()
    wanted, wanted_lse = forward.reference(*(x.double() for x in (q, k, v)), causal)
    assert near(out, wanted, TOLERANCE[torch.float16]) and near(lse, wanted_lse, 1e-3)


def test_hoppers_kernel_is_for_rows_on_a_multiple_of_sixteen_bytes():
    q = torch.empty(2, 4, 33, 64, dtype=torch.float16)
    assert hopper.fits(q, q.transpose(1, 2)) and not hopper.fits(q.float())
    assert not hopper.fits(q[..., 1:]) and not hopper.fits(torch.empty(2, 4, 33, 20, dtype=torch.float16))


def test_rows_beyond_two_to_the_thirty_one_elements():
    far = torch.empty(3 * 2**30, dtype=torch.float16)  # never written to but for a few rows: no memory is used
    k, v = (far[start:].as_strided((1, 2, 40, 16), (0, 2**31 + 64, 32, 1)) for start in (0, 16))
    q, new_k, new_v, _ = inputs(N=20, S=40, D=16, dtype=torch.float16)
    k.copy_(new_k), v.copy_(new_v)
    assert torch.equal(kernels.flash_attention(q, k, v), kernels.flash_attention(q, new_k, new_v))


def test_the_same_bits_in_any_order_of_the_programs():
    q, k, v, d_out = (x.requires_grad_() for x in inputs(B=2, Hq=4, Hkv=2, N=70, S=90))
    found = []
    for seed in (None, 1, 2):
        with checked(shuffle=seed):
            out = kernels.flash_attention(q, k, v, causal=True)
            found.append((out, *torch.autograd.grad(out, (q, k, v), d_out)))
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("N", "S", "D"), [(33, 77, 40), (65, 30, 64), (20, 0, 16)])
def test_no_stray_address_and_every_result_written_once(N, S, D, causal):
    q, k, v, d_out = inputs(B=2, Hq=4, Hkv=2, N=N, S=S, D=D)
    q, k, v, d_out = layouts(q)[0], layouts(k)[1], layouts(v)[0], layouts(d_out)[1]
    config = configurations.INTERPRETED
    with checked() as report:
        out, lse = kernels.flash_attention_forward(q, k, v, causal)
        assert (report.written(out) == 1).all() and (report.written(lse) == 1).all()
    with checked() as report:
        gradients = backward.backward(q, k, v, out, lse, d_out, causal, D**-0.5, config, config)
        assert all((report.written(x) == 1).all() for x in gradients if x.numel())


# --- decoding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_decoding_reads_the_filled_part_of_the_cache(dtype):
    assert decodes(*cache(dtype=dtype), torch.tensor([300, 131, 1]))


@pytest.mark.parametrize("programs", [1, 7, 64])
@pytest.mark.parametrize("S", [1, 16, 129, 700])
def test_decoding_in_any_number_of_parts(programs, S, monkeypatch):
    monkeypatch.setattr(attention, "programs", lambda q: programs)
    monkeypatch.setattr(decode, "FEWEST", 1)
    q, k, v = cache(B=2, S=S)
    lengths = torch.tensor([S, S // 2])
    wanted = decode.reference(q.double(), k.double(), v.double(), lengths)
    with checked() as report:
        out = kernels.flash_attention_decode(q, k, v, lengths)
    assert near(out, wanted, 2e-6) and (report.written(out) == 1).all()


def test_decoding_an_empty_cache_gives_zeros():
    q, k, v = cache()
    out = kernels.flash_attention_decode(q, k, v, torch.tensor([0, 5, 0], dtype=torch.int32))
    assert not out[0].any() and not out[2].any() and out[1].any()
    assert not kernels.flash_attention_decode(q, k[:, :, :0], v[:, :, :0], torch.tensor([0, 0, 0])).any()


@pytest.mark.parametrize(("Hq", "Hkv"), [(1, 1), (32, 1), (24, 8), (20, 4)])
def test_decoding_with_heads_that_share_keys(Hq, Hkv):
    q, k, v = cache(Hq=Hq, Hkv=Hkv, S=70, D=16)
    lengths = torch.tensor([70, 33, 2])
    assert near(kernels.flash_attention_decode(q, k, v, lengths), decode.reference(q, k, v, lengths), 4e-6)


# --- what cannot be computed is refused -------------------------------------------------------------------------------


def refused(kind, function, *arguments, **named):
    with pytest.raises(kind) as problem:
        function(*arguments, **named)
    said = str(problem.value)
    assert said.endswith(".") and "\n" not in said
    return said


def test_arguments_that_do_not_fit_are_named():
    q, k, v, _ = inputs(Hq=4, Hkv=2)
    attend = kernels.flash_attention
    assert "q is list" in refused(ValueError, attend, [1.0], k, v)
    assert "q has shape (4, 33, 32)" in refused(ValueError, attend, q[0], k, v)
    assert "v is float16 and q is float32" in refused(ValueError, attend, q, k, v.half())
    assert "q is float64" in refused(ValueError, attend, q.double(), k.double(), v.double())
    assert "k has shape (1, 2, 33, 32) and v (1, 2, 20, 32)" in refused(ValueError, attend, q, k, v[:, :, :20])
    assert "q has 32 columns a head and k 16" in refused(ValueError, attend, q, k[..., :16], v[..., :16])
    assert "q has 3 heads and k 2" in refused(ValueError, attend, q[:, :3], k, v)
    assert "q has 1 sequences and k 2" in refused(ValueError, attend, q, *(x.expand(2, -1, -1, -1) for x in (k, v)))
    assert "scale is -1" in refused(ValueError, attend, q, k, v, scale=-1)
    assert "q has 300 columns" in refused(ValueError, attend, *inputs(D=300)[:3])
    assert "v lies on meta and q on cpu" in refused(ValueError, attend, q, k, v.to("meta"))


def test_a_last_stride_that_is_not_one_is_refused():
    q, k, v, _ = inputs(N=16, D=16)
    assert "k has stride 16 along its last axis" in refused(ValueError, kernels.flash_attention, q, k.mT, v)


def test_lengths_that_do_not_fit_the_cache_are_refused():
    q, k, v = cache()
    attend = kernels.flash_attention_decode
    assert "goes from 1 to 301" in refused(ValueError, attend, q, k, v, torch.tensor([301, 1, 1]))
    assert "goes from -1" in refused(ValueError, attend, q, k, v, torch.tensor([-1, 1, 1]))
    assert "lengths is float32" in refused(ValueError, attend, q, k, v, torch.tensor([1.0, 1, 1]))
    assert "lengths has shape (2,)" in refused(ValueError, attend, q, k, v, torch.tensor([1, 1]))


ALONE = """
import sys, torch
if {hide}: sys.modules["triton"] = None
import kernels
try: kernels.flash_attention(*[torch.randn(1, 1, 4, 16)] * 3)
except {kind} as problem: print(problem)
"""


def alone(kind, hide=False):
    """What is said in a process that has no interpreter, and perhaps no Triton."""
    source = ALONE.format(kind=kind, hide=hide)
    variables = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", source], env=variables, capture_output=True, text=True, check=True)
    return done.stdout


def test_without_a_gpu_and_an_interpreter_one_sentence_says_what_helps():
    assert "set TRITON_INTERPRET=1 before Python starts" in alone("RuntimeError")


def test_without_triton_the_package_can_be_imported_and_says_what_is_missing():
    assert (
        alone("ImportError", hide=True)
        == "kernels.flash_attention needs Triton, which runs on Linux: pip install triton.\n"
    )
