"""One case, drawn: its inputs, what the reference and the mistakes do on them, and how near is the same.

Tolerance is derived, not chosen. A right answer may differ from the exact result by what rounding does: the formula run
at the case's dtype, and the formula run exactly on inputs moved by half a unit in the last place. A multiple of the
largest of these is allowed.
"""

import inspect
import re
import textwrap
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch.utils._pytree import tree_leaves, tree_map

from .draw import Draw
from .errors import BadInput
from .exercise import BF16, F16, F32
from .observe import Look, Seen, copied, is_float, observe

MULTIPLE = {F32: 24, F16: 6, BF16: 6}  # of the rounding error; right answers were measured to stay below 5.5
NUDGES = 4  # how often the inputs are moved to see what rounding does; half as often for a mistake
MARGIN = {F32: 50, F16: 20, BF16: 4}  # tolerances that a trivial answer must lie away, else the draw is no use
REDRAWS = 10
ROUGHLY = 1000  # tolerances of the reference: an answer further away than that is another
FAR = float("inf")


@dataclass
class Expected:
    """What an implementation does on a case, and for each output how far from it is still the same."""

    seen: Seen
    tolerance: tuple


class Planted:
    """A function that is an argument of a case. Its name and source tell nothing, and no gradient flows through it: the
    same as when the answer lives in another process and calls back."""

    __slots__ = ("_call",)

    def __init__(self, function):
        self._call = function

    def __call__(self, *args, **kwargs):
        if set(kwargs) & set(getattr(self._call, "keywords", ())):  # what a planted function is made with is our affair
            raise TypeError(f"there is no argument {', '.join(kwargs)}")
        args, kwargs = tree_map(lambda x: x.detach().clone() if torch.is_tensor(x) else x, (args, kwargs))
        return tree_map(lambda x: x.detach() if torch.is_tensor(x) else x, self._call(*args, **kwargs))


