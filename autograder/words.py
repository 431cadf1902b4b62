"""Numbers with their nouns."""


def count(number, noun):
    """`1 point`, `3 points`."""
    return f"{number} {noun}{'s' * (number != 1)}"
