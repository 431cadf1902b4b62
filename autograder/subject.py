"""Where an answer comes from. The judge is the same for every subject: it only asks what `see` saw."""

from .observe import Look, Seen, observe


class Subject:
    def see(self, inputs: dict, look: Look, given: dict | None = None) -> Seen:
        """What the answer does when called by position on `inputs` (name -> value, in the order of the signature).

        given: functions lent to it under the names of its own helpers.
        """
        raise NotImplementedError


class InProcess(Subject):
    """A function or class of this process: the student's own notebook, the reference, a mistake."""

    def __init__(self, answer):
        self.answer = answer

    def see(self, inputs, look, given=None):
        return observe(self.answer, inputs, look, given)
