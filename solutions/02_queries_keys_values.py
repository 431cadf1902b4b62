# %% [markdown]
# # Problem set 02: queries, keys, values
#
# You write attention itself: the three projections, the measurement behind $\sqrt{D}$, the operation with its mask,
# and its gradient by hand.
#
# {{introduction}}

# %%
import math

import torch

from autograder import check

# %% [markdown]
# ## Warm-up: find the slips
#
# No points; pencil and paper will do.
# Somebody works out attention for the word *barks* in *the dog barks*, with $D = 4$:
#
# > 1. The query of *barks* has the dot products 2, 4 and 1 with the keys of *the*, *dog* and *barks*.
# > 2. They sum to 7, so the weights are 2/7 = 0.29, 4/7 = 0.57 and 1/7 = 0.14.
# > 3. The output is 0.29 k_the + 0.57 k_dog + 0.14 k_barks.
#
# The weights are positive and sum to 1, so nothing looks wrong. Yet there are three slips.
# Find them, and work out the right weights.

# %% tags=["try"]
# try it
products = torch.tensor([2.0, 4.0, 1.0])
print(products / products.sum())

# %% [markdown]
# <details><summary>The three slips</summary>
#
# * The scores 2, 4 and 1 are not divided by $\sqrt{D} = 2$. The scaled scores are 1, 2 and 0.5.
# * The scores are divided by their sum. Softmax exponentiates the scaled scores first:
#   $e^1, e^2, e^{0.5}$ over their sum is 0.231, 0.629, 0.140.
#   (Without the exponential, a negative score would be a negative weight.)
# * The output mixes keys. Keys are what a query is compared with; what is mixed is the values:
#   0.231 v_the + 0.629 v_dog + 0.140 v_barks.
#
# Without $\sqrt{D}$ the softmax would give 0.114, 0.844, 0.042: the same order, but much sharper.
# </details>

# %% [markdown]
# ## 1. Three projections of one input
#
# {{ch02/project_qkv}} · easy · 5 minutes
#
# Write `project_qkv`. Every position's vector $x$, a row of width $E$, is multiplied by three matrices:
#
# $$q = x\,W_q, \qquad k = x\,W_k, \qquad v = x\,W_v.$$
#
# Rows times matrices, with the matrix on the right: `w_q` and `w_k` are `(E, D)`, `w_v` is `(E, Dv)`.
# `Dv` need not be `D`.
#
# *Judged:* the three values, in the order q, k, v, for any sizes, 1 too, in float32, float16 and bfloat16.
# A tuple or a list of them is as good. Nothing that you are given changes.

# %% [markdown]
# <details><summary>Hint: which product</summary>
#
# `@` multiplies the last two axes and repeats over the ones before. `(B, N, E) @ (E, D)` is `(B, N, D)`.
# </details>
#
# <details><summary>Hint: nothing else</summary>
#
# No transpose, no bias, no scaling: those come later or not at all.
# </details>


# %% tags=["solution"]
def project_qkv(x, w_q, w_k, w_v):
    """Return the queries, keys and values of x.

    x: (B, N, E); w_q, w_k: (E, D); w_v: (E, Dv)
    returns q (B, N, D), k (B, N, D), v (B, N, Dv)
    """
    ### BEGIN SOLUTION
    return x @ w_q, x @ w_k, x @ w_v
    ### END SOLUTION


# %% tags=["try"]
# try it: the shapes should be (2, 5, 4), (2, 5, 4) and (2, 5, 3)
x = torch.randn(2, 5, 6)
for part in project_qkv(x, torch.randn(6, 4), torch.randn(6, 4), torch.randn(6, 3)):
    print(tuple(part.shape))

# %% tags=["check"]
check("ch02/project_qkv", project_qkv)

# %% [markdown]
# ## 2. How widely dot products spread
#
# {{ch02/dot_product_variance}} · easy · 10 minutes
#
# Attention divides by $\sqrt{D}$ because dot products of longer vectors spread more widely. Here you measure how much.
#
# Write `dot_product_variance`. Row $m$ of `q` and row $m$ of `k` are one pair, with the score $s_m = q_m \cdot k_m$.
# Return the sample variance of the $M$ scores:
#
# $$\frac{1}{M-1} \sum_m (s_m - \bar s)^2, \qquad \bar s = \frac{1}{M} \sum_m s_m.$$
#
# *Judged:* the value, a tensor of shape `()`, with the divisor $M - 1$. Nothing is divided by $\sqrt{D}$ here.

