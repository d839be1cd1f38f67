"""Variables are written and read in the order of the program, whatever branches, loops and calls are around that."""
# SPDX-License-Identifier: Apache-2.0

import importlib.util

import effect_programs
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

CALLS = [(3, 5, 7), (0, 1, 2), (2, 8, 3), (4, 2, 2)]


def load(seed, folder):
    """The module of a program. AutoGraph reads its text in a file."""
    path = folder / f"program_{seed}.py"
    path.write_text(effect_programs.program(seed))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(seed, folder):
    module = load(seed, folder)
    plain = [effect_programs.PlainVariable() for _ in range(effect_programs.NUM_VARIABLES)]
    variables = [tf.Variable(0) for _ in plain]
    expected_of = module.make(lambda func: func, effect_programs.plain, plain)
    recursive = module.make(tfr.recursive, tf, variables)
    called = tf.function(lambda n, x, y: recursive(n, x, y))
    for call in CALLS:
        for number, (one, other) in enumerate(zip(plain, variables, strict=True)):
            one.assign(number)
            other.assign(number)
        expected = [*expected_of(*call), *(variable.value for variable in plain)]
        results = called(*map(tf.constant, call))
        found = [*map(int, results), *(int(variable) for variable in variables)]
        assert found == expected, f"seed {seed}, call {call}"


@pytest.mark.thorough
def test_effects_are_in_the_order_of_the_program(tmp_path, static_or_error):
    for seed in range(8):
        check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_effects_of_many_programs_are_in_order(tmp_path, static_or_error):
    for seed in range(1000, 1500):
        check(seed, tmp_path)
