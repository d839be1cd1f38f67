# Everything a developer runs. Each target sets up what it needs in .venv; a second run starts at once.
# SPDX-License-Identifier: Apache-2.0

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.requirements
DOCS_VENV := build/docs/venv
# uv installs TensorFlow in a third of pip's time, and leaves it to the first import of a file to compile it, which must
# write what it made. pip is for machines where uv finds no packages because pip alone was told where they are.
unexport PYTHONDONTWRITEBYTECODE
PIP = $(PY) -m pip --disable-pip-version-check
UV := uv==0.13.9
UV_INSTALL = $(VENV)/bin/uv pip install --quiet --python $(PY)
# One process more than there are cores runs Python tests, because some tests wait for other processes. Tests that share
# a cluster of servers are in one of them.
JOBS ?= $(shell expr $$(nproc) + 1)
PYTEST = $(PY) -m pytest -n $(JOBS) --dist loadscope
STAGES = $(PY) tools/stages.py
# What `make test-all` tests with besides the TensorFlow of requirements-dev.txt.
TENSORFLOWS ?= 2.16.2 2.19.1
# The presets of CMakePresets.json that `make sanitize` runs the C++ tests under, each a target: make sanitize-tsan.
SANITIZERS = asan tsan
PYTHON_DIRS := tensorflow_recursion tests benchmarks examples tools setup.py
COPY = build/tensorflow-$(VERSION)
CC_FILES = $(shell git ls-files 'cc/*.cc' 'cc/*.h' 'tests/cc/*.cc' 'tests/cc/*.h')

.PHONY: build docs demo check test test-all test-gpu test-slow test-cc test-tensorflow bench lint tidy typecheck format sanitize bazel clean

# A virtual environment that several checkouts share by a link serves none of them in particular: they run from their
# own directory.
build: $(READY)
	@$(PY) -W ignore setup.py -q build_ext --inplace
	@if test -L $(VENV); then echo "$(VENV) is a link: the package is not installed in it; run from here, PYTHONPATH=$(CURDIR)"; \
	else test -e $(VENV)/.editable || { $(PIP) install --quiet --no-build-isolation --no-deps --editable . \
	  && touch $(VENV)/.editable; }; fi

$(READY): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed; make PYTHON=python3.x")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { echo "cannot make $(VENV): apt-get install python3-venv"; exit 1; }
	@$(PIP) install --quiet $(UV) || echo "no uv: installing with pip"
	$(UV_INSTALL) -r requirements-dev.txt || $(PIP) install --quiet -r requirements-dev.txt
	@touch $@

demo: build
	$(PY) -m benchmarks --quick
	$(PY) examples/treernn_sentiment.py --quick --out benchmarks/results/treernn_sentiment

bench: build
	$(PY) -m benchmarks

# Of random tests in parts, `make check` runs the first part and `make test` two: all five take a minute.
ONE_PART = GTEST_FILTER='-Parts/*/1:Parts/*/2:Parts/*/3:Parts/*/4'
TWO_PARTS = GTEST_FILTER='-Parts/*/2:Parts/*/3:Parts/*/4'

# Three loops, docs/testing.md: `check` before each commit, `test` before commits are pushed, `test-all` before an issue is closed.
check: build
	@$(STAGES) "format, lint" "$(MAKE_COMMAND) lint" "types" "$(MAKE_COMMAND) typecheck" "clang-tidy" "$(MAKE_COMMAND) tidy" \
	  "C++ tests" "$(ONE_PART) $(MAKE_COMMAND) test-cc" "Python tests, one of each" "$(PYTEST) --matrix=one"

test: build
	@$(STAGES) "C++ tests" "$(TWO_PARTS) $(MAKE_COMMAND) test-cc" "Python tests" "$(PYTEST) --matrix=pairs" \
	  "Python tests, fake GPU" "$(PYTEST) --matrix=pairs --fake-gpu"

