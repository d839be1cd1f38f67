"""Conditions of tf.cond and tf.while_loop that are no single bool: the error says what was given, and what to write."""
# SPDX-License-Identifier: Apache-2.0

import re

import pytest
import switches
import tensorflow as tf
from building import recursive

tf1 = tf.compat.v1

I32, F32 = tf.int32, tf.float32

CONDITIONS = {
    "number": (lambda n: n, "int32"),
    "float": (lambda n: tf.cast(n, F32), "float"),
    "string": (lambda n: tf.strings.as_string(n), "string"),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("of", ["cond", "while_loop"])
@pytest.mark.parametrize("in_body", [True, False], ids=["in the body", "beside a call"])
def test_condition_that_is_no_bool_says_what_to_write(run, control_flow, condition, of, in_body):
    make, dtype = CONDITIONS[condition]
    if of == "cond":
        choose = lambda n: tf.cond(make(n), lambda: n, lambda: n + 1)
    else:
        choose = lambda n: tf.while_loop(make, lambda i: i - 1, [n])[0]
    call, define = recursive("F", [I32], [I32], [[]])
    define(choose if in_body else lambda n: n)
    n = tf1.placeholder_with_default(3, [])
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)) as caught:
        run(call(n) if in_body else call(choose(n)))
    message = str(caught.value)
    if isinstance(caught.value, tf.errors.OpError) or in_body:
        assert re.search(rf"{dtype}.* bool; write n > 0, for example, or tf\.cast\(n, tf\.bool\)", message)
        assert "'F'" in message or not in_body


@pytest.mark.parametrize("of", ["cond", "while_loop"])
def test_condition_that_is_no_scalar_says_what_to_write(of):
    if of == "cond":
        choose = lambda x: tf.cond(tf.ones([2]) > 0, lambda: x, lambda: x)
    else:
        choose = lambda x: tf.while_loop(lambda x: tf.ones([2]) > 0, lambda x: x, [x])[0]
    call, define = recursive("F", [F32], [F32], [[]])
    define(choose)
    with switches.control_flow_v2(False), pytest.raises(ValueError, match=r"^Function 'F' .*tf\.reduce_all") as caught:
        call(1.0)
    assert "(test_messages_of_conditions.py, line" in str(caught.value)
