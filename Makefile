# Everything a developer runs. Each target sets up what it needs in .venv; a second run starts at once.
# SPDX-License-Identifier: Apache-2.0

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.requirements
PYTHON_DIRS := tensorflow_recursion tests benchmarks examples tools setup.py
CC_FILES = $(shell git ls-files 'cc/*.cc' 'cc/*.h' 'tests/cc/*.cc' 'tests/cc/*.h')

.PHONY: build demo test test-gpu test-slow test-cc bench lint format sanitize bazel clean

build: $(READY)
	@$(PY) -W ignore setup.py -q build_ext --inplace

$(READY): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed; make PYTHON=python3.x")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || { echo "cannot make $(VENV): apt-get install python3-venv"; exit 1; }
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: build
	$(PY) -m benchmarks --quick
	PYTHONPATH=. $(PY) examples/treernn_sentiment.py --quick --out benchmarks/results/treernn_sentiment

bench: build
	$(PY) -m benchmarks

test: test-cc
	$(PY) -m pytest
	$(MAKE) --no-print-directory test-gpu

# Bodies on a device with memory of its own, which tests/cc/fake_gpu plays. A process either has it or not.
test-gpu: build
	$(PY) -m pytest --fake-gpu $(addprefix tests/python/test_,gpu.py devices.py semantics.py gradient_control_flow.py)

test-slow: build
	$(PY) -m pytest -m slow

test-cc: build
	$(PY) tools/cxx_build.py test

sanitize: $(READY)
	$(PY) tools/cxx_build.py test --sanitize

lint: $(READY)
	$(PY) -m ruff check $(wildcard $(PYTHON_DIRS))
	$(PY) -m ruff format --check $(wildcard $(PYTHON_DIRS))
	$(VENV)/bin/clang-format --dry-run --Werror $(CC_FILES)

format: $(READY)
	$(PY) -m ruff check --fix $(wildcard $(PYTHON_DIRS))
	$(PY) -m ruff format $(wildcard $(PYTHON_DIRS))
	$(VENV)/bin/clang-format -i $(CC_FILES)

bazel:
	bazel build //...
	bazel test //...

clean:
	rm -rf build *.egg-info tensorflow_recursion/*.so tensorflow_recursion/_build_info.py
