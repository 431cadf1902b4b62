"""The judge gives one report wherever an answer lives: in this process, or in a worker that knows nothing of us."""

from contextlib import closing

import pytest

from autograder import judge
from autograder.box import Box
from autograder.boxed import Boxed, Worker
from autograder.exercises import get

ATTEND = """
import math
import torch

def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1).nan_to_num()
    return weights @ v, weights
"""
HEADS = """
def multi_head_attention(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    if w_q.shape[1] % num_heads:
        raise ValueError("num_heads must divide the width")
    split = lambda x, w: (x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2)
    out, _ = scaled_dot_product_attention(split(x_q, w_q), split(x_kv, w_k), split(x_kv, w_v), mask)
    return out.transpose(1, 2).flatten(2) @ w_o
"""
LEAKS = """
import torch

def leaks(attention):
    q, k, v = torch.randn(3, 2, 3, 6, 4)
    before = attention(q, k, v)
    for j in range(1, 6):
        late = [x.clone() for x in (q, k, v)]
        for x in late:
            x[:, :, j:] += 2
        if (attention(*late) - before)[:, :, :j].abs().max() > 1e-5:
            return True
    return False
"""
CACHE = """
import torch

class KVCache:
    def __init__(self, batch, heads, length, dim):
        self.k, self.v = torch.zeros(2, batch, heads, length, dim)
        self.n = 0

    def append(self, k, v):
        n, self.n = self.n, self.n + k.shape[2]
        self.k[:, :, n:self.n], self.v[:, :, n:self.n] = k, v
        return self.k[:, :, :self.n], self.v[:, :, :self.n]
"""
ABLATE = """
def ablate_head(model, tokens, layer, head, how):
    def edit(at, heads):
        if at == layer:
            heads = heads.clone()
            heads[:, head] = heads[:, head].mean((0, 1)) if how == "mean" else 0
        return heads
    return model(tokens, edit)
"""
PROBE = """
def position_probe(answer, fact, question, distractors, positions):
    found = []
    for p in positions:
        lines = distractors[:p] + [fact[0]] + distractors[p:] + [question]
        found.append(fact[1].lower() in answer("\\n".join(lines)).lower())
    return found
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x, out, stride, N, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < N, other=-float("inf"))
    e = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * N + columns, e / tl.sum(e, 0), mask=columns < N)

def row_softmax(x):
    out = torch.empty(x.shape)
    kernel[(len(x),)](x, out, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out
"""

# exercise, the cells of a right answer, what to replace in them, and the mistake that this makes
MERGED = (".transpose(1, 2).flatten(2)", ".flatten(1).view(x_q.shape)", "merged_by_tokens")
ANSWERS = [
    ("ch02/scaled_dot_product_attention", ATTEND, "q.shape[-1])", "q.shape[-1] ** 2)", "divides_by_d"),
    ("ch03/multi_head_attention", ATTEND + HEADS, *MERGED),
    ("ch05/leaks", LEAKS, "range(1, 6)", "range(5, 6)", "only_the_last"),
    ("ch08/KVCache", CACHE, "length, dim)\n        self.n", "2 * length, dim)\n        self.n", "room_for_more"),
    ("ch09/ablate_head", ABLATE, ".mean((0, 1))", ".mean((0, 1, 2))", "mean_of_each_vector"),
    ("ch09/position_probe", PROBE, "fact[1]", "fact[0]", "whole_sentence_wanted"),
    ("ch10/row_softmax", KERNEL, "x.stride(0)", "x.shape[1]", "stride_taken_for_granted"),
]  # fmt: skip


@pytest.fixture(scope="module", params=ANSWERS, ids=lambda answer: answer[0])
def answer(request):
    return request.param


@pytest.fixture(scope="module")
def boxed():
    """Judge a source in a worker; one for all, since starting it takes seconds."""
    with closing(Box()) as box, Worker(box) as worker:

        def judged(name, source):
            text, error, _ = worker.run(source)
            assert error is None, text
            return judge(name, Boxed(worker, get(name).function), hidden=True, seed=7)

        yield judged


def test_a_right_answer_earns_everything(answer, boxed):
    name, source, *_ = answer
    report = boxed(name, source)
    assert report.points == report.max_points, report


def test_a_mistake_is_named(answer, boxed):
    name, source, old, new, mistake = answer
    report = boxed(name, source.replace(old, new))
    assert report.points < report.max_points
    assert report.diagnosis == mistake, report


def test_helpers_are_lent_across_the_processes(boxed):
    wrong = ATTEND.replace("q.shape[-1])", "q.shape[-1] ** 2)")
    report = boxed("ch03/multi_head_attention", wrong + HEADS)
    assert report.points == report.max_points
    assert "which is wrong" in report.message


LOOKUP = """
import torch

def softmax(scores, dim):
    HELPER

def soft_lookup(query, keys, values, temperature=1.0):
    weights = softmax(keys @ query / temperature, dim=0)
    return weights @ values, weights
"""


@pytest.mark.parametrize(
    "helper",
    ["return scores.exp()", "raise ValueError('no')", "return scores.softmax(dim).detach()", "return 1 / 0"],
)
def test_a_lent_helper_lets_gradients_through(boxed, helper):
    """The same points in a notebook and in a class, although the helper is in another process."""
    source = LOOKUP.replace("HELPER", helper)
    exec(source, namespace := {})
    here, there = judge("ch01/soft_lookup", namespace["soft_lookup"]), boxed("ch01/soft_lookup", source)
    assert here.points == here.max_points
    assert (there.properties, there.message) == (here.properties, here.message)


def test_a_lent_helper_is_called_by_name_as_well(boxed):
    source = LOOKUP.replace("HELPER", "return scores").replace("softmax(keys @ query / temperature, dim=0)", "NAMED")
    named = "softmax(scores=keys @ query / temperature, dim=0)"
    report = boxed("ch01/soft_lookup", source.replace("NAMED", named))
    assert report.points == report.max_points, report


def test_a_helper_of_other_arguments_does_not_hide_what_is_wrong(boxed):
    source = LOOKUP.replace("softmax(scores, dim)", "softmax(scores)").replace("HELPER", "return scores.exp()")
    source = source.replace(", dim=0)", ")")
    assert "not_normalised" in boxed("ch01/soft_lookup", source).mistakes


OTHER_FORMS = {
    "an object": "class Lookup:\n    def __call__(self, query, keys, values, temperature=1.0):\n"
    "        return plain(query, keys, values, temperature)\n\nsoft_lookup = Lookup()",
    "a module": "class Lookup(torch.nn.Module):\n    def forward(self, query, keys, values, temperature=1.0):\n"
    "        return plain(query, keys, values, temperature)\n\nsoft_lookup = Lookup()",
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_a_helper_is_lent_to_whatever_can_be_called(boxed, form):
    source = LOOKUP.replace("HELPER", "return scores.exp()").replace("def soft_lookup", "def plain") + OTHER_FORMS[form]
    report = boxed("ch01/soft_lookup", source)
    assert report.points == report.max_points, report


def test_a_helper_that_is_not_written_yet_is_lent_too(boxed):
    report = boxed("ch01/soft_lookup", LOOKUP.replace("HELPER", "raise NotImplementedError"))
    assert report.points == report.max_points, report
    assert "not written yet" in report.message


def test_what_a_lent_helper_returns_may_be_written_into(boxed):
    source = LOOKUP.replace("HELPER", "return scores.exp()").replace(
        "    return weights @", "    weights *= 1\n    return weights @"
    )
    report = boxed("ch01/soft_lookup", source)
    assert report.points == report.max_points, report
