"""Take one head away from a model, and see what it says then. The model is an argument, planted by the judge."""

import torch

from autograder.exercise import exercise


@exercise(
    "ch09",
    points={"zero": 1, "mean": 2},
    returns="logits: B N V",
    takes="tokens: B N",
    see="09-reading-attention#ablation",
)
def ablate_head(model, tokens, layer, head, how):
    """The model's logits when the output of one head is zero everywhere, or its mean over batch and positions.

    model(tokens, edit=None): edit(layer, heads) is called in every layer with its heads' outputs, (B, H, N, D), and
    returns what is used in their place.
    """

    def edit(at, heads):
        if at == layer:
            heads = heads.clone()
            heads[:, head] = heads[:, head].mean((0, 1)) if how == "mean" else 0.0
        return heads

    return model(tokens, edit)


def planted(draw, layers=3, H=3, E=10, D=4, V=11):
    """A model of attention layers on a residual stream, with weights of its own."""
    table, unembed = draw.normal(V, E), draw.normal(E, V)
    w = [{name: draw.normal(H, E, D, scale=0.6) for name in "qkvo"} for _ in range(layers)]

    def model(tokens, edit=None):
        x = table[tokens].to(torch.get_default_dtype())  # float64 for the reference, else float32
        for layer in range(layers):
            q, k, v = (torch.einsum("bne,hed->bhnd", x, w[layer][name].to(x.dtype)) for name in "qkv")
            heads = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            heads = edit(layer, heads) if edit else heads
            x = x + torch.einsum("bhnd,hed->bne", heads, w[layer]["o"].to(x.dtype))
        return x @ unembed.to(x.dtype)

    return model


def asked(draw, how):
    B, N = draw.sizes("B N")
    return {
        "model": planted(draw),
        "tokens": draw.integers(0, 11, B, N),
        "layer": draw.choice((1, 2)),
        "head": draw.choice((1, 2)),
        "how": how,
    }


@ablate_head.case("zero")
def to_zero(draw):
    return asked(draw, "zero")


@ablate_head.case("mean")
def to_the_mean(draw):
    return asked(draw, "mean")


def ablate(
    model, tokens, layer, head, how, *, layers="this", first=0, axis=1, over=(0, 2), always=None, shift=0, one=None
):
    """One implementation with a knob for each slip."""

    def edit(at, heads):
        if layers == "this" and at != layer - first:
            return heads
        heads = heads.clone()
        mine = heads.movedim(axis, 0)[head + shift]
        mean = heads.mean(over, keepdim=True).expand_as(heads).movedim(axis, 0)[head + shift]
        heads.movedim(axis, 0)[head + shift] = torch.zeros_like(mine) if (always or how) == "zero" else mean
        return heads

    return model(tokens, edit)


slip = ablate_head.slips(ablate)
slip(
    "zero_for_mean",
    "The head is set to zero, whatever is asked. With how = 'mean' it is set to its mean.",
    always="zero",
)
slip(
    "mean_for_zero",
    "The head is set to its mean, whatever is asked. With how = 'zero' it is set to zero.",
    always="mean",
)
slip("every_layer", "The head is taken away in every layer. Take it away in one.", layers="all")
slip("positions_for_heads", "A position is taken away, not a head: heads are axis 1 of (B, H, N, D).", axis=2)
slip("layers_counted_from_one", "The layer before the wanted one is changed: layers are counted from 0.", first=1)
slip("counted_from_one", "The head before the wanted one is taken away: heads are counted from 0.", shift=-1)
slip(
    "mean_of_each_item",
    "The mean is taken over positions for each batch item alone. Take one mean over batch and positions.",
    over=(2,),
)
slip(
    "mean_of_each_position",
    "The mean is taken over the batch for each position alone. Take one mean over batch and positions.",
    over=(0,),
)
slip(
    "mean_of_each_vector",
    "The mean is taken over the head's components too. It is a vector of D means over batch and positions.",
    over=(0, 2, 3),
)
slip(
    "mean_of_all_heads", "The mean is taken over all heads. Take the mean of the head that is removed.", over=(0, 1, 2)
)


@ablate_head.mistake
def nothing_removed(model, tokens, layer, head, how):
    """Nothing is taken away: the logits are those of the whole model."""
    return model(tokens)


@ablate_head.right
def by_a_mask(model, tokens, layer, head, how):
    def edit(at, heads):
        mask = torch.zeros(heads.shape[1], 1, 1, dtype=torch.bool)
        mask[head] = at == layer
        return torch.where(mask, heads.mean((0, 2), keepdim=True) if how == "mean" else 0.0, heads)

    return model(tokens, edit)


@ablate_head.right
def mean_recorded_first(model, tokens, layer, head, how):
    kept = {}

    def record(at, heads):
        kept[at] = heads
        return heads

    def replace(at, heads):
        if at == layer:
            flat = kept[layer][:, head].reshape(-1, heads.shape[-1])
            heads[:, head] = flat.sum(0) / len(flat) if how == "mean" else 0
        return heads

    model(tokens, record)
    return model(tokens, edit=replace)
