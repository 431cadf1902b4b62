"""The marks of a submission as they stand in nbgrader's gradebook: what is earned, what waits, what is taken back."""

from .annotate import pending


def totals(submission, withheld) -> dict:
    """Points as nbgrader exports them, and those that wait: for a person, or for a GPU. `withheld`: of some cells."""
    waiting = [grade for grade in grades(submission) if grade.needs_manual_grade and grade.manual_score is None]
    points = sum(withheld.get(grade.name, grade.max_score if grade.auto_score is None else 0.0) for grade in waiting)
    penalty = sum(notebook.late_submission_penalty or 0.0 for notebook in submission.notebooks)
    earned = max(0.0, submission.score - penalty)
    return {"points": earned, "max_points": submission.max_score, "pending_points": points}


def grades(submission):
    return [grade for notebook in submission.notebooks for grade in notebook.grades]


def automatic(submission) -> dict:
    return {grade.name: grade.auto_score for grade in grades(submission)}


def withhold(submission, check):
    """The points earned stand; a person is asked to look, and told why beside the answer."""
    for grade in grades(submission):
        if grade.name == check["cell"]:
            grade.needs_manual_grade = True
            if check["pending_points"] == check["max_points"]:
                grade.auto_score = None  # nothing is decided
    for comment in (comment for notebook in submission.notebooks for comment in notebook.comments):
        if comment.name == check["answer"]:
            comment.auto_comment = pending(check)


def withdraw(submission, score):
    """The automatic marks go, or become `score`. What a person gave is theirs."""
    for grade in grades(submission):
        grade.auto_score, grade.needs_manual_grade = score, score is None
