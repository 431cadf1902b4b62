# %% [markdown]
# # Problem set 01: soft retrieval
#
# You write a dictionary that returns a mixture, and what it is made of: the softmax, its derivative,
# and two other ways to say how well a query fits a key.
#
# {{introduction}}

# %%
import matplotlib.pyplot as plt
import torch

from autograder import check

# %% [markdown]
# ## Warm-up: three guesses
#
# No points. A query fits three keys with the scores 2, 1 and 0. The softmax turns them into the weights
# 0.665, 0.245 and 0.090. Write down what you expect before you run the next cell:
#
# > 1. Every score is raised by 1. Which weights grow?
# > 2. Every score is doubled. Does the first weight double, too?
# > 3. A fourth key arrives, with the score 0. Who pays for its weight, and in what proportion?

# %% tags=["try"]
# try it
scores = torch.tensor([2.0, 1.0, 0.0])
print("as they are  ", scores.softmax(0))
print("raised by 1  ", (scores + 1).softmax(0))
print("doubled      ", (scores * 2).softmax(0))
print("with a fourth", torch.tensor([2.0, 1.0, 0.0, 0.0]).softmax(0))

# %% [markdown]
# <details><summary>What you saw</summary>
#
# 1. None. $e^{s+1} = e \cdot e^s$, and the factor $e$ cancels in the division.
#    Only differences of scores count; exercise 1 lives on that.
# 2. No: 0.665 becomes 0.867. What is squared is the *ratio* of two weights: $e = 2.7$ becomes $e^2 = 7.4$.
#    To double all scores is to halve the temperature.
# 3. All three pay, each the same share of what it has: 0.665, 0.245 and 0.090 become 0.610, 0.225 and 0.083.
#    The newcomer needs no good score for that. A key is weighed against all others.
# </details>

# %% [markdown]
# ## 1. Softmax
#
# {{ch01/softmax}} · easy · 15 minutes
#
# Write `softmax`. Along the axis `dim`, each score becomes its exponential over the sum of the exponentials:
#
# $$w_i = \frac{e^{s_i}}{\sum_j e^{s_j}}.$$
#
# `dim` counts from the front, 0, 1, …, or from the end, −1, −2, ….
#
# *Judged:*
#
# * **values**, 1 point: along the last axis.
# * **any axis**, 1 point: along the first, a middle one, one counted from the end.
# * **stability**, 1 point: scores of ±10 000, in one tensor and in one row, where `exp` alone overflows.
# * **half precision**, 1 point: float16 and bfloat16 scores give weights of the same type, as float32 scores do;
#   how you compute them is up to you.
# * **inputs unchanged**, 1 point: the scores are afterwards what they were before.
#
# Each of these also asks for the right values.
# `torch.softmax` would earn the points, too; write it out once, to know what it does.

# %% [markdown]
# <details><summary>Hint: no overflow</summary>
#
# Recall your first guess: the same number taken off all scores of a row cancels.
# Which number makes sure that no exponent is above 0, and that one of them is 0, so that the sum is at least 1?
# It is a different one for each row.
# </details>
#
# <details><summary>Hint: which axis</summary>
#
# `sum` and `amax` take an axis, and drop it. With `keepdim=True` it stays, with size 1,
# and the result can be taken off, or divided by, along that axis.
# </details>
#
# <details><summary>Hint: inputs unchanged</summary>
#
# `scores -= …` and methods that end in `_`, as `exp_`, write into the tensor that the caller still holds.
# </details>


# %% tags=["solution"]
def softmax(scores, dim):
    """Return the weights along the axis dim: positive, and of sum 1 there.

    scores: a tensor of any shape; dim: one of its axes, negative ones count from the end
    returns a tensor of the shape and type of scores
    """
    ### BEGIN SOLUTION
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
    ### END SOLUTION


# %% tags=["try"]
# try it: float32 ends between e^88 and e^89; yet the three rows should be the same
print(torch.tensor([88.0, 89.0]).exp())
print(softmax(torch.tensor([[2.0, 1.0, 0.0], [10002.0, 10001.0, 10000.0], [-9998.0, -9999.0, -10000.0]]), dim=1))

# %% tags=["check"]
check("ch01/softmax", softmax)

# %% [markdown]
# ## 2. A soft dictionary
#
# {{ch01/soft_lookup}} · easy · 15 minutes
#
# Write `soft_lookup`. A dictionary compares a query with its keys and returns one value.
# This one returns a mixture of all values, in which well-fitting keys have the larger shares.
# With the keys $k_1, \dots, k_S$, the values $v_1, \dots, v_S$ and the temperature $T$,
#
# $$w_j = \frac{e^{q \cdot k_j / T}}{\sum_i e^{q \cdot k_i / T}}, \qquad o = \sum_j w_j\, v_j.$$
#
# Return both, the output `(Dv,)` and the weights `(S,)`, in this order.
# For the softmax, call yours or torch's.
#
# *Judged:*
#
# * **values**, 2 points: output and weights, for any sizes, 1 too.
# * **temperature**, 1 point: from a hundred-thousandth to a thousand. Nothing that you are given changes.
# * **stability**, 1 point: scores of ±10 000, and a temperature of a thousandth.
# * **gradient**, 1 point: gradients reach query, keys and values. They are what makes it *soft*: it can learn.

