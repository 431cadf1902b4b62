"""Right, and PyTorch warns of the way it is done; a warning is no error."""

import torch

from .ada import attention_backward, project_qkv, scaled_dot_product_attention


# %%
def dot_product_variance(q, k):
    scores = torch.tensor((q * k).sum(-1))  # a UserWarning: clone().detach() is recommended
    return scores.var()


# %%
import warnings

warnings.warn("this is only to say that I am not sure about the divisor", stacklevel=1)
print(torch.tensor(torch.ones(3)))
