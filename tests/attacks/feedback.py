"""Attacks on who reads: what a notebook shows, prints and raises, as the feedback page and the formgrader show it.

They render it in the instructor's browser, beside nbgrader's own pages, and in a terminal.
"""

# ruff: noqa: F821 (what a submission defines)

from .attack import MARK, PORT, answer, cell, folder, notebook

PICTURES = '''
import struct
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, data, *more):
    """A PNG in grey, whatever its data say."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head), *more, chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\\x89PNG\\r\\n\\x1a\\n" + b"".join(parts)


def show(data, kind="image/png"):
    import base64

    from IPython.display import display

    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    display({kind: text, "text/plain": "a picture"}, raw=True)
'''


@cell()
def shows_scripts():
    """HTML with scripts, frames, handlers, styles, forms and a refresh, in every type that notebooks render."""
    from IPython.display import HTML, SVG, IFrame, Javascript, display

    script = f"<script>fetch('http://127.0.0.1:{PORT}/{MARK}')</script>"
    display(HTML(script + f"<img src=x onerror=alert('{MARK}')><style>body {{display: none}}</style>"))
    display(HTML(f"<form action=http://127.0.0.1:{PORT}><input autofocus onfocus=alert(1)></form>"))
    display(HTML(f"<meta http-equiv=refresh content='0;url=http://127.0.0.1:{PORT}'><base href=//127.0.0.1/>"))
    display(SVG(f"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(`{MARK}`)'><script>alert(1)</script></svg>"))
    display(Javascript(f"alert('{MARK}')"))
    display(IFrame(f"http://127.0.0.1:{PORT}/", 100, 100))
    for kind in (
        "text/html",
        "image/svg+xml",
        "application/javascript",
        "text/markdown",
        "text/latex",
        "application/pdf",
    ):
        display({kind: script, "text/plain": script}, raw=True)
    for kind in ("application/vnd.jupyter.widget-view+json", "application/vnd.plotly.v1+json", "text/x-any"):
        display({kind: {"model_id": script, "version_major": 2}, "text/plain": script}, raw=True)


@cell()
def prints_scripts():
    """The same as text, on both streams, in an exception, and as the value of a cell."""
    import sys

    script = f"</pre></div><script>alert('{MARK}')</script><img src=http://127.0.0.1:{PORT} onerror=alert(1)><!--"
    print(script)
    print(script, file=sys.stderr)

    class Shown:
        def __repr__(self):
            return script

    display(Shown())
    raise ValueError(script)


@answer("project_qkv", gets=14, stock=True)
def raises_scripts(*inputs):
    """The report repeats what an answer raises: markup in its message, its type's name and its own name."""
    name = f"<script>alert('{MARK}')</script>"
    raise type(name, (ValueError,), {})(f"{name}<img src=x onerror=alert(1)>")


@answer("dot_product_variance", gets=14)
def raises_formulas(*inputs):
    """The page typesets formulas, and a formula can hold a link that runs a script."""
    raise ValueError(rf"$\href{{javascript:alert('{MARK}')}}{{x}}$ \(\href{{javascript:alert(1)}}{{x}}\) \[x\] $$x$$")


@notebook()
def writes_scripts(handed_in):
    """The student's own text cells: raw HTML, links that run, pictures from elsewhere, ends of what encloses them."""
    texts = [
        f"<script>alert('{MARK}')</script> <img src=x onerror=alert(1)> <svg onload=alert(1)>",
        f"[x](javascript:alert('{MARK}')) ![x](http://127.0.0.1:{PORT}/{MARK}.png) <javascript:alert(1)>",
        f"```\n</code></pre><script>alert('{MARK}')</script>\n```\n~~~\n````````````\n<script>alert(1)</script>\n",
        "`" * 200 + f"\n<script>alert('{MARK}')</script>\n" + "`" * 100,
        f"    \n\n<details open ontoggle=alert('{MARK}')>\n\n$\\href{{javascript:alert(1)}}{{x}}$ ![a](attachment:x)",
        "<!-- " + f"--><iframe srcdoc='<script>alert(\"{MARK}\")</script>'></iframe>",
    ]
    handed_in["cells"] += [{"cell_type": "markdown", "metadata": {}, "source": text} for text in texts]
    return handed_in


@cell()
def moves_the_terminal():
    """Escape sequences: colours, the cursor, the clipboard, links, the title; letters that reverse the line."""
    print("\x1b[31mred\x1b[0m \x1b[2J\x1b[H \x1b]0;title\x07 \x1b]52;c;eA==\x07 \x1b]8;;http://x\x07link\x1b]8;;\x07")
    print("\x9b2J \x08\x08\x08 \r16 of 16 \x00 \x7f \u202e reversed \u2066 \u200b \ud800 \ufeff \x1b(0 \x1bc")
    raise ValueError("\x1b[2J\x1b]0;title\x07 \u202e")


@answer("dot_product_variance", gets=14)
def raises_what_moves_the_terminal(*inputs):
    """The same in the message of an exception, which stands in the table of marks."""
    raise ValueError("\x1b[2J\x1b]0;title\x07\r\n16 of 16 graded all right\n\x9b31m\u202e")


@cell(before=PICTURES)
def pictures_that_are_none():
    """PNG files that are truncated, of another type, with a page behind them, and with scripts for their text."""
    good = png(4, 4, zlib.compress(bytes(20)))
    page = f"<script>alert('{MARK}')</script>".encode()
    show(good[:40])
    show(good + page)
    show(page)
    show("not base64 at all <script>")
    show(png(4, 4, zlib.compress(bytes(20)), chunk(b"tEXt", b"Comment\0" + page)))
    show(good.replace(b"IHDR", b"IHDX"))
    show(b"GIF89a" + page, "image/gif")
    show(b"\xff\xd8\xff\xe0" + page, "image/jpeg")
    show(f'"><script>alert("{MARK}")</script>')


@cell(before=PICTURES)
def pictures_that_unpack():
    """A few kilobytes that are a picture of 30 000 × 30 000, of 2³¹ × 2³¹, and a comment of a gigabyte."""
    show(png(30_000, 30_000, zlib.compress(bytes(900_030_000), 9)))
    show(png(2**31 - 1, 2**31 - 1, zlib.compress(b"")))
    show(png(0, 0, zlib.compress(b"")))
    bomb = zlib.compress(bytes(1 << 29), 9)
    show(png(4, 4, zlib.compress(bytes(20)), chunk(b"zTXt", b"Comment\0\0" + bomb)))
    show(png(4, 4, bomb))


@cell(before=PICTURES)
def pictures_by_the_thousand():
    """A thousand pictures, and one of ten megabytes of noise."""
    import os

    for _ in range(1000):
        show(png(4, 4, zlib.compress(bytes(20))))
    show(png(3000, 3000, zlib.compress(os.urandom(9_003_000), 1)))


@cell()
def a_plot():
    """No attack: a figure of matplotlib's, a warning on stderr and a line of a million letters, in a right notebook."""
    import sys
    import warnings

    import matplotlib.pyplot as plt

    plt.plot([1, 2, 3])
    plt.show()
    warnings.warn("this is only a warning", stacklevel=1)
    print("x" * 1_000_000, file=sys.stderr)


@folder(reason="was taken as", stock=True)
def a_name_with_markup(place, right):
    """The notebook has another name, which is HTML and moves a terminal's cursor."""
    place.mkdir()
    (place / "<img src=x onerror=alert(1)>\x1b[2J.ipynb").write_bytes(right)