# Three hours: a second run skips what has passed on the files as they are, and is done when all has. Of the C++ tests
# alone, that is the files from which they are built.
CC_TESTS_ARE_OF = cc tests/cc cmake tools CMakeLists.txt CMakePresets.json Makefile requirements-dev.txt
test-all: build
	@$(STAGES) --resume build/test-all.json "format, lint" "$(MAKE_COMMAND) lint" "types" "$(MAKE_COMMAND) typecheck" \
	  --of "$(CC_TESTS_ARE_OF)" "C++ tests" "$(MAKE_COMMAND) test-cc" \
	  --of "$(CC_TESTS_ARE_OF)" "C++ tests, sanitizers" "$(MAKE_COMMAND) sanitize" "Python tests, full matrix" "$(PYTEST)" \
	  "Python tests, fake GPU" "$(MAKE_COMMAND) test-gpu" "slow tests, fuzzers" "$(MAKE_COMMAND) test-slow" \
	  $(foreach version,$(TENSORFLOWS),"TensorFlow $(version)" "$(MAKE_COMMAND) test-tensorflow VERSION=$(version)")

# Bodies on a device with memory of its own, which tests/cc/fake_gpu plays. A process either has it or not.
test-gpu: build
	$(PYTEST) --fake-gpu

test-slow: build
	$(PYTEST) -m slow

test-cc: build
	$(PY) tools/native.py test

# The tracked files, in a copy with a virtual environment of its own: nothing here is rebuilt, or in the way.
test-tensorflow:
	@test -n "$(VERSION)" || { echo "which TensorFlow? make test-tensorflow VERSION=2.16.2"; exit 1; }
	@mkdir -p $(COPY) && rm -rf $(addprefix $(COPY)/,cc tests tensorflow_recursion)
	@git ls-files | tar -cf - -T - | tar -xf - -C $(COPY)
	@sed -e 's/^tensorflow-cpu==.*/tensorflow-cpu==$(VERSION)/' -e '/^tensorboard\|^numpy\|^ruff\|^clang-\|^mypy/d' requirements-dev.txt \
	  > $(COPY)/requirements-dev.txt
	@touch -r requirements-dev.txt $(COPY)/requirements-dev.txt
	$(MAKE) -C $(COPY) test

sanitize: $(addprefix sanitize-,$(SANITIZERS))

sanitize-%: $(READY)
	$(PY) tools/native.py test --preset $*

# Lengths of files and functions and the glossary's words go with it, as a comment alone can break their limits.
lint: $(READY)
	$(PY) -m ruff check $(wildcard $(PYTHON_DIRS))
	$(PY) -m ruff format --check $(wildcard $(PYTHON_DIRS))
	@echo "clang-format, $(words $(CC_FILES)) files"; $(VENV)/bin/clang-format --dry-run --Werror $(CC_FILES)
	$(PY) -m pytest --noconftest tests/python/project/test_sizes.py tests/python/project/test_words.py

# clang-tidy on the C++ files that differ from the main branch (on it, from the commit before) and on includers of headers
# that do, or on FILES; .clang-tidy has the rules.
tidy: $(READY)
	$(PY) tools/native.py tidy $(FILES)

# The package and the benchmarks, strictly; settings are in pyproject.toml.
typecheck: $(READY)
	$(PY) -m mypy

format: $(READY)
	$(PY) -m ruff check --fix $(wildcard $(PYTHON_DIRS))
	$(PY) -m ruff format $(wildcard $(PYTHON_DIRS))
	$(VENV)/bin/clang-format -i $(CC_FILES)

# The site, in build/docs/site, and the pictures in it, drawn from runs; its tools are in a virtual environment of their own.
docs: build $(DOCS_VENV)/.requirements
	$(PY) tools/tour/dump.py build/docs/tour.json
	$(DOCS_VENV)/bin/python tools/tour/draw.py build/docs/tour.json docs/pictures
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/python -m mkdocs -q build --clean
	@echo "the site is in build/docs/site; docs/pictures are up to date"

$(DOCS_VENV)/.requirements: requirements-docs.txt | $(READY)
	$(PYTHON) -m venv $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

bazel:
	bazel build //...
	bazel test //...

clean:
	rm -rf build *.egg-info tensorflow_recursion/*.so tensorflow_recursion/_build_info.py
