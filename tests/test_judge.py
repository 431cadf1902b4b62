"""What the judge promises, whatever the exercise."""

import math
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch

import autograder
from autograder import check, judge
from autograder.checking import PointsMissing
from autograder.exercises import get
from autograder.exercises.ch02.scaled_dot_product_attention import attend
from autograder.exercises.ch08.KVCache import Buffers
from autograder.explain import Row
from autograder.judging import fairer, trial, trials
from autograder.observe import Look, Seen, observe
from autograder.trial import Planted

ATTENTION = "ch02/scaled_dot_product_attention"
HEADS = "ch03/multi_head_attention"


def turned(**knobs):
    return lambda q, k, v, mask=None: attend(q, k, v, mask, **knobs)


def test_a_right_answer_earns_every_property():
    report = judge(ATTENTION, attend)
    assert report.points == report.max_points == 8
    assert report.message == "Right."
    assert report.diagnosis is None


def test_points_go_by_property():
    report = judge(ATTENTION, turned(empty="NaN"))
    states = {name: state for name, (_, _, state) in report.properties.items()}
    assert states["values"] == states["stability"] == states["half precision"] == "earned"
    assert states["masking"] == states["gradient"] == "missed"
    assert report.points == sum(points for points, _, state in report.properties.values() if state == "earned") == 5


@pytest.mark.parametrize("answer", [lambda q, k, v, mask=None: (0 * q @ k.mT @ v, 0 * q @ k.mT)])
def test_zeros_earn_nothing(answer):
    assert judge(ATTENTION, answer).points == 0


