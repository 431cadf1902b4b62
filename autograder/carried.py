"""Functions lent to another process, through which gradients go as through one's own.

`lendable` is said on the side that lends, `carrying` on the side that calls.
"""

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from .observe import copied, is_float


def lendable(function):
    """The function, and what a backward pass asks of it; the two are lent together."""

    def backward(arguments, keywords, gradients):
        """The gradients of the floating-point tensors among the arguments, in their order; None where there is none."""
        with torch.enable_grad():
            arguments, keywords = tree_map(followed, (arguments, keywords))
            inputs = [x for x in tree_leaves((arguments, keywords)) if is_float(x)]
            pairs = zip(tree_leaves(function(*arguments, **keywords)), gradients, strict=True)
            outputs = {output: gradient for output, gradient in pairs if output.requires_grad}
            if not outputs:
                return [None] * len(inputs)
            return list(torch.autograd.grad(list(outputs), inputs, list(outputs.values()), allow_unused=True))

    return function, backward


def carrying(function, backward):
    """A function that calls the lent one, and lets gradients through."""

    def called(*arguments, **keywords):
        leaves, form = tree_flatten((list(arguments), keywords))
        return Carried.apply(function, backward, form, *leaves)

    return called


class Carried(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, backward, form, *leaves):
        ctx.there, ctx.form = backward, form
        ctx.leaves = [own(x) for x in leaves]  # as they are now: the caller may write into them
        arguments, keywords = tree_unflatten(leaves, form)
        outputs = tree_map(own, function(*arguments, **keywords))  # what is received is a view, which autograd guards
        return tuple(outputs) if isinstance(outputs, list) else outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        arguments, keywords = tree_unflatten(ctx.leaves, ctx.form)
        found = iter(ctx.there(arguments, keywords, list(gradients)))
        return None, None, None, *(next(found) if is_float(x) else None for x in ctx.leaves)


def own(x):
    return copied(x, x.dtype) if torch.is_tensor(x) else x


def followed(x):
    """A copy of a floating-point tensor, from which autograd begins."""
    return copied(x, x.dtype).requires_grad_() if is_float(x) else x