# %% [markdown]
# <details><summary>Hint: the scores</summary>
#
# You need M scores, one a pair, not the M × M scores of every row with every other.
# Multiply elementwise, then sum over one axis.
# </details>
#
# <details><summary>Hint: the divisor</summary>
#
# Look up what `torch.var` divides by when you leave its argument `correction` alone.
# </details>


# %% tags=["solution"]
def dot_product_variance(q, k):
    """Return the sample variance (divisor M − 1) of the M scores q·k.

    q, k: (M, D), M pairs of vectors
    returns a tensor of shape ()
    """
    ### BEGIN SOLUTION
    scores = (q * k).sum(-1)  # (M,)
    return scores.var()
    ### END SOLUTION


# %% tags=["try"]
# try it: which of the two columns stays the same as D grows?
print("             q·k    q·k/√D")
for D in (1, 4, 16, 64, 256):
    q, k = torch.randn(4096, D), torch.randn(4096, D)
    print(f"D = {D:3}: {dot_product_variance(q, k):8.2f} {dot_product_variance(q / math.sqrt(D), k):9.2f}")

# %% tags=["check"]
check("ch02/dot_product_variance", dot_product_variance)

# %% [markdown]
# ## 3. Scaled dot-product attention
#
# {{ch02/scaled_dot_product_attention}} and {{02-queries-keys-values#masks}} · medium · 40 minutes
#
# Write `scaled_dot_product_attention`. Each query is compared with every key; a softmax over the keys makes weights;
# the weights mix the values:
#
# $$P = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{D}}\right), \qquad O = P\,V.$$
#
# Return both, the output `(B, H, N, Dv)` and the weights `(B, H, N, S)`.
#
# A `mask` is boolean, and `True` means *may attend*. It broadcasts to `(B, H, N, S)`:
# one of shape `(N, S)` or `(B, 1, 1, S)` is as good.
# A key that a query may not attend to gets the weight 0, and the others still sum to 1.
# A query that may attend to nothing gets zeros, in the weights and in the output.
#
# *Judged:*
#
# * **values**, 2 points: for any sizes: N ≠ S, D ≠ Dv, and sizes of 1.
# * **masking**, 2 points: masks of several shapes, and queries that may attend to nothing.
# * **stability**, 1 point: very large scores, where `exp` alone would overflow.
# * **half precision**, 1 point: float16 and bfloat16 inputs give outputs of the same type.
# * **gradient**, 1 point: gradients are right, and finite even where a query may attend to nothing.
# * **inputs unchanged**, 1 point: q, k, v and mask are afterwards what they were before.
#
# Each of these also asks for the right values.

# %% [markdown]
# <details><summary>Hint: the scores</summary>
#
# `k.transpose(-2, -1)` exchanges the last two axes, so `q @ k.transpose(-2, -1)` is `(B, H, N, S)`.
# A `reshape` to that shape would shuffle the numbers instead.
# D is the last size of `q`.
# </details>
#
# <details><summary>Hint: where the mask goes</summary>
#
# Before the softmax. A weight set to 0 after it leaves the others summing to less than 1.
# `masked_fill` returns a new tensor; `masked_fill_` changes the one it is called on.
# </details>
#
# <details><summary>Hint: a query that may attend to nothing</summary>
#
# A row whose scores are all −∞ comes out of the softmax as NaN. Put zeros there afterwards with a second `masked_fill`.
# Fill with −∞; do not add it: added, the NaN comes back in the gradient although the output looks right.
# </details>


# %% tags=["solution"]
def scaled_dot_product_attention(q, k, v, mask=None):
    """Return the output and the weights of attention.

    q: (B, H, N, D); k: (B, H, S, D); v: (B, H, S, Dv)
    mask: boolean, True = may attend, broadcastable to (B, H, N, S); None lets every query attend to every key
    returns output (B, H, N, Dv), weights (B, H, N, S); zeros in both where a query may attend to nothing
    """
    ### BEGIN SOLUTION
    scaled = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # (B, H, N, S); dividing first keeps float16 in range
    if mask is None:
        weights = scaled.softmax(-1)
    else:
        weights = scaled.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0)  # a row of −∞ alone is NaN
    return weights @ v, weights
    ### END SOLUTION


