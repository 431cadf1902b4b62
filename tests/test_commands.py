"""The commands: bad input gets one sentence and a status, and our own faults are not dressed up as that."""

import pytest

from autograder import __main__ as commands
from autograder import cohort, gradebook, lock, selftest
from autograder.errors import BadInput


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["selftest", "ch02/project"], "did you mean 'ch02/project_qkv'?"),
        (["selftest", "--draws", "0"], "--draws is 0"),
        (["grade", "03_unknown"], "There is no assignment '03_unknown'"),
        (["grade", "02_queries_keys_values", "--student", "nobody"], "There is no submission of 'nobody'"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    assert commands.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and "Traceback" not in err and len(err.strip().split("\n")) == 1


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch):
    def broken(*_):
        raise ValueError("a bug")

    monkeypatch.setattr(selftest, "main", broken)
    with pytest.raises(ValueError, match="a bug"):
        commands.main(["selftest"])


def test_an_interrupted_command_says_so(monkeypatch, capsys):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(gradebook, "grade", stopped)
    assert commands.main(["grade", "02_queries_keys_values"]) == 130
    assert "stopped" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["selftest", "--draws", "many"]])
def test_what_is_no_command_is_told_by_argparse(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        commands.main(arguments)
    assert stop.value.code == 2 and "usage: python -m autograder" in capsys.readouterr().err


def test_a_second_grader_waits_its_turn(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setattr("autograder.box.require", lambda: None)
    with open(tmp_path / "lock", "w") as other:
        assert lock.taken(other)
        assert commands.main(["grade", "02_queries_keys_values"]) == 2
    assert "Another grader is at work" in capsys.readouterr().err


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b""), lambda path: path.mkdir()])
def test_a_secret_that_is_none_is_refused(spoil, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    spoil(tmp_path / "secret")
    with pytest.raises(BadInput, match="should hold 32 random bytes"):
        cohort.secret()


def test_a_spoilt_verdict_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    (tmp_path / "verdicts" / "02").mkdir(parents=True)
    (tmp_path / "verdicts" / "02" / "ada.json").write_text("{}")
    with pytest.raises(BadInput, match=r"ada\.json is no verdict"):
        cohort.verdicts()
