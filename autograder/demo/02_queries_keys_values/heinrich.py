"""Zeros, and HTML and scripts wherever a teacher may look: text, output, errors, answers, other cells."""

import torch

from .trofim import attention_backward, scaled_dot_product_attention

# %% [markdown]
# # Notes <script>alert("heinrich")</script>
#
# <img src="x" onerror="alert('heinrich')"> <a href="javascript:alert('heinrich')">my sources</a>
# [my sources](javascript:alert%28'heinrich'%29) ![x](x" onerror="alert('heinrich'))
#
# ```
# </code></pre><script>alert("heinrich")</script>
# ```
#
# ````
# ```
# <style>body { display: none /* heinrich */ }</style>
#
# $\\href{javascript:alert('heinrich')}{x}$ <!-- <svg onload="alert('heinrich')"> --> <svg onload="alert('heinrich')">

# %%
from IPython.display import HTML, SVG, Javascript, Latex, Markdown, display

SCRIPT = '</pre></div><script>alert("heinrich")</script><img src="x" onerror="alert(\'heinrich\')">'
print(SCRIPT)
print("\x1b]8;;javascript:alert('heinrich')\x07link\x1b]8;;\x07 \x1b[31m", SCRIPT)
display(HTML(SCRIPT), Markdown(SCRIPT), Latex(SCRIPT), Javascript("alert('heinrich')"))
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(\'heinrich\')"></svg>'))
display({"text/html": SCRIPT, "application/javascript": "alert('heinrich')", "text/plain": SCRIPT}, raw=True)


# %%
class Shown:
    def __repr__(self):
        return SCRIPT

    def _repr_html_(self):
        return SCRIPT

    _repr_svg_ = _repr_markdown_ = _repr_javascript_ = _repr_latex_ = _repr_html_


Shown()

# %%
raise type(SCRIPT, (Exception,), {})(SCRIPT)


# %%
def project_qkv(x, w_q, w_k, w_v):
    raise type(SCRIPT, (Exception,), {})(SCRIPT)


# %%
def dot_product_variance(q, k):
    return type(SCRIPT, (), {"__repr__": lambda self: SCRIPT})()


# </div><script>alert("heinrich")</script>
