"""Write the test: does an attention look into the future? The answer is itself judged on attentions planted for it."""

import math
from functools import partial

import torch

from autograder.exercise import exercise


@exercise("ch05", points={"catches": 3, "leaves in peace": 2}, returns="verdict", see="05-masking#writing-the-test")
def leaks(attention):
    """Whether output i of attention(q, k, v), all (B, H, N, D), changes with a later query, key or value.

    In any row, head or batch item, by more than rounding. Use at least 6 positions.
    """
    tensors = inputs()
    before = attention(*tensors)
    for j in range(1, before.shape[2]):
        for which in range(3):
            changed = [x.clone() for x in tensors]
            changed[which][:, :, j] += 3.0
            if not torch.allclose(before[:, :, :j], attention(*changed)[:, :, :j], rtol=0, atol=1e-6):
                return True
    return False


def inputs(B=2, H=2, N=6, D=4):
    """q, k, v, the same at every call."""
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(B, H, N, D, generator=rng) for _ in "qkv"]


EVERY = slice(None)


def attend(q, k, v, *, also=lambda i, j: i < 0, strength=1.0, head=EVERY, item=EVERY):
    """Causal; but `strength` of the weights of some heads and batch items see key j from row i where `also` says so."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    causal, leaky = weights(q, k, j <= i), weights(q, k, (j <= i) | also(i, j))
    share = torch.zeros(*q.shape[:2], 1, 1)
    share[item, head] = strength
    return (causal + share * (leaky - causal)) @ v


def weights(q, k, mask):
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf).softmax(-1)


def through_keys(q, k, v):  # right weights, but divided by a sum over the future's keys too
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    return scores.tril() / scores.sum(-1, keepdim=True) @ v


CATCHES = {
    "no_mask": partial(attend, also=lambda i, j: j > i),
    "one_key_ahead": partial(attend, also=lambda i, j: j == i + 1),
    "row_0_sees_key_1": partial(attend, also=lambda i, j: (i == 0) & (j == 1)),
    "row_0_sees_key_4": partial(attend, also=lambda i, j: (i == 0) & (j == 4)),
    "row_1_sees_key_4": partial(attend, also=lambda i, j: (i == 1) & (j == 4)),
    "row_3_sees_the_last_key": partial(attend, also=lambda i, j: (i == 3) & (j == j.max())),
    "the_last_head": partial(attend, also=lambda i, j: j > i, head=-1),
    "the_last_item": partial(attend, also=lambda i, j: j > i, item=-1),
    "faintly": partial(attend, also=lambda i, j: j > i, strength=1e-3),
    "through_keys": through_keys,
    "through_values": lambda q, k, v: attend(q, k, v) + 0.1 * v.flip(2).cumsum(2).flip(2),
    "through_queries": lambda q, k, v: attend(q + 0.1 * q.mean(2, keepdim=True), k, v),
    "the_next_value": lambda q, k, v: v.roll(-1, 2),
}
IN_PEACE = {
    "causal": attend,
    "a_window_of_three": lambda q, k, v: (
        weights(q, k, (m := torch.ones(len(q[0, 0]), len(k[0, 0])).tril() > 0) & ~m.tril(-3)) @ v
    ),
    "the_library": lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
    "only_itself": lambda q, k, v: v + 0 * q,
    "running_mean": lambda q, k, v: v.cumsum(2) / torch.arange(1, v.shape[2] + 1)[:, None],
    "nothing": lambda q, k, v: 0 * v,
    "a_trace_of_rounding": lambda q, k, v: attend(q, k, v) + 1e-7 * v.mean(2, keepdim=True),
}
for property, plants in (("catches", CATCHES), ("leaves in peace", IN_PEACE)):
    for name, attention in plants.items():
        leaks.plant(property, name, attention=attention)


VERDICTS = "Your test gives the verdicts of one that"  # booleans show no more


def probe(
    attention, *, change="qkv", positions=range(1, 6), rows=lambda j: slice(None, j), tolerance=1e-6,
    item=EVERY, head=EVERY,
):  # fmt: skip
    """One test with a knob for each slip."""
    tensors = dict(zip("qkv", inputs(), strict=True))
    before, found = attention(*tensors.values()), False
    for j in positions:
        for name in change:
            changed = tensors[name].clone()
            changed[item, head, j] += 3.0
            after = attention(*(tensors | {name: changed}).values())
            same = torch.allclose(before[:, :, rows(j)], after[:, :, rows(j)], rtol=0, atol=tolerance)
            found = found or not same
    return found


slip = leaks.slips(probe)
slip("only_the_last", f"{VERDICTS} changes only the last position: leaks among earlier ones go by.", positions=[5])
slip("only_position_1", f"{VERDICTS} changes only position 1: leaks from later ones go by.", positions=[1])
slip("only_the_row_before", f"{VERDICTS} looks only at the row before the change.", rows=lambda j: slice(j - 1, j))
slip("only_the_first_row", f"{VERDICTS} looks only at the first row.", rows=lambda j: slice(0, 1))
slip("every_row", f"{VERDICTS} compares all rows: from the change on they may differ.", rows=lambda j: slice(None))
slip("rows_after", f"{VERDICTS} compares rows from the change on. Those may differ.", rows=lambda j: slice(j, None))
slip("only_queries", f"{VERDICTS} changes queries alone: leaks through keys or values go by.", change="q")
slip("only_keys", f"{VERDICTS} changes keys alone: leaks through queries or values go by.", change="k")
slip("only_values", f"{VERDICTS} changes values alone: leaks through queries or keys go by.", change="v")
slip("no_queries", f"{VERDICTS} changes keys and values, no queries: leaks through queries go by.", change="kv")
slip("too_tolerant", f"{VERDICTS} has a large tolerance. A faint leak is a leak.", tolerance=0.05)
slip("to_the_last_bit", f"{VERDICTS} demands equality to the last bit. Rounding is no leak.", tolerance=0)
slip("one_item", f"{VERDICTS} changes a single batch item.", item=0)
slip("one_head", f"{VERDICTS} changes a single head.", head=0)


@leaks.mistake
def always_leaks(attention):
    """Your test gives the verdict True whatever the attention does."""
    return True


@leaks.mistake
def never_leaks(attention):
    """Your test gives the verdict False whatever the attention does."""
    return False


@leaks.right
def everything_later_at_once(attention):
    now, new = inputs(3, 2, 7, 5), torch.randn(3, 3, 2, 7, 5) + 2
    before = attention(*now)
    mixed = lambda n: (torch.cat([x[:, :, :n], y[:, :, n:]], 2) for x, y in zip(now, new, strict=True))  # noqa: E731
    return any(float((attention(*mixed(n)) - before)[:, :, :n].abs().max()) > 1e-5 for n in range(1, 7))


@leaks.right
def against_the_sequence_cut_short(attention):
    tensors = inputs(2, 3, 5, 4)
    cut = [attention(*(x[:, :, :n] for x in tensors)) for n in range(1, 5)]
    whole = attention(*tensors)
    return not all(torch.allclose(part, whole[:, :, : part.shape[2]], atol=1e-5) for part in cut)


@leaks.right
def by_doubling(attention):
    for name in range(3):
        for j in reversed(range(1, 5)):
            tensors = inputs(2, 3, 5, 8)
            out = attention(*tensors)
            tensors[name][:, :, j] = 1 - 2 * tensors[name][:, :, j]
            if not torch.allclose(out[:, :, :j], attention(*tensors)[:, :, :j], atol=1e-5):
                return True
    return False
