"""Stands for the course's autograder where a submission runs."""


def check(name, answer):
    """Says nothing about the answer: the grader asks it, from outside, on inputs of its own."""
    print(f"{name}: the grader will answer.")
