"""Names that we give operators and attributes, of nodes or of TensorFlow's objects, are each written once."""
# SPDX-License-Identifier: Apache-2.0

import ast
import collections
import pathlib
import re

import pytest

pytestmark = pytest.mark.every_case

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMES = "cc/base/names.h"
_NAME = re.compile(r"(Recursion>|_recursion_)\w*")
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
    """The names that a Python file writes; its docstrings may speak of more."""
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str) and _NAME.fullmatch(value)]


def test_cc_writes_names_in_one_header():
    texts = dict(files("cc", "*.h", "*.cc"))
    written = cc_names(texts.pop(NAMES))
    assert len(written) > 20 and len(written) == len(set(written))
    assert {name: found for name, text in texts.items() if (found := cc_names(text))} == {}


def test_python_writes_names_of_its_own_once():
    texts = dict(files("tensorflow_recursion", "*.py"))
    written = collections.Counter(name for text in texts.values() for name in python_names(text))
    assert len(written) > 5
    assert [name for name, count in written.items() if count > 1] == []
    of_cc = set(cc_names((ROOT / NAMES).read_text()))
    assert written.keys() & of_cc == set(), "tensorflow_recursion.names has it"
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
    assert python_names('"""Adds a `Recursion>Call`."""\n_X = "_recursion_x"\nf("Recursion>Call")') == [
        "_recursion_x",
        "Recursion>Call",
    ]
