#!/usr/bin/env bash
# Make again what the book brings to the browser: MathJax, from the npm registry, and the icons, from the theme that
# `make test` installs in .venv. What it writes is committed, so that a build needs no network. Needs npm.
set -euo pipefail
version=3.2.2
sum=1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09
root="$(cd "$(dirname "$0")/.." && pwd)"
target="$root/book/_static/vendor/mathjax"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cd "$work"
npm pack --silent "mathjax@$version" >/dev/null
echo "$sum  mathjax-$version.tgz" | sha256sum --check --quiet
tar --extract --gzip --file "mathjax-$version.tgz"
rm -rf "$target"
mkdir -p "$target/input/tex" "$target/output/chtml/fonts" "$target/ui"
cp package/LICENSE package/es5/tex-chtml.js "$target"
cp package/es5/ui/safe.js "$target/ui"                               # for feedback, which holds what students wrote
cp -r package/es5/input/tex/extensions "$target/input/tex"           # a command such as \cancel fetches its own
cp -r package/es5/output/chtml/fonts/woff-v2 "$target/output/chtml/fonts"
"$root/.venv/bin/python" "$root/tools/icons.py"