class Trial:
    """A case on its inputs. What a mistake would do is computed when first asked for, and kept."""

    weak = False  # whether trivial answers come near on every draw tried
    key = None  # what it was drawn under

    def __init__(self, exercise, case, inputs):
        self.exercise, self.case, self.inputs, self.known, self.ran = exercise, case, inputs, {}, {}
        self.reference = self.expect(exercise.reference, exact=True)

    @classmethod
    def drawn(cls, exercise, case, key):
        """The first draw under `key` that tells right from trivial; the last one, called weak, when none does."""
        for attempt in range(REDRAWS):
            trial = cls(exercise, case, drawn(exercise, case, (key, attempt)))
            trial.require_sound()
            trial.key, trial.weak = key, not trial.shows()
            if not trial.weak:
                break
        return trial

    @cached_property
    def others(self):
        """Two more draws of the same case."""
        keys = [] if self.key is None else [(self.key, "other", i) for i in range(2)]
        return [Trial(self.exercise, self.case, drawn(self.exercise, self.case, key)) for key in keys]

    def __str__(self):
        return f"{self.exercise.name}, case {self.case.name}"

    def require_sound(self):
        """The reference does what the case says: it raises the wanted exception, or returns what `returns` names."""
        seen, wanted = self.reference.seen, self.case.raises
        if (seen.error and seen.error[0]) != (wanted and wanted.__name__):
            did = f"raises {': '.join(seen.error)}" if seen.error else "returns something"
            raise BadInput(f"{self}: the reference {did}; the case wants {wanted.__name__ if wanted else 'outputs'}")
        for (name, axes), output in zip(self.named.items(), seen.outputs, strict=True):
            if axes and len(axes) != output.ndim:
                raise BadInput(f"{self}: {name} has shape {tuple(output.shape)}, but its letters are {' '.join(axes)}")

    @cached_property
    def look(self):
        case, drive = self.case, self.exercise.drive
        source = textwrap.dedent(inspect.getsource(drive)) if drive else ""
        return Look(
            gradient=case.gradient, drive=source, largest=case.largest is not None, kept=case.kept is not None,
            launches=case.launches, unchanged=self.kept_as_given, raises=case.raises.__name__ if case.raises else "",
        )  # fmt: skip

    @property
    def kept_as_given(self):
        """The names of the inputs that may not be written into."""
        return tuple(self.inputs) if self.case.unchanged is True else tuple(self.case.unchanged or ())

    @property
    def named(self):
        """Name -> axes of what is looked at: outputs, gradients, or the items of one list."""
        if self.case.gradient:
            return {f"the gradient of {name}": self.exercise.takes.get(name, []) for name in self.case.gradient}
        returns, n = self.exercise.returns, len(self.reference.seen.outputs)
        if len(returns) == n:
            return returns
        return {f"{name}[{i}]": axes for name, axes in returns.items() for i in range(n)}

    def see(self, answer, exact=False, nudge=None):
        """What one of our own implementations does; exact: in float64 throughout, also what it makes itself."""
        inputs = cast(self.inputs, torch.float64) if exact else self.inputs
        return observe(answer, tree_map(nudge, inputs) if nudge else inputs, replace(self.look, exact=exact))

    def expect(self, answer, exact=False):
        """What `answer` does, and its tolerances. A mistake is taken at the case's dtype: it may be of precision."""
        rounded, true = self.see(answer), self.see(answer, exact=True)
        moves = (NUDGES if exact else NUDGES // 2) if any(map(is_float, tree_leaves(self.inputs))) else 0
        moved = [self.see(answer, exact=True, nudge=self.nudge(i)) for i in range(moves)]
        if exact and rounded.error != true.error:
            raise BadInput(f"{self}: the reference gives {rounded.error} at {self.case.dtype}, {true.error} in float64")
        seen = replace(true, kinds=rounded.kinds) if exact else rounded
        return Expected(seen, tuple(self.tolerance(i, seen, true, [rounded, *moved]) for i in range(len(seen.outputs))))

    def tolerance(self, i, seen, true, others):
        """Next to nothing for whole numbers and booleans, double precision for plain floats, else from rounding."""
        size = rms(seen.outputs[i])
        if not is_real(seen.kinds[i]):
            return 1e-9
        if seen.kinds[i] == "float":
            return 1e-9 * size + 1e-30
        others = [o.outputs[i] for o in others if len(true.outputs) > i < len(o.outputs)]
        moved = [rms(true.outputs[i], o) for o in others if o.shape == true.outputs[i].shape]
        return MULTIPLE[self.case.dtype] * max([*moved, self.ulp / 2 * size, 1e-30])

    @property
    def ulp(self):
        return torch.finfo(self.case.dtype).eps

    def nudge(self, i):
        draw = Draw("nudge", i)
        return lambda x: x * (1 + self.ulp / 2 * draw.signs(*x.shape)) if is_float(x) else x

    def shows(self):
        """Whether trivial answers (zeros, the best constant, the mean along axis −2) lie far enough from the reference;
        where many answers are right, whether every mistake shows."""
        if self.exercise.predicate:
            return all(self.fault(self.see(m.answer)) == m.name for m in self.exercise.mistakes)
        seen = self.reference.seen
        if not all(t.ndim > 1 and t.numel() > 1 and is_real(k) for t, k in zip(seen.outputs, seen.kinds, strict=True)):
            return True
        outputs = list(zip(seen.outputs, self.reference.tolerance, strict=True))
        trivial = [
            distance(f(t), t, tolerance) for t, tolerance in outputs for f in (torch.zeros_like, constant, along_rows)
        ]
        return bool(seen.error) or min(trivial) >= MARGIN[self.case.dtype]

    def gap(self, seen, expected=None):
        """How far `seen` lies from what is expected (by default of the reference), in tolerances; to 1 is the same."""
        expected = expected or self.reference
        want = expected.seen
        if seen.error or want.error:
            return 0.0 if same_error(seen, want, by_type=expected is self.reference) else FAR
        if [t.shape for t in seen.outputs] != [t.shape for t in want.outputs]:
            return FAR
        if (self.case.unchanged and seen.changed != want.changed) or (
            self.case.same_dtype and seen.kinds != want.kinds
        ):
            return FAR
        return max(map(distance, seen.outputs, want.outputs, expected.tolerance), default=0.0)

    def passes(self, seen):
        """Whether the answer is right here; where many are, the predicate decides in the reference's place."""
        right = self.fault(seen) is None if self.exercise.predicate else self.gap(seen) <= 1
        return right and self.within(seen)

    def fault(self, seen):
        """The mistake that the predicate finds in the outputs, if any; "" when they have not even the right form."""
        form = [(t.shape, bool(t.isfinite().all())) for t in seen.outputs]
        if seen.error or form != [(t.shape, True) for t in self.reference.seen.outputs]:
            return ""
        return self.exercise.predicate(cast(self.inputs, torch.float64), *seen.outputs)

    def within(self, seen):
        """The limits on what is used beside the outputs."""
        limits = ((self.case.largest, seen.largest), (self.case.kept, seen.kept))
        small = all(limit is None or used <= limit(**self.inputs) for limit, used in limits)
        return small and (seen.launches > 0 or not self.case.launches)

    def expected(self, mistake):
        if mistake.name not in self.known:
            self.known[mistake.name] = self.expect(mistake.answer)
        return self.known[mistake.name]

    def matches(self, seen, mistake):
        """Whether `seen` is what the mistake would have done."""
        if self.exercise.predicate:
            return self.fault(seen) == mistake.name
        if not self.resembles(seen, mistake):
            return False
        theirs = self.expected(mistake)
        return self.within(seen) == self.within(theirs.seen) and self.gap(seen, theirs) <= 1

    def resembles(self, seen, answer):
        """Whether one run of `answer` comes near what was seen: rules out nearly all, at a sixth of the price."""
        if answer.name not in self.ran:
            self.ran[answer.name] = self.see(answer.answer)
        theirs, tolerance = self.ran[answer.name], self.reference.tolerance
        if len(theirs.outputs) != len(tolerance):
            return (seen.error is None) == (theirs.error is None) and len(seen.outputs) == len(theirs.outputs)
        tolerance = [max(t, self.ulp * rms(output)) for t, output in zip(tolerance, theirs.outputs, strict=True)]
        return self.gap(seen, Expected(theirs, tuple(tolerance))) <= ROUGHLY


def drawn(exercise, case, key):
    """The arguments in the signature's order, at the case's dtype; a default only where a later one is given."""
    try:
        given = case.inputs(Draw(exercise.name, case.inputs.__name__, *key))
        bound = exercise.signature.bind(**given)
    except Exception as problem:  # the author's
        where = f"{exercise.name}, case {case.name}"
        raise BadInput(f"{where}: its inputs cannot be drawn: {type(problem).__name__}: {problem}") from problem
    bound.apply_defaults()
    names = list(bound.arguments)
    names = names[: 1 + max(map(names.index, given))]
    inputs = {name: bound.arguments[name] for name in names}
    return cast({name: Planted(x) if callable(x) else x for name, x in inputs.items()}, case.dtype)


def same_error(seen, want, by_type):
    """A refusal is right by its type; which mistake it is, is told by the words too (numbers aside)."""
    if not (seen.error and want.error) or seen.error[0] != want.error[0]:
        return False
    return by_type or plain(seen.error[1]) == plain(want.error[1])


def plain(message):
    return re.sub(r"[\d.]+", "#", message)[:60]


def rms(a, b=0.0):
    """Root mean square of the finite differences; equal infinities are equal. Steadier than the maximum."""
    difference = torch.where(a == b, 0.0, a - b)
    difference = difference[torch.isfinite(difference)]
    return difference.square().mean().sqrt().item() if difference.numel() else 0.0


def distance(a, b, tolerance):
    same_form = torch.equal(a.isnan(), b.isnan()) and torch.equal(infinities(a), infinities(b))
    return rms(a, b) / tolerance if same_form else FAR


def infinities(t):
    return torch.where(t.isinf(), t, 0)


def constant(t):
    finite = t[torch.isfinite(t)]
    return torch.full_like(t, finite.mean().item() if finite.numel() else 0.0)


def along_rows(t):
    return t.mean(-2, keepdim=True).expand(t.shape) if t.shape[-2] > 1 else torch.zeros_like(t)


def is_real(kind):
    return "float" in kind


def cast(inputs, dtype):
    return tree_map(lambda x: copied(x, dtype) if is_float(x) else x, inputs)