# %% [markdown]
# <details><summary>Hint: the scores</summary>
#
# You want S dot products, of each row of `keys` with `query`. A matrix times a vector is just that.
# </details>
#
# <details><summary>Hint: the temperature</summary>
#
# A low one makes differences large, so it divides. It acts on the scores; divided weights would not sum to 1.
# </details>
#
# <details><summary>Hint: gradients</summary>
#
# `item`, `tolist`, `numpy` and `detach` hand out the number and forget where it came from. Stay with tensors.
# </details>


# %% tags=["solution"]
def soft_lookup(query, keys, values, temperature=1.0):
    """Return the mixture of the values and the weights in it.

    query: (D,); keys: (S, D); values: (S, Dv); temperature: a number above 0
    returns output (Dv,), weights (S,)
    """
    ### BEGIN SOLUTION
    weights = softmax(keys @ query / temperature, dim=0)  # (S,)
    return weights @ values, weights
    ### END SOLUTION


# %% tags=["try"]
# try it: how high is the horizon in the north-north-east? No key says so; this dictionary mixes what it knows.
keys = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])  # north, east, south, west
values = torch.tensor([[300.0], [100.0], [20.0], [80.0]])  # metres
query = torch.tensor([0.4, 0.9])
print("temperature   north    east   south    west   height")
for temperature in (0.05, 0.2, 1.0, 5.0, 1000.0):
    output, weights = soft_lookup(query, keys, values, temperature)
    print(f"{temperature:11}", *(f"{weight:7.3f}" for weight in weights), f"{output.item():8.1f}")

# %% tags=["check"]
check("ch01/soft_lookup", soft_lookup)

# %% [markdown]
# ## 3. How weights answer to scores
#
# {{ch01/softmax_jacobian}} · medium · 15 minutes
#
# A network learns where to look by the derivatives of the weights with respect to the scores.
# There are $S \times S$ of them, since every score moves every weight:
#
# $$J_{ij} = \frac{\partial w_i}{\partial s_j}, \qquad J = \operatorname{diag}(w) - w\,w^\top.$$
#
# Write `softmax_jacobian`. It is given the weights; the scores are not needed any more.
# Derive the formula once more before you write it, without looking:
# with the quotient rule, once for $i = j$ and once for $i \neq j$.
#
# *Judged:* the matrix `(S, S)`, for any S, 1 too, for even and uneven weights, and where some are exactly 0.
# The weights themselves stay as they are.

# %% [markdown]
# <details><summary>Hint: the derivation</summary>
#
# Call the sum of the exponentials $Z$. With $i = j$ both numerator and $Z$ depend on $s_j$, which gives $w_i - w_i^2$.
# With $i \neq j$ only $Z$ does, which gives $-w_i w_j$.
# </details>
#
# <details><summary>Hint: a column times a row</summary>
#
# `w * w` is a vector. For all products of two entries, make one of them a column, `(S, 1)`,
# or look for the function named after the *outer* product.
# </details>


# %% tags=["solution"]
def softmax_jacobian(weights):
    """Return the derivatives of the weights with respect to the scores.

    weights: (S,), a softmax's
    returns (S, S), in row i and column j how weight i answers to score j
    """
    ### BEGIN SOLUTION
    return torch.diag(weights) - torch.outer(weights, weights)
    ### END SOLUTION


# %% tags=["try"]
# try it: what happens to the derivatives when the scores grow? Compare the last line with the first.
theirs = torch.autograd.functional.jacobian(lambda scores: scores.softmax(0), torch.tensor([2.0, 1.0, 0.0]))
print("PyTorch's differs by", (softmax_jacobian(torch.tensor([2.0, 1.0, 0.0]).softmax(0)) - theirs).abs().max().item())
for scale in (1, 2, 4, 8, 16):
    weights = (scale * torch.tensor([2.0, 1.0, 0.0])).softmax(0)
    print(f"scores times {scale:2}: largest derivative {softmax_jacobian(weights).abs().max():.7f}")

# %% tags=["check"]
check("ch01/softmax_jacobian", softmax_jacobian)

# %% [markdown]
# ## 4. Kernel regression
#
# {{ch01/kernel_regression}} · medium · 20 minutes
#
# Long before attention, statistics had a soft dictionary of its own.
# You have measured $y_1, \dots, y_S$ at the places $x_1, \dots, x_S$, and want to predict at a place $x$ in between.
# Take a mean of all measurements, in which near ones count more (Nadaraya 1964, Watson 1964):
#
# $$\hat y(x) = \frac{\sum_j K_j\, y_j}{\sum_j K_j},
# \qquad K_j = \exp\!\left(-\frac{(x - x_j)^2}{2\,h^2}\right).$$
#
# The bandwidth $h$ says what *near* means. Write `kernel_regression`, for N places at once.
#
# *Judged:*
#
# * **values**, 2 points: for any N and S, 1 too.
# * **bandwidth**, 1 point: narrow and wide ones, from a hundred-thousandth to a thousand, and from any zero:
#   years such as 2000. Nothing that you are given changes.
# * **far from every key**, 1 point: places from which every $K_j$ is too small for a float.
#   The formula has a value there, and it is neither 0 nor NaN.

# %% [markdown]
# <details><summary>Hint: all distances at once</summary>
#
# You want the difference of every place with every key, `(N, S)`.
# Give `x_query` a second axis of size 1, and subtract.
# </details>
#
# <details><summary>Hint: you know this quotient</summary>
#
# An exponential over a sum of exponentials: where did you meet it, and what are the scores here?
# </details>
#
# <details><summary>Hint: years</summary>
#
# Multiplied out, $(x - x_j)^2$ is the difference of numbers near $2000^2 = 4$ million, and float32 keeps seven digits
# of them: nothing is left of a few months. Subtract first. (`torch.cdist` multiplies out, from 26 places on.)
# </details>
#
# <details><summary>Hint: far away</summary>
#
# $e^{-200}$ rounds to 0 in float32, and 0/0 is NaN. A small number added to the denominator gives 0,
# which is wrong, too. Do what exercise 1 did about overflow; it helps here as well.
# </details>


# %% tags=["solution"]
def kernel_regression(x_query, x_keys, y_keys, bandwidth):
    """Return predictions at x_query from measurements y_keys at x_keys, by a Gaussian kernel.

    x_query: (N,); x_keys, y_keys: (S,); bandwidth: a number above 0
    returns (N,)
    """
    ### BEGIN SOLUTION
    distances = (x_query[:, None] - x_keys) / bandwidth  # (N, S)
    return softmax(-distances.square() / 2, dim=-1) @ y_keys
    ### END SOLUTION


# %% tags=["try"]
# try it: the dots are a sine with noise. Which curve would you trust, and what happens beyond the last dot?
x_keys = 6 * torch.rand(40)
y_keys = x_keys.sin() + 0.3 * torch.randn(40)
x_query = torch.linspace(-2, 8, 300)
curves = {bandwidth: kernel_regression(x_query, x_keys, y_keys, bandwidth) for bandwidth in (0.05, 0.4, 3.0)}
figure, panels = plt.subplots(1, 3, figsize=(10, 2.8), sharey=True)
for panel, (bandwidth, curve) in zip(panels, curves.items(), strict=True):
    panel.plot(x_keys, y_keys, "k.", x_query, curve, "-")
    panel.set_title(f"bandwidth {bandwidth}")

# %% tags=["check"]
check("ch01/kernel_regression", kernel_regression)

# %% [markdown]
# ## 5. Additive alignment
#
# {{ch01/additive_scores}} · medium · 15 minutes
#
# How well does a word of the translation fit a word of the original?
# Before the dot product became usual, a small network said so (Bahdanau, Cho and Bengio 2015).
# With the query $q_i$ and the key $k_j$ as rows of width $E$, not projected yet,
#
# $$s_{ij} = v \cdot \tanh(q_i W_q + k_j W_k).$$
#
# $v$ is a vector of weights, and no value. Write `additive_scores`: the scores of every query with every key.
# There is no softmax in it; that comes after.
#
# *Judged:*
#
# * **values**, 2 points: the scores `(N, S)`, for any sizes, 1 too. Nothing that you are given changes.
# * **gradient**, 1 point: gradients reach queries, keys, both matrices and $v$.

# %% [markdown]
# <details><summary>Hint: every query with every key</summary>
#
# Project first: `(N, D)` and `(S, D)`. Then give each an axis of size 1 where the other has its own,
# so that their sum is `(N, S, D)`.
# </details>
#
# <details><summary>Hint: the last step</summary>
#
# `(N, S, D) @ (D,)` is `(N, S)`.
# </details>


# %% tags=["solution"]
def additive_scores(queries, keys, w_q, w_k, v):
    """Return the score of every query with every key, by a layer of tanh.

    queries: (N, E); keys: (S, E); w_q, w_k: (E, D); v: (D,)
    returns (N, S)
    """
    ### BEGIN SOLUTION
    hidden = torch.tanh((queries @ w_q)[:, None] + keys @ w_k)  # (N, S, D)
    return hidden @ v
    ### END SOLUTION


# %% tags=["try"]
# try it: who is aligned with whom? Each word has a feature of its own; a trained network finds its own features.
# A pair that fits lights one hidden unit, a pair that does not lights two; each counts against it, by −3.
english = ["the", "European", "Economic", "Area"]
french = ["la", "zone", "économique", "européenne"]
keys, queries = torch.eye(4), torch.eye(4)[[0, 3, 2, 1]]
scores = additive_scores(queries, keys, 3 * torch.eye(4), 3 * torch.eye(4), -3 * torch.ones(4))
figure, panel = plt.subplots(figsize=(3.4, 3.4))
panel.imshow(scores.softmax(-1).numpy(), cmap="Blues", vmin=0, vmax=1)
panel.set_yticks(range(4), french)
_ = panel.set_xticks(range(4), english, rotation=45)

# %% tags=["check"]
check("ch01/additive_scores", additive_scores)
