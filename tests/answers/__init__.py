"""Answers that the judge has not seen, a file a chapter: what `test_held_out.py` judges."""

from typing import NamedTuple


class Held(NamedTuple):
    name: str
    answer: object
    true: frozenset = frozenset()  # the listed mistakes that may be named, since they are true of it


class Sheet:
    """The answers to a chapter's exercises, by exercise."""

    def __init__(self, chapter):
        self.chapter = chapter
        self.mistakes = {}  # second implementations of listed mistakes
        self.unlisted = {}  # wrong in a way that no list foresees
        self.rights = {}  # unusual, and right
        self.pairs = {}  # two mistakes at once

    def mistake(self, exercise, name):
        """Decorate a second implementation of the listed mistake `name`; several of one are welcome."""
        return self.adder(self.mistakes, exercise, true=(name,))

    def wrong(self, exercise, *true, name=""):
        return self.adder(self.unlisted, exercise, name, true)

    def right(self, exercise, name=""):
        return self.adder(self.rights, exercise, name)

    def pair(self, exercise, *names, also=()):
        """Decorate an answer that makes the mistakes `names` together; `also`: what this comes to by algebra."""
        return self.adder(self.pairs, exercise, " and ".join(names), (*names, *also))

    def adder(self, group, exercise, name="", true=()):
        def add(answer):
            group.setdefault(f"{self.chapter}/{exercise}", []).append(
                Held(name or answer.__name__, answer, frozenset(true))
            )
            return answer

        return add
