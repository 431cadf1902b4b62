"""Cut the theme's icon font down to the icons that the theme names. What it writes is committed.

A file of the book's own below `_static` takes the place of the theme's of the same name.
"""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FONT = "vendor/fontawesome/webfonts/fa-solid-900"
TARGET = Path(__file__).parents[1] / "book/_static" / f"{FONT}.woff2"
ICON = re.compile(r"(?<![\w-])fa-[a-z0-9-]+")


def main():
    themes = [Path(find_spec(name).origin).parent for name in ("pydata_sphinx_theme", "sphinx_book_theme")]
    styles = "".join(path.read_text("utf8") for theme in themes for path in theme.rglob("static/styles/*.css"))
    font = themes[0] / f"theme/pydata_sphinx_theme/static/{FONT}.ttf"
    unicodes = f"--unicodes={','.join(drawn(styles, named(themes)))}"
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    command = [Path(sys.executable).with_name("pyftsubset"), font, unicodes]
    # The name of the whole font is reserved for the whole font (SIL OFL 1.1, clause 3).
    subprocess.run([*command, "--flavor=woff2", "--obfuscate-names", f"--output-file={TARGET}"], check=True)


def named(themes):
    """The icons that the themes' pages and code name."""
    files = [path for theme in themes for kind in ("*.html", "*.py") for path in theme.rglob(kind)]
    return {icon for path in files for icon in ICON.findall(path.read_text("utf8"))}


def drawn(style, icons):
    """Their code points: of the named icons, and of those that the style sheet draws by itself."""
    rules = re.findall(r'([^{}]*)\{[^{}]*?"\\(f[0-9a-f]{3})"', style)
    return sorted({point for selector, point in rules if ".fa-" not in selector or icons & set(ICON.findall(selector))})


if __name__ == "__main__":
    main()
