"""Examples in docstrings do what they say; public functions have one."""
# SPDX-License-Identifier: Apache-2.0

import doctest
import importlib
import pathlib

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import ops

pytestmark = pytest.mark.every_case

FOLDER = pathlib.Path(tfr.__file__).parent
MODULES = [".".join(path.relative_to(FOLDER.parent).with_suffix("").parts) for path in sorted(FOLDER.rglob("*.py"))]
PUBLIC = [name for name in tfr.__all__ if callable(getattr(tfr, name))]
NAMES = {"tf": tf, "tf1": tf.compat.v1, "tfr": tfr, "ops": ops}


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {}
    for name in MODULES:
        module = importlib.import_module(name.removesuffix(".__init__"))
        for test in finder.find(module, name, module=module, globs=NAMES):
            if test.examples:
                found[test.name] = test
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_does_what_it_says(name):
    printed = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[name], out=printed.append)
    assert printed == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_function_has_an_example(name):
    assert any(example.endswith(f".{name}") for example in EXAMPLES)
