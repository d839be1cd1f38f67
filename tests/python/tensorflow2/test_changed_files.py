"""A file that was edited after Python had loaded it: no call computes what the file says now, and errors name it."""
# SPDX-License-Identifier: Apache-2.0

import __future__

import ast
import importlib
import importlib.machinery
import importlib.util
import linecache
import sys
import warnings

import pytest
import tensorflow as tf

LOADED = """
import tensorflow as tf
import tensorflow_recursion as tfr

def make(factor, more):
    @tfr.recursive
    def f(n, x):
        if n < 1:
            return x * factor
        return f(n - 1, x) + more
    return f
"""
EXPECTED = 2.0 + 3 * 3.0

CHANGES = {
    "moved": lambda text: text.replace("\ndef make", "\n\n\n\ndef make"),
    "another function": lambda text: text.replace("f(n, x)", "g(n, x)").replace("f(n - 1", "g(n - 1") + text,
    "another result": lambda text: text.replace("x * factor", "x * factor + 100.0"),
    "another closure": lambda text: text.replace(" + more", ""),
    "shorter": lambda text: "\n".join(text.splitlines()[:3]),
    "broken": lambda text: text.replace("def f(n, x):", "def f(n, x)"),
}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Returns a module that Python has loaded, and what edits its file."""
    name = f"edited_{abs(hash(tmp_path))}"
    file = tmp_path / f"{name}.py"
    file.write_text(LOADED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python takes a text of one size and second for the same one
    yield importlib.import_module(name), file
    del sys.modules[name]


def total(f):
    return float(f(tf.constant(3), tf.constant(1.0)))


@pytest.mark.parametrize("change", CHANGES)
def test_error_names_the_file_where_other_lines_have_come(module, change):
    loaded, file = module
    f = loaded.make(2.0, 3.0)
    file.write_text(CHANGES[change](LOADED))
    with pytest.raises(TypeError, match=f"could not convert 'f', because .*{file.name} was changed .*reload"):
        total(f)


def test_file_that_is_loaded_anew_is_converted(module):
    loaded, file = module
    file.write_text(CHANGES["another result"](LOADED))
    assert total(importlib.reload(loaded).make(2.0, 3.0)) == EXPECTED + 100


@pytest.mark.parametrize(
    "change",
    [lambda text: text + "\ndef more():\n    pass\n", lambda text: text.replace("n < 1:", "n < 1:  # the end\n\n")],
    ids=["below", "comment"],
)
def test_lines_that_say_the_same_are_converted(module, change):
    loaded, file = module
    f = loaded.make(2.0, 3.0)
    file.write_text(change(LOADED))
    assert total(f) == EXPECTED


def test_function_that_was_converted_before_stays_as_it_was(module):
    loaded, file = module
    f = loaded.make(2.0, 3.0)
    assert total(f) == EXPECTED
    file.write_text(CHANGES["another result"](LOADED))
    assert float(f(tf.constant(3), tf.constant([1.0]))[0]) == EXPECTED


def test_body_without_control_flow_runs_as_it_was_loaded(module):
    loaded, file = module
    text = LOADED.replace("if n < 1:", "if factor > 0:")
    file.write_text(text)
    f = importlib.reload(loaded).make(2.0, 3.0)
    file.write_text(text.replace("x * factor", "x * factor + 100.0"))
    assert total(f) == 2.0


class AssertingLoader(importlib.machinery.SourceFileLoader):
    """Loads modules whose functions begin with an `assert`, as pytest and type checkers load them otherwise, too."""

    def source_to_code(self, data, path, **_):
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body.insert(0, ast.parse("assert True").body[0])
        return compile(ast.fix_missing_locations(tree), path, "exec")


def loaded_by_hook(file):
    file.write_text(LOADED)
    spec = importlib.util.spec_from_file_location(
        "loaded_by_hook", file, loader=AssertingLoader("loaded_by_hook", str(file))
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


def page(file):
    """A block of Python in a page of a documentation."""
    file.write_text(f"# A page\n\n```python\n{LOADED}```\n")
    block = ast.parse(LOADED)
    ast.increment_lineno(block, 3)
    return executed(compile(block, file, "exec"))


def cell(file):
    """A cell of a notebook whose text a debugger has put into a file, after one with `from __future__ import ..`."""
    text = LOADED.replace("f(n, x)", "f(n: int, x)", 1)
    file.write_text(f"%matplotlib inline{text}")
    linecache.cache[str(file)] = (len(text), None, text.splitlines(True), str(file))
    return executed(compile(text, file, "exec", flags=__future__.annotations.compiler_flag))


def executed(code):
    namespace = {"__name__": "__main__"}
    exec(code, namespace)
    return namespace


@pytest.mark.parametrize("load", [loaded_by_hook, page, cell])
def test_what_python_has_not_loaded_itself_is_not_compared_with_the_file(load, tmp_path):
    assert total(load(tmp_path / f"{load.__name__}.py")["make"](2.0, 3.0)) == EXPECTED


def test_comparison_gives_no_warnings_of_its_own(module):
    loaded, file = module
    text = f"escaped = '\\d'\n{LOADED}"
    file.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = importlib.reload(loaded).make(2.0, 3.0)
    file.write_text(f"{text}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert total(f) == EXPECTED
