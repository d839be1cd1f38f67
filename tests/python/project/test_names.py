"""Names that we give operators and attributes, of nodes or of TensorFlow's objects, are each written once."""
# SPDX-License-Identifier: Apache-2.0

import ast
import pathlib
import re

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = "cc/base/names.h"
PYTHON_NAMES = "tensorflow_recursion/names.py"
_NAME = re.compile(r"(Recursion>|_recursion_)\w*|_gradient_op_type")
# C++ also names nodes, functions and threads.
_CC_NAME = re.compile(_NAME.pattern + r"|recursion(?![a-z])[\w/]*")


def files(directory, *patterns):
    """Yields (path in the repository, text) of the files of a directory."""
    for path in sorted(path for pattern in patterns for path in (ROOT / directory).rglob(pattern)):
        yield str(path.relative_to(ROOT)), path.read_text()


def cc_names(text):
    """The names that a C++ file writes, outside of comments."""
    code = re.sub(r"//.*", "", text)
    return [literal for literal in re.findall(r'"([^"\n]*)"', code) if _CC_NAME.fullmatch(literal)]


def python_names(text):
    """The names that a Python file writes, as strings or as attributes; its docstrings may speak of more."""
    nodes = list(ast.walk(ast.parse(text)))
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    attributes = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    return [name for name in [*constants, *attributes] if isinstance(name, str) and _NAME.fullmatch(name)]


def test_cc_writes_names_in_one_header():
    texts = dict(files("cc", "*.h", "*.cc"))
    written = cc_names(texts.pop(NAMES))
    assert len(written) > 20 and len(written) == len(set(written))
    assert {name: found for name, text in texts.items() if (found := cc_names(text))} == {}


def test_python_writes_names_of_its_own_in_one_file():
    texts = dict(files("tensorflow_recursion", "*.py"))
    written = python_names(texts.pop(PYTHON_NAMES))
    assert len(written) > 20 and len(written) == len(set(written))
    assert {name: found for name, text in texts.items() if (found := python_names(text))} == {}
    of_cc = set(cc_names((ROOT / NAMES).read_text()))
    assert of_cc.isdisjoint(written), "the native module hands it over"
    assert [name for name in written if name.startswith("Recursion>")] == []


def test_names_are_found():
    assert cc_names('f("Recursion>Call", "Recursion>Call needs"); g("_recursion_x");  // "Recursion>Run"') == [
        "Recursion>Call",
        "_recursion_x",
    ]
    assert cc_names('f("recursion_done", "recursion/run_", "recursions", "a recursion")') == [
        "recursion_done",
        "recursion/run_",
    ]
    text = '"""Adds a `Recursion>Call`."""\n_X = "_recursion_x"\nf("Recursion>Call")\ngraph._recursion_y = 1\n'
    assert python_names(text) == ["_recursion_x", "Recursion>Call", "_recursion_y"]