# %% tags=["try"]
# try it: PyTorch's own attention gives the output, though not the weights
q, k, v = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 6)
mask = torch.rand(5, 7) < 0.7
mask[:, 0] = True  # here every query may attend to something
theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
ours, weights = scaled_dot_product_attention(q, k, v, mask)
print("largest difference:", (ours - theirs).abs().max().item())

# %% tags=["check"]
check("ch02/scaled_dot_product_attention", scaled_dot_product_attention)

# %% [markdown]
# ## 4. The gradient, by hand
#
# {{ch02/attention_backward}} · medium · 25 minutes
#
# Write `attention_backward`. Somewhere behind attention stands a loss $L$.
# You are given $\partial L / \partial O$, called `d_out`;
# return $\partial L / \partial Q$, $\partial L / \partial K$ and $\partial L / \partial V$,
# for attention without a mask.
#
# With the scaled scores $A = QK^\top / \sqrt{D}$, the weights $P = \operatorname{softmax}(A)$ along each row
# and $O = PV$, go backwards one step at a time: from $O$ to $V$ and $P$, from $P$ to $A$, from $A$ to $Q$ and $K$.
# The middle step is the softmax, whose Jacobian for one row $p$ is $\operatorname{diag}(p) - p\,p^\top$.
#
# Compute it yourself, with matrix products and sums: no `backward()`, no `torch.autograd`.
# The check sees only the gradients: autograd would earn the points as well, and teach you nothing.
#
# *Judged:* the three gradients, in the order d_q, d_k, d_v, each of the shape of its input, also when
# a size is 1. Nothing that you are given changes.

# %% [markdown]
# <details><summary>Hint: a matrix product backwards</summary>
#
# If $Z = XY$, then $\frac{\partial L}{\partial X} = \frac{\partial L}{\partial Z} Y^\top$
# and $\frac{\partial L}{\partial Y} = X^\top \frac{\partial L}{\partial Z}$.
# No other arrangement has fitting shapes when all sizes differ.
# You use this pair of rules twice: for $PV$, and for $QK^\top$.
# </details>
#
# <details><summary>Hint: the softmax backwards</summary>
#
# Multiply the Jacobian with the row $g$ of $\partial L/\partial P$ on paper:
# $(\operatorname{diag}(p) - p\,p^\top)\,g = p \circ (g - p \cdot g)$.
# The number $p \cdot g$ is one for each row, so keep that axis when you sum.
# </details>
#
# <details><summary>Hint: the factor that gets lost</summary>
#
# $1/\sqrt{D}$ stands between $A$ and $QK^\top$, so it stands in the gradients of both $Q$ and $K$,
# and not in that of $V$.
# </details>


# %% tags=["solution"]
def attention_backward(q, k, v, d_out):
    """Return the gradients of a loss with respect to q, k and v, given its gradient with respect to attention's output.

    q: (B, H, N, D); k: (B, H, S, D); v: (B, H, S, Dv); d_out: (B, H, N, Dv)
    returns d_q (B, H, N, D), d_k (B, H, S, D), d_v (B, H, S, Dv)
    """
    ### BEGIN SOLUTION
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1)  # (B, H, N, S)
    d_v = weights.transpose(-2, -1) @ d_out
    d_weights = d_out @ v.transpose(-2, -1)  # (B, H, N, S)
    d_scaled = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    d_scores = d_scaled / math.sqrt(q.shape[-1])
    return d_scores @ k, d_scores.transpose(-2, -1) @ q, d_v
    ### END SOLUTION


# %% tags=["try"]
# try it: PyTorch differentiates its own attention; compare
q, k, v = (torch.randn(2, 3, n, d, requires_grad=True) for n, d in ((5, 8), (7, 8), (7, 6)))
output = torch.nn.functional.scaled_dot_product_attention(q, k, v)
d_out = torch.randn_like(output)
theirs = torch.autograd.grad(output, (q, k, v), d_out)
with torch.no_grad():
    ours = attention_backward(q, k, v, d_out)
for name, a, b in zip(("d_q", "d_k", "d_v"), ours, theirs, strict=True):
    print(f"{name}: largest difference {(a - b).abs().max().item():.1e}")

# %% tags=["check"]
check("ch02/attention_backward", attention_backward)
