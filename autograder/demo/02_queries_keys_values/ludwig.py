"""Ends Python where he meant to end the function; the rest is right."""

from .ada import attention_backward, dot_product_variance, scaled_dot_product_attention


# %%
import os


def project_qkv(x, w_q, w_k, w_v):
    print(x @ w_q, x @ w_k, x @ w_v)
    os._exit(3)
