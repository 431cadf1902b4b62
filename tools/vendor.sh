#!/usr/bin/env bash
# Fetch MathJax for the book again, from the npm registry. What it writes is committed, so that a build needs no network.
set -euo pipefail
version=3.2.2
target="$(cd "$(dirname "$0")/.." && pwd)/book/_static/vendor/mathjax"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cd "$work"
npm pack --silent "mathjax@$version" >/dev/null
tar --extract --gzip --file "mathjax-$version.tgz"
rm -rf "$target"
mkdir -p "$target/input/tex" "$target/output/chtml/fonts"
cp package/LICENSE package/es5/tex-chtml.js "$target"
cp -r package/es5/input/tex/extensions "$target/input/tex"           # a command such as \cancel fetches its own
cp -r package/es5/output/chtml/fonts/woff-v2 "$target/output/chtml/fonts"
