"""What is told to the person at the keyboard, in one sentence and without a traceback."""


class BadInput(ValueError):
    """Something asked for or given cannot be; the message names it, what was seen, what is wanted, how to mend it."""
