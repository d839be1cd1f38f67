"""A user's program as a type checker sees it: `# type:` says what is inferred, `# error:` where the user erred."""
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B018, F821

import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import function

tf1 = tf.compat.v1

fib = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])
reveal_type(fib)  # type: tensorflow_recursion.declarations.Declare


@tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"], create_grad_func=True)
def FibImpl(n: tf.Tensor) -> tf.Tensor:
    return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))


reveal_type(FibImpl)  # type: tensorflow_recursion.defined.DefinedFunction
reveal_type(FibImpl.name)  # type: str
FibImpl.add_to_graph(tf1.get_default_graph())


@function.Defun(*[tf.float32, tf.float32])
def Pair(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return y, x


@tfr.Defun(func_name="Answer")
def Answer() -> tf.Tensor:
    return tf.constant(42)


@tfr.Defun()
def Twice(x: tf.Tensor) -> tf.Tensor:
    return x + x


reveal_type(Pair)  # type: tensorflow_recursion.defined.DefinedFunction
reveal_type(Answer)  # type: tensorflow_recursion.defined.DefinedFunction
reveal_type(Twice)  # type: tensorflow_recursion.defined.OverloadedFunction
reveal_type(Twice.instantiate([tf.int32]))  # type: tensorflow_recursion.defined.DefinedFunction

# A call may return a tensor, several, or none: it can be used as what it is.
total = 1 + 2 * FibImpl(20, name="twenty")
first, second = Pair(1.0, tf.constant(2.0))
reveal_type(tfr.__version__)  # type: str

with tf1.Session(config=tfr.session_config(tf1.ConfigProto(), max_depth=1000, workers=1)) as session:
    session.run(total)
tfr.transform_graph(tf1.get_default_graph(), [total, "Fib:0"])

tfr.Declare("Fib", [("n", tf.int32)])  # error: call-arg
tfr.Declare(7, [("n", tf.int32)], [])  # error: arg-type
tfr.Declare("Fib", ["n"], [])  # error: list-item
tfr.Defun(tf.int32, fun_name="Fib")  # error: call-overload
tfr.Defun(tf.int32, out_names="ret", create_grad_func="yes")  # error: call-overload
fib(20, nme="twenty")  # error: arg-type
FibImpl(20, name=20)  # error: arg-type
FibImpl.nme  # error: attr-defined
Twice.add_to_graph(tf1.get_default_graph())  # error: attr-defined
tfr.session_config(max_depth="deep")  # error: arg-type
tfr.Define  # error: attr-defined
