# A few names over ordinary commands. Everything is installed into .venv and nowhere else.

PYTHON ?= python3
OUT ?= _build/gpu
BIN := .venv/bin
STEP := $(BIN)/python tools/step.py

.DEFAULT_GOAL := help
.PHONY: help course test selftest gpu soak clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

course: .venv/course-installed  ## install, write the notebooks, build the book, grade a demonstration class
	@$(BIN)/python -m autograder notebooks
	@$(STEP) "Building the book" _build/book.log $(BIN)/jupyter-book build . --all -W -n --keep-going
	@$(BIN)/python -m autograder demo
	@echo "The book is ready: open $(CURDIR)/_build/html/index.html in a browser."

test: .venv/test-installed  ## install and run the whole test suite
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

selftest: .venv/course-installed  ## measure the grader on its own catalogue of mistakes and right answers
	@$(BIN)/python -m autograder selftest

gpu:  ## verify and time the kernels on this machine's GPU, with torch and Triton of $(PYTHON); results go to $(OUT)
	@$(PYTHON) -m kernels.bench --out $(OUT)

soak: .venv/course-installed  ## kill the grader at random moments, for about an hour, and see that nothing is lost
	@$(BIN)/python tools/soak.py 20 --jobs 2

clean:  ## remove what was built; class/ and .venv stay
	@rm -rf _build .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -not -path './class/*' -prune -exec rm -rf {} +

# One installation serves until pyproject.toml or constraints.txt changes; the one for the tests includes the course's.
INSTALL = $(STEP) "Installing into .venv (about 3 minutes the first time)" .venv/install.log \
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable

.venv/course-installed: pyproject.toml constraints.txt | .venv/made
	@$(INSTALL) .
	@touch $@

.venv/test-installed: pyproject.toml constraints.txt | .venv/made
	@$(INSTALL) '.[test]'
	@touch .venv/course-installed $@

.venv/made:
	@command -v $(PYTHON) >/dev/null || \
	{ echo "There is no $(PYTHON) here: install Python 3.11, 3.12 or 3.13 (Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python@3.13)."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	{ echo "The course needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name one of those, for example: make course PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: sudo apt-get install python3-venv)."; exit 1; }
	@$(PYTHON) -m venv --clear .venv
	@touch $@
