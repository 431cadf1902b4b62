"""Refuse what the kernels cannot compute, in one sentence, before any starts: it would give other numbers."""

import torch

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
WIDEST = 256  # columns of a head
FURTHEST = 2**31 // 256  # elements from one row to the next: a tile has at most 256 rows, and 32 bits for its places


def require_attention(q, k, v, scale):
    """q (B, Hq, N, D), k and v (B, Hkv, S, D)."""
    require_tensors(q=q, k=k, v=v)
    require_axes(4, "(B, H, N, D)", q=q, k=k, v=v)
    require(k.shape == v.shape, f"k has shape {shape(k)} and v {shape(v)}; every key needs one value of its width")
    require_fitting(q, k, "q", "k")
    require_scale(scale)


def require_decode(q, k_cache, v_cache, lengths, scale):
    """q (B, Hq, D), caches (B, Hkv, S, D), lengths (B,)."""
    require_tensors(q=q, k_cache=k_cache, v_cache=v_cache)
    require_axes(3, "(B, Hq, D)", q=q)
    require_axes(4, "(B, Hkv, S, D)", k_cache=k_cache, v_cache=v_cache)
    same = k_cache.shape == v_cache.shape
    require(same, f"k_cache has shape {shape(k_cache)} and v_cache {shape(v_cache)}; they must be alike")
    require_fitting(q, k_cache, "q", "k_cache")
    require_scale(scale)
    whole = torch.is_tensor(lengths) and lengths.dtype in (torch.int32, torch.int64)
    require(whole, f"lengths is {kind(lengths)}; a tensor of int32 or int64 is wanted, a number a sequence")
    require(
        lengths.shape == q.shape[:1], f"lengths has shape {shape(lengths)}; wanted is {shape(q)[:1]}, one a sequence"
    )
    require(lengths.device == q.device, f"lengths lies on {lengths.device} and q on {q.device}; move one of them")
    if lengths.device.type == "cpu" and len(lengths):  # on a card, to look would mean to wait
        low, high = lengths.min().item(), lengths.max().item()
        held = low >= 0 and high <= k_cache.shape[2]
        require(held, f"lengths goes from {low} to {high}; the cache has room for 0 to {k_cache.shape[2]} keys")


def require_tensors(**tensors):
    """Of one dtype and on one device."""
    (first, one), *_ = tensors.items()
    for name, x in tensors.items():
        require(torch.is_tensor(x), f"{name} is {kind(x)}; a tensor is wanted")
        require(x.dtype in DTYPES, f"{name} is {kind(x)}; float16, bfloat16 and float32 can be computed: {name}.to(…)")
        require(x.dtype == one.dtype, f"{name} is {kind(x)} and {first} is {kind(one)}; give both the same dtype")
        require(x.device == one.device, f"{name} lies on {x.device} and {first} on {one.device}; move one of them")


def require_axes(n, letters, **tensors):
    for name, x in tensors.items():
        require(x.ndim == n, f"{name} has shape {shape(x)}; wanted are {n} axes, {letters}")
        D = x.shape[-1]
        require(1 <= D <= WIDEST, f"{name} has {D} columns a head; the kernels take 1 to {WIDEST}")
        unit = x.stride(-1) == 1 or D == 1
        require(unit, f"{name} has stride {x.stride(-1)} along its last axis; wanted is 1: {name}.contiguous()")
        step = x.stride(-2) if x.shape[-2] > 1 else 0
        require(step <= FURTHEST, f"{name} has stride {step} from row to row, beyond 32 bits: {name}.contiguous()")
        require(max(x.shape) < 2**31, f"{name} has shape {shape(x)}; each size must be below 2³¹")


def require_fitting(q, k, name_q, name_k):
    require(q.shape[0] == k.shape[0], f"{name_q} has {q.shape[0]} sequences and {name_k} {k.shape[0]}; wanted as many")
    wide = f"{name_q} has {q.shape[-1]} columns a head and {name_k} {k.shape[-1]}; a dot product needs as many"
    require(q.shape[-1] == k.shape[-1], wide)
    Hq, Hkv = q.shape[1], k.shape[1]
    shared = min(Hq, Hkv) > 0 and Hq % Hkv == 0
    require(shared, f"{name_q} has {Hq} heads and {name_k} {Hkv}; each of {name_k} serves as many of {name_q}")


def require_scale(scale):
    number = scale is None or (isinstance(scale, int | float) and 0 < scale < float("inf"))
    require(number, f"scale is {scale!r}; a positive number is wanted, or None for 1/√D")


def require(true, sentence):
    if not true:
        raise ValueError(f"{sentence}.")


def shape(x):
    return tuple(x.shape)


def kind(x):
    return str(x.dtype).removeprefix("torch.") if torch.is_tensor(x) else type(x).__name__
