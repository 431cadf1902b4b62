"""What the README shows works as it stands there."""

import re
from pathlib import Path

from autograder import judging
from autograder.exercise import complaints

README = (Path(__file__).parent.parent / "README.md").read_text("utf8")


def test_the_exercise_of_the_contributor_section_is_sound(tmp_path, monkeypatch):
    source = re.search(r"this is a whole one:\n\n```python\n(.*?)```", README, re.DOTALL).group(1)
    namespace = {}
    exec(compile(source, "README.md", "exec"), namespace)
    exercise = namespace["causal_mask"]
    assert not list(complaints(exercise))
    monkeypatch.setattr(judging, "get", lambda name: exercise)
    for mistake in exercise.mistakes:
        assert judging.judge(exercise.name, mistake.answer, hidden=True, seed=3).diagnosis == mistake.name
    for right in exercise.right:
        assert judging.judge(exercise.name, right.answer, hidden=True, seed=3).points == exercise.max_points