def test_hidden_draws_differ_between_seeds_and_repeat_exactly():

    first, again, other = (trials(ATTENTION, ("hidden", seed))[0].inputs["q"] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


def test_one_mistake_is_named_in_its_own_sentence():
    report = judge(ATTENTION, turned(scale="1/D"))
    assert report.diagnosis == "divides_by_d"
    assert "√D" in report.message


def test_two_mistakes_together_are_both_named_and_no_single_one_is_diagnosed():
    report = judge(ATTENTION, turned(scale="1/D", flip=True))
    assert report.diagnosis is None
    assert set(report.mistakes) == {"divides_by_d", "mask_inverted"}


def test_an_unknown_constant_is_measured_and_said_in_the_letters_of_the_shape():
    assert "with q kᵀ times 0.3, which" in judge(ATTENTION, turned(scale=0.3)).message


def test_an_unlisted_mistake_gets_facts_and_no_name():
    def last_query_off(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        return torch.cat([output[:, :, :-1], 1.1 * output[:, :, -1:]], 2), weights

    report = judge(ATTENTION, last_query_off)
    assert report.diagnosis is None
    assert "only at N = " in report.message


def test_facts_say_on_which_simpler_inputs_the_answer_is_right():
    from autograder.exercises.ch03.multi_head_attention import attend as heads

    assert "right when w_o is the identity" in judge(HEADS, lambda *args: heads(*args) @ args[5]).message


def test_facts_say_when_exactly_the_empty_rows_are_wrong():
    def mean_for_empty(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        empty = torch.zeros(1, dtype=torch.bool) if mask is None else ~mask.any(-1, keepdim=True)
        return output + empty * v.mean(2, keepdim=True), weights

    assert "exactly the queries that may attend to nothing" in judge(ATTENTION, mean_for_empty).message


def test_an_answer_that_builds_on_a_wrong_one_is_judged_with_a_right_one_too():
    namespace = {"torch": torch, "attend": attend}
    source = """
def scaled_dot_product_attention(q, k, v, mask=None):
    return attend(q, k, v, mask, scale="1/D")

def multi_head_attention(x_q, x_kv, w_q, w_k, w_v, w_o, num_heads, mask=None):
    if w_q.shape[1] % num_heads:
        raise ValueError("num_heads must divide the width")
    split = lambda x, w: (x @ w).unflatten(-1, (num_heads, -1)).transpose(1, 2)
    out, _ = scaled_dot_product_attention(split(x_q, w_q), split(x_kv, w_k), split(x_kv, w_v), mask)
    return out.transpose(1, 2).flatten(2) @ w_o
"""
    exec(source, namespace)
    own = namespace["scaled_dot_product_attention"]
    report = judge(HEADS, namespace["multi_head_attention"])
    assert report.points == report.max_points
    assert "builds on your scaled_dot_product_attention, which is wrong" in report.message
    assert namespace["scaled_dot_product_attention"] is own


@pytest.mark.parametrize(
    ("own", "lent", "taken"),
    [
        ("right", "wrong", "own"),
        ("wrong", "right", "lent"),
        ("wrong", "wrong", "lent"),
        ("wrong", "raises", "own"),
        ("wrong", "late", "own"),
        ("raises", "right", "lent"),
        ("raises", "wrong", "lent"),
        ("raises", "raises", "lent"),
        ("raises", "late", "own"),
    ],
)
def test_the_row_with_a_right_helper_counts_unless_that_does_not_fit(own, lent, taken):
    def row(kind):
        late = kind == "late"
        return Row(None, Seen(error=("E", "") if late or kind == "raises" else None, late=late), kind == "right")

    rows = {"own": row(own), "lent": row(lent)}
    assert fairer(**rows) is rows[taken]


def test_a_refusal_is_judged_by_its_type():
    def refuses_in_another_way(*args):
        raise TypeError("no")

    report = judge(HEADS, refuses_in_another_way)
    assert report.properties["refusal"][2] == "missed"


def test_bytes_that_an_object_keeps_are_measured():
    class Hoards(Buffers):
        def append(self, k, v):
            self.more = [*getattr(self, "more", []), torch.zeros(1000)]
            return super().append(k, v)

    report = judge("ch08/KVCache", Hoards)
    assert report.properties["bytes"][2] == "missed"
    assert report.properties["contents"][2] == "earned"
    assert report.diagnosis == "room_for_more"


def test_the_largest_tensor_made_on_the_way_is_measured_and_views_are_free():
    x = {"x": torch.ones(3, 4)}
    assert observe(lambda x: (x.expand(100, 3, 4).sum(),)[0], x, Look(largest=True)).largest == 1
    assert observe(lambda x: (x[None] * torch.ones(100, 1, 1)).sum(), x, Look(largest=True)).largest == 1200


def test_a_planted_function_tells_nothing_and_passes_no_gradient():
    planted = Planted(attend)
    assert not hasattr(planted, "__name__") and not hasattr(planted, "__wrapped__")
    assert not planted(*(torch.ones(1, 1, 2, 2, requires_grad=True) for _ in "qkv"))[0].requires_grad


def test_strides_of_the_inputs_reach_the_answer():
    wide = torch.arange(12.0).reshape(3, 4)[:, 1:3]
    seen = observe(lambda x: torch.tensor(x.stride()), {"x": wide}, Look())
    assert seen.outputs[0].tolist() == [4, 1]


def test_whole_numbers_are_equal_or_wrong():
    first = trials("ch05/leaks", "public")[0]
    seen = first.reference.seen
    assert first.gap(seen) == 0
    assert first.gap(type(seen)(outputs=(seen.outputs[0] + 1e-6,), kinds=seen.kinds)) > 1


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_nan_and_infinity_never_pass(wrong):
    def poisoned(q, k, v, mask=None):
        output, weights = attend(q, k, v, mask)
        output = output.clone()
        output.view(-1)[0] = wrong
        return output, weights

    assert judge(ATTENTION, poisoned).points == 0


def noisy(q, k, v, mask=None):
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    print("noise")
    print("noise", file=sys.stderr)
    q.zero_()
    raise SystemExit(3)


def test_judging_leaves_the_callers_state_as_it_was(capsys):
    torch.set_num_threads(2)
    read = [torch.get_rng_state, lambda: torch.tensor(np.random.get_state()[1].astype(int)), lambda: random.getstate()]
    settings = [torch.get_default_dtype, torch.is_grad_enabled, torch.get_num_threads]
    before, kept = [f() for f in read], [f() for f in settings]
    judge(ATTENTION, noisy)
    after = [f() for f in read]
    assert torch.equal(before[0], after[0]) and torch.equal(before[1], after[1]) and before[2] == after[2]
    assert [f() for f in settings] == kept
    assert not torch.are_deterministic_algorithms_enabled()
    assert capsys.readouterr() == ("", "")


def sleeps(x):
    while True:
        time.sleep(0.01)


def swallows(x):
    for _ in range(5):
        try:
            while True:
                pass
        except BaseException:
            pass
    return x


@pytest.mark.parametrize("answer", [sleeps, swallows])
@pytest.mark.parametrize("in_thread", [False, True])
def test_an_answer_that_hangs_is_stopped(answer, in_thread):
    seen = []

    def watch():
        seen.append(observe(answer, {"x": torch.ones(2)}, Look(seconds=0.2)))

    if in_thread:
        thread = threading.Thread(target=watch)
        thread.start()
        thread.join(10)
    else:
        watch()
    assert seen and seen[0].late


def test_after_one_case_that_hangs_no_other_is_started(monkeypatch):
    import autograder.trial

    monkeypatch.setattr(autograder.trial, "Look", lambda **how: Look(**how, seconds=0.2))
    calls = []

    def hangs(x, w_q, w_k, w_v):
        calls.append(1)
        time.sleep(60)

    trial.cache_clear()
    report = judge("ch02/project_qkv", hangs, hidden=True, seed="hang")
    trial.cache_clear()
    assert len(calls) == 1 and report.points == 0
    assert "no answer after 0.2 s" in report.message


def test_an_unwritten_answer_is_said_to_be_so():
    def unwritten(*args):
        raise NotImplementedError

    assert "Not written yet" in judge(ATTENTION, unwritten).message


def test_what_is_no_function_gets_one_sentence():
    assert "hand over its name, without brackets" in judge(ATTENTION, torch.ones(3)).message


def test_an_unknown_exercise_gets_one_sentence_with_the_near_name():
    with pytest.raises(ValueError, match="did you mean 'ch02/scaled_dot_product_attention'"):
        check("ch02/scaled_dot_product_atention", attend)


def test_exercises_come_in_course_order():
    names = [exercise.name for exercise in autograder.exercises()]
    assert names.index("ch02/project_qkv") < names.index(ATTENTION) < names.index("ch02/attention_backward")
    assert [name[:4] for name in names] == sorted(name[:4] for name in names)


def test_the_reports_text_fits_eighty_columns_and_never_holds_the_wanted_numbers():
    report = judge(ATTENTION, turned(scale="1/D"))
    assert max(map(len, str(report).split("\n"))) <= 80
    first = trials(ATTENTION, "public")[0]
    wanted = {f"{x:.4g}" for x in first.reference.seen.outputs[0].flatten().tolist()}
    assert not any(number in report.message for number in wanted)


def test_the_reports_html_is_escaped():
    def marks_up(q, k, v, mask=None):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in judge(ATTENTION, marks_up).html()


def test_under_validate_missing_points_are_an_exception(monkeypatch):
    monkeypatch.setenv("NBGRADER_VALIDATING", "1")
    check("ch02/project_qkv", get("ch02/project_qkv").right[0].answer)
    with pytest.raises(PointsMissing, match="0 of 2 points"):
        check("ch02/project_qkv", lambda x, w_q, w_k, w_v: (x, x, x))


def test_a_plain_script_prints_its_reports():
    script = "from autograder import check; check('ch02/project_qkv', lambda x, a, b, c: (x @ a, x @ b, x @ c))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert "2 of 2 points" in done.stdout and done.stderr == ""


def test_a_draw_keeps_its_sizes_apart():
    from autograder.draw import Draw

    for seed in range(50):
        sizes = Draw("sizes", seed).sizes("B Hkv Hq N S D Dv", even="D")
        assert len(set(sizes)) == 7 and 1 not in sizes
        assert sizes[2] % sizes[1] == 0 and sizes[5] % 2 == 0


def test_a_drawn_mask_leaves_each_row_a_key_and_varies_along_every_axis():
    from autograder.draw import Draw

    mask = Draw("mask").mask(3, 4, 5, 7)
    assert mask.any(-1).all()
    assert all((mask != mask.roll(1, axis)).any() for axis in range(4))


def test_importing_the_judge_imports_nothing_heavy_but_torch():
    code = "import sys, torch; known = set(sys.modules); from autograder import check; print(*set(sys.modules) - known)"
    added = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    tops = {name.split(".")[0] for name in added}
    assert "autograder" in tops
    assert not tops & {"nbgrader", "IPython", "matplotlib", "triton", "jupytext", "nbformat", "sqlalchemy"}
    assert not any(name.startswith(("torch._dynamo", "torch._inductor")) for name in added)


def test_the_largest_tensor_is_watched_without_importing_a_compiler():
    code = """
import sys, torch
from autograder.observe import Look, observe
observe(lambda x: x + x, {"x": torch.ones(3)}, Look(largest=True))
print(*(name for name in sys.modules if name.startswith("torch._dynamo")))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []
