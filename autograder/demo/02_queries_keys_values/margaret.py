"""Right, with all that one leaves behind in a notebook: magics, timings, questions, a cell that fails."""

import torch

from .ada import attention_backward, dot_product_variance, project_qkv, scaled_dot_product_attention

# %%
# %matplotlib inline

# %%
# %%time
x, w = torch.randn(2, 5, 6), torch.randn(6, 4)
print(x @ w)

# %%
# %timeit -n 1 -r 1 x @ w

# %%
# torch.var?

# %%
print("Are you sure?", input("yes or no: "))

# %%
assert (x @ w).shape == (2, 5, 7), "that was a guess"
