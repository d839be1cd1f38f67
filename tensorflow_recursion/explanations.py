"""What errors that TensorFlow raises in a body mean to the one who wrote the body.

TensorFlow's messages speak of what a graph cannot do. Here each of them that a newcomer is likely to meet gets the name
of the function, what is wrong in terms of the body, what to write instead, and the line of the body.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
import os
import re
import traceback
import types
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from tensorflow_recursion._tf import autograph_errors
from tensorflow_recursion._tf.autograph_errors import StagingError
from tensorflow_recursion.converted import is_converted
from tensorflow_recursion.errors import with_message

# The lines of files in these folders are nobody's mistake; TensorFlow leaves out most of its own.
_FOLDERS = tuple(os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in (__file__, tf.__file__))
# Keras is installed beside TensorFlow. Its lines say nothing of where the user calls a layer, nor NumPy's of where an
# array is made.
_BESIDE = os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__)))
_CALLED = (
    *(os.path.join(_BESIDE, name, "") for name in ("keras", "tf_keras")),
    os.path.join(os.path.dirname(os.path.abspath(np.__file__)), ""),
)


@dataclasses.dataclass(frozen=True)
class _Explanation:
    """Errors of one kind.

    Attributes:
      pattern: what their messages match, anywhere.
      text: what they mean; `{1}` is the pattern's first group.
      quotes: whether TensorFlow's own message is worth reading as well.
      is_converted: whether AutoGraph converts what they are about, so that they come up where it could not.
      in_converted: what they mean where AutoGraph has converted the code, if that is something else.
      of_results: whether it may help to know what calls are taken to return.
    """

    pattern: str
    text: str
    quotes: bool = False
    is_converted: bool = False
    in_converted: str | None = None
    of_results: bool = False


_NO_SESSION = (
    "a session cannot compute a tensor of a body, which has no value before the graph runs; run the session outside of "
    "the function, and pass what it returns as an argument, or write TensorFlow's operators, or tf.py_function"
)

# What Python's texts have, and arrays of NumPy and tf.TensorArrays have not.
_OF_TEXTS = [name for name in dir(str) if name[0] != "_" and not hasattr(np.ndarray, name) and name != "split"]

_RAISED = (
    "this `raise` is under an `if` or in a loop that goes by a tensor, which has no value while the body is traced. It "
    "is run then, whatever the tensor will be; write tf.debugging.assert_positive(n, message='...'), "
    "tf.debugging.Assert and the like"
)

_EXPLANATIONS = (
    _Explanation(
        r"[Uu]sing a (?:symbolic )?`tf\.Tensor` as a Python `bool`",
        "Python's `if`, `while`, `and`, `or` and `not` cannot go by a tensor, which has no value before the graph "
        "runs; write tf.cond or tf.while_loop (tf.logical_and, tf.logical_or, tf.logical_not). Nor can `assert`; "
        "write tf.debugging.assert_...",
        is_converted=True,
        in_converted="AutoGraph does not convert `if` in a comprehension, `in`, `assert`, nor `max`, `min`, `any` and "
        "`all` of several tensors, and a tensor has no value before the graph runs; write an `if` of its own or "
        "tf.where, tf.maximum, tf.minimum, tf.reduce_any, tf.reduce_all or tf.debugging.assert_...",
    ),
    _Explanation(
        r"[Ii]terating over a (?:symbolic )?`tf\.Tensor`",
        "Python's `for` cannot go over a tensor, which has no value before the graph runs; write tf.while_loop or "
        "tf.map_fn, or tf.unstack if the number of its parts is known",
        is_converted=True,
        in_converted="AutoGraph converts `for part in x:` alone; Python can neither take a tensor apart (`a, b = x`, "
        "`[*x]`) nor go over one by `list`, `enumerate`, `zip` or in a comprehension, as it has no value before the "
        "graph runs; write tf.unstack(x) if the number of its parts is known, or else a `for` of its own (over "
        "tf.range(tf.shape(x)[0]) where it numbers them), or tf.map_fn",
    ),
    _Explanation(
        r"indices must be integers or slices, not \w*Tensor$",
        "Python's lists and tuples take a number as an index, and a tensor has no value before the graph runs; write "
        "tf.gather(list, index), or tf.switch_case for parts of different shapes",
    ),
    _Explanation(
        r"Tensor' object does not support item assignment",
        "a tensor cannot be changed in place; write x = tf.tensor_scatter_nd_update(x, [[i]], [value]) for x[i] = "
        "value, or let a tf.Variable or a tf.TensorArray hold what changes",
    ),
    _Explanation(
        r"(?s)Tensor object has no attribute '(\w+)'.*numpy-related methods"
        rf"|Tensor' object has no attribute '({'|'.join(name for name in dir(np.ndarray) if name[0] != '_')})'",
        "a tensor has no '{1}{2}', which is NumPy's; write TensorFlow's operators: tf.cast(x, dtype) for "
        "x.astype(dtype), tf.round(x) for round(x), tf.reshape(x, shape) for x.reshape(shape), tf.reduce_max(x) for "
        "x.max(), tf.size(x) for x.size; x for x.item()",
    ),
    _Explanation(
        r"^Expected any non-tensor type, but got a tensor instead",
        "tf.constant takes numbers and arrays, and is given a tensor here, as what is computed from a tensor is; leave "
        "tf.constant out",
    ),
    _Explanation(
        r"^Input '\w' of 'Logical(?:Not|And|Or)' Op has type (\w+) that does not match expected type of bool",
        "`not`, `and` and `or` take tensors of bool, and here is one of {1}; write a comparison: n == 0 for `not n`, "
        "tf.size(x) == 0 for `not x` where x may be empty",
    ),
    _Explanation(
        r"^'(?:true_fn|false_fn|default)' must be callable|^(?:branch_fns|fns?) must be callable",
        "the branches of a conditional are functions, of which the graph runs one; write tf.cond(condition, lambda: x, "
        "lambda: y), and the like in tf.case and tf.switch_case",
    ),
    _Explanation(
        r"^Failed to convert elements of ([\[(](?:.*, )?None\b.*?[\])]) to Tensor\. Consider casting elements",
        "{1} stands where a tensor is needed, and None is none; if that is a part of x.shape, which is None where it "
        "is not known, write tf.shape(x)[i] for x.shape[i], or state the shape: Defun(tf.TensorSpec(shape, dtype))",
    ),
    _Explanation(
        r"(?s)^Failed to convert elements of (.+?) to Tensor\. Consider casting elements to a supported type",
        "{1} stands where a tensor is needed, and does not convert to one; operators take, and branches of an `if` "
        "that goes by a tensor return, tensors and numbers, in tuples, lists or dictionaries",
    ),
    _Explanation(
        r"unsupported operand type\(s\) for divmod\(\): .*Tensor",
        "Python's `divmod` takes no tensors; write a // b and a % b",
    ),
    _Explanation(
        r"unsupported operand type\(s\) for (?:<<|>>): .*Tensor",
        "Python's `<<` and `>>` take no tensors; write tf.bitwise.left_shift(a, b) and tf.bitwise.right_shift(a, b)",
    ),
    _Explanation(
        r"^%\w format: .* is required, not \w*Tensor$|^unsupported format string passed to \w*Tensor\.__format__$",
        "Python cannot write a tensor into a text as a number, as it has no value before the graph runs; write "
        "tf.strings.as_string(x, precision=2) or tf.strings.format('{}', x), and tf.print to see it",
    ),
    _Explanation(
        r"^slice indices must be integers or None or have an __index__ method$",
        "Python's lists and texts are cut at numbers, and a tensor has no value before the graph runs; write "
        "tf.constant(numbers)[:n] for numbers[:n], tf.stack(tensors)[:n], or tf.strings.substr(text, 0, n)",
    ),
    _Explanation(
        r"^argument of type '\w*Tensor' is not ",
        "Python's `in` cannot search a tensor, which has no value before the graph runs; write tf.reduce_any(x == 3), "
        "or tf.strings.regex_full_match(text, '.*a.*')",
    ),
    _Explanation(
        rf"Tensor' object has no attribute '({'|'.join(_OF_TEXTS)})'",
        "a tensor has no '{1}', which is that of Python's texts; write TensorFlow's operators: tf.strings.lower, "
        "upper, strip, length, substr, regex_replace; tf.strings.regex_full_match(x, 'a.*') for x.startswith('a')",
    ),
    _Explanation(
        r"^(?:Tried to convert '\w+' to a tensor and failed\. Error: )?Cannot convert a partially known TensorShape",
        "x.shape stands where TensorFlow needs its numbers, and while the body is traced they are not known; write "
        "tf.shape(x), or state the shape: Defun(tf.TensorSpec(shape, dtype)), or output_shapes for what calls return",
        quotes=True,
    ),
    _Explanation(
        r"^'(\S+)' must also be initialized in the (?:main|else) branch",
        "'{1}' has a value on one path of an `if` alone, and is used behind it; give it a value before the `if`, or on "
        "the other path. If that one returns, this `if` is in a `with`, a `try` or a loop, from where AutoGraph does "
        "not go on to what follows: put what follows under `else`, or assign the result and return it at the end",
    ),
    _Explanation(
        r"^Tensor is unhashable",
        "Python's dictionaries and sets cannot look up a tensor, which has no value before the graph runs; write "
        "tf.switch_case, or tf.gather for numbers; a table of results that are known already is a "
        "tf.lookup.experimental.MutableHashTable",
    ),
    _Explanation(
        r"'\w*Tensor' object cannot be interpreted as an integer|not '\w*Tensor'$"
        r"|^expected a sequence of integers or a single integer, got '<tf\.Tensor"
        r"|^cannot convert '\w*Tensor' object to bytes",
        "Python takes a number here (in `range`, say), and a tensor has no value before the graph runs; write tf.range "
        "or tf.while_loop",
        is_converted=True,
    ),
    _Explanation(
        r"Argument `fetch` = (?:Tensor\(|name: )|Cannot interpret feed_dict key as Tensor: Tensor"
        r"|Cannot use the (?:default|given) session to (?:evaluate tensor|execute operation)"
        r"|Cannot (?:evaluate tensor|execute operation) using|The Session graph is empty"
        r"|You must feed a value for placeholder tensor '",
        _NO_SESSION,
    ),
    _Explanation(
        r"a return statement cannot be placed inside this TensorFlow loop",
        "AutoGraph cannot convert a `return` in a loop over tensors that not every iteration comes to; assign the "
        "result to a variable that is defined before the loop, leave the loop by `break`, and return the variable "
        "behind it",
    ),
    _Explanation(
        r"the (?:main|else) branch must also have a return statement",
        "an `if` that goes by a tensor returns on one side and not on the other. Each path has to return a value of "
        "one kind; where the function returns nothing, leave out `return`, and put what comes behind it under an `if` "
        "for the opposite. If each path does return, this `if` stands in another one (as `elif` does), in a `with`, a "
        "`try` or a loop, from where AutoGraph does not go on to what follows: write `if` for an `elif` behind a "
        "`return`, put what follows under `else`, or assign the result and return it at the end",
    ),
    _Explanation(
        r"'retval_' is None at the end of the (?:main|else) branch",
        "a path behind an `if` that goes by a tensor returns None, or leaves the function by `return`; where the "
        "function returns nothing, leave out `return`, and put what comes behind it under an `if` for the opposite; "
        "else return values of one kind, 0 for example, on each path. A part of a tuple or dictionary that is returned "
        "so may not be None either: leave it out",
    ),
    _Explanation(
        r"'retval_' has dtype (\w+) in the main branch, but dtype (\w+) in the else branch",
        "one path returns {1}, another one {2}; a Python number is int32 or float32, so write tf.constant(0, "
        "tf.int64), for example, or tf.cast. (A Python list to which a loop over tensors appends is empty behind the "
        "loop; write to a tf.TensorArray.)",
        of_results=True,
    ),
    _Explanation(
        r"is out of scope and cannot be used here",
        "a tensor of a loop, a branch or another function is used outside of it, where it has no value; a loop over "
        "tensors cannot append to a Python list: let `values = tf.TensorArray(dtype, n)` be before it, `values = "
        "values.write(i, x)` in it, and `values.stack()` behind it. Nor can a branch of an `if` that goes by a tensor: "
        "assign the value in both branches, and append it behind the `if`. Nor can an object, a dictionary or a "
        "`nonlocal` variable keep a tensor for another function: return it",
    ),
    _Explanation(
        r"slice index (-?\d+) of dimension \d+ out of bounds",
        "it reads part {1} of a tensor that has not as many. Python numbers and shapes are known while the body is "
        "traced, on all paths through it, also those that no call takes; pass a number that grows from call to call as "
        "a tensor, tf.constant(n), or state input_signature=[tf.TensorSpec([None], dtype), ...]",
        quotes=True,
    ),
    _Explanation(
        r"(?s)(?:Operation name: |Tensor Tensor\()\"(\S+)\".* is not an element of this graph",
        "it refers to '{1}' of the graph around it, as tf.control_dependencies does: a body waits only for operations "
        "of its own, and '{1}' is not an element of this graph; put the tf.control_dependencies around the call, or "
        "make the operation in the body",
    ),
    _Explanation(
        r"(?:'\w+_fn' must have a return value|Lengths of branch outputs of (?:cond|case) must match"
        r"|^\[\d+(?:, \d+)+\]$|must have the same number of outputs)",
        "the branches of a tf.cond return different numbers of tensors (None is none), or the body of a tf.while_loop "
        "another number than it takes; let each return the same, of a tf.case or tf.switch_case, too",
    ),
    _Explanation(
        r"two structures don't have the same nested structure",
        "the branches of a tf.cond return different numbers of tensors (None is none) or different tuples or "
        "dictionaries of them, or the body of a tf.while_loop another number than it takes; let each return the same, "
        "of a tf.case or tf.switch_case, too",
        quotes=True,
    ),
    _Explanation(
        r"^None values not supported|^(?:cond|body)_graph has \d+ outputs; Expected: \d+$"
        r"|^Tried to convert '\w+' to a tensor and failed\. Error: None values not supported",
        "None stands where a tensor is needed, as a branch of a tf.cond or the condition or body of a tf.while_loop "
        "returns it; let each return tensors. If it is a gradient, of an integer or of what the target does not depend "
        "on, ask for zeros: unconnected_gradients=tf.UnconnectedGradients.ZERO",
    ),
    _Explanation(
        r"^Attempting to slice scalar input",
        "a single value has no parts to be read as x[i] or x[a:b]; a text is one, so write tf.strings.substr(text, i, "
        "1) or tf.strings.bytes_split(text)",
        quotes=True,
    ),
    _Explanation(
        r"(?s)(?:arguments to tf\.(?:cond|switch_case|case) must have the same number, type"
        r"|Outputs of 'true_fn' and 'false_fn' must have the same type)",
        "the branches of a tf.cond return different dtypes; a Python number there is int32 or float32, so write "
        "tf.constant(0, tf.int64), for example",
        quotes=True,
    ),
    _Explanation(
        r"^Input '\w+' of '\w+' Op has type \w+ that does not match type \w+ of argument",
        "an operator takes values of one dtype here; a Python number that a tf.while_loop or an operator starts with "
        "is int32 or float32, so write tf.constant(0, tf.int64), for example, or tf.cast",
        quotes=True,
        of_results=True,
    ),
    _Explanation(
        r"^Expected (\w+) passed to parameter '\w+' of op '(\w+)', got (.+) of type '\w+' instead",
        "'{2}' takes values of one dtype, here {1}, and is given {3} along with a tensor; write a number of that kind, "
        "or tf.cast(x, tf.float32) for the tensor, for example",
        quotes=True,
        of_results=True,
    ),
    _Explanation(
        r"^Input '(?:pred|input)' of '(?:Switch|LoopCond)' Op has type (\w+) that does not match expected type of bool",
        "the condition of a tf.cond or tf.while_loop is {1} here and has to be a bool; write n > 0, for example, or "
        "tf.cast(n, tf.bool)",
        quotes=True,
    ),
    _Explanation(
        r"\bpred'? must not be a Python bool|^pred must be a Tensor, got: (?:True|False)$",
        "the condition of a tf.cond or tf.case is Python's True or False here, and has to be a tensor. Without eager "
        "execution, `n == 0` asks whether n and 0 are one object; write tf.equal(n, 0), and tf.not_equal for `!=`",
    ),
    _Explanation(
        r"^Shape must be rank 0 but is rank \d+ for '{{node \S+}} = (?:Switch|LoopCond)\[",
        "the condition of a tf.cond or tf.while_loop has to be a scalar; write tf.reduce_all(x > 0), for example, or, "
        "to choose element by element, tf.where",
        quotes=True,
    ),
    _Explanation(
        r"(?s)^Num gradients \d+ generated for op .*CustomGradient.* do not match num inputs \d+",
        "the backward function of a tf.custom_gradient returns more or fewer gradients than its function has "
        "arguments; let it return one for each",
    ),
    _Explanation(
        r"(?s)^Incompatible shapes between op input and calculated input gradient\..*Original input shape: (.*?)\.\s+"
        r"Calculated input gradient shape: (.*)",
        "a gradient of shape {2} is given for an argument of shape {1}; let the backward function of a "
        "tf.custom_gradient return one of the same shape, tf.zeros_like(x) for example",
    ),
    _Explanation(
        r"'(.*)' is encountered while parsing the device spec|Not a valid device name: \"(.*)\"",
        "tf.device does not know the device '{1}{2}'; write '/cpu:0', '/gpu:1' or '/job:worker/task:2/cpu:0', for "
        "example",
    ),
    _Explanation(
        r"^len is not well defined for a symbolic",
        "Python's `len` cannot read the length of a tensor, which has no value before the graph runs; write "
        "tf.shape(x)[0]",
        is_converted=True,
    ),
    _Explanation(
        r"^Cannot convert a symbolic tf\.Tensor|has no attribute 'numpy'|^must be real number, not \w*Tensor$",
        "Python and NumPy cannot read a tensor, which has no value before the graph runs; write TensorFlow's "
        "operators, or tf.py_function",
    ),
    _Explanation(
        r"Tensor' object has no attribute '(write|read|stack|unstack|gather|concat|scatter|split|size|flow)'",
        "it takes a tf.TensorArray, of which it asks '{1}', and is given a tensor; a tf.function that is called "
        "eagerly returns a tensor (of variants) in place of a tf.TensorArray: return values.stack() from it, and write "
        "tf.TensorArray(dtype, n).unstack(x) here, or make both calls in one tf.function",
        quotes=True,
    ),
    _Explanation(
        r"^In op '((?:(?!Assign).)+?)', input types .* expected types \(\[tf\.string_ref\b"
        r"|^'(\S+)' Op requires that input '\w*handle' be a mutable tensor",
        "'{1}{2}' takes a queue, barrier, table, accumulator or stack of TensorFlow 1 by a reference, a tensor of "
        "dtype string_ref, and a body captures or is passed its value alone, a string; make one that has a resource "
        "for its handle: tf.queue.FIFOQueue (tf.raw_ops.FIFOQueueV2) or tf.queue.RandomShuffleQueue, "
        "tf.lookup.StaticHashTable (tf.raw_ops.HashTableV2), tf.compat.v1.ConditionalAccumulator, tf.raw_ops.StackV2. "
        "Use what has none (a Barrier, a SparseConditionalAccumulator) outside of the body, and pass what it holds as "
        "an argument",
        quotes=True,
    ),
    _Explanation(
        r"^In op '(.+?)', input types .* expected types \(.*_ref\b"
        r"|^'(\S+)' Op requires that input '\w+' be a mutable tensor",
        "'{1}{2}' takes a reference variable, of which a body has the value alone; make it a resource variable "
        "(tf.compat.v1.get_variable(..., use_resource=True)), which bodies can assign to",
    ),
    _Explanation(
        r"not supported between instances of (?:'NoneType' and '(?:int|float)'|'(?:int|float)' and 'NoneType')"
        r"|unsupported operand type\(s\) for \S+: (?:'NoneType' and '(?:int|float)'|'(?:int|float)' and 'NoneType')"
        r"|'NoneType' object cannot be interpreted as an integer",
        "Python takes a number here and gets None; if that is a part of x.shape, which is None where the signature "
        "leaves it open or one trace serves tensors of many shapes, write tf.shape(x)[i] for x.shape[i], or state the "
        "shape: input_signature=[tf.TensorSpec(shape, dtype)], Defun(tf.TensorSpec(shape, dtype)); without a "
        "signature, tfr.recursive makes a trace for each size that the body reads; if it is the result of a call, let "
        "each `return` of that function return a value; if it is a "
        "gradient of what the target does not depend on, ask for zeros: "
        "unconnected_gradients=tf.UnconnectedGradients.ZERO",
        quotes=True,
    ),
    _Explanation(
        r"^A non-persistent GradientTape can only be used to compute one set of gradients",
        "a body is built more than once: to find out what it returns, and again for its gradient. A tape that begins "
        "outside of it is the same one each time: write tf.GradientTape(persistent=True), or take the gradient where "
        "the tape is, and let the body use it",
    ),
    _Explanation(
        r"^Expected int(?:32|64), but got None of type 'NoneType'",
        "None stands where a number is needed: a part of x.shape is None where it is not known, so write "
        "tf.shape(x)[i] for x.shape[i], or call x.set_shape([...])",
    ),
    _Explanation(
        r"enters the loop with shape (.+?), but has shape (.+?) after one iteration",
        "a tf.while_loop carries a value of shape {1} on as one of shape {2}; if that comes of the result of a call, "
        "state `output_shapes` in the Declare or Defun of the function that is called, or put tf.ensure_shape around "
        "the call of a tfr.recursive function; if it comes of an argument, whose shape a Defun does not know, define "
        "the function by Defun(tf.TensorSpec(shape, dtype)); or give the loop shape_invariants",
        quotes=True,
    ),
    _Explanation(
        r"^the initializer of variable '(.*)' is a tensor of the body"
        r"|could not be lifted out of a `tf\.function`\. \(Tried to create variable with name='(.*?)'\)",
        "the variable '{1}{2}' begins with a tensor that the body makes, but it is made outside of the body, once for "
        "all calls; give it a number, an array or a function (get_variable(name, shape, "
        "initializer=tf.compat.v1.ones_initializer()), tf.Variable(lambda: tf.ones(shape))), or make the tensor where "
        "the function is called",
    ),
    _Explanation(
        r"^the initializer or regularizer of variable '(.*)' uses a tensor of the body",
        "the variable '{1}' is made outside of the body, once for all calls, and so are its initial value and its "
        "regularizer's loss; let the functions that are given for these make the tensors that they use, or take them "
        "from where the function is called",
    ),
    _Explanation(
        r"^variable '(.*)' was made by other lines in an earlier trace",
        "TensorFlow numbers variable scopes with a `default_name` as it comes to them, and '{1}' was another variable "
        "when the body was built to find out what the function returns, where paths with calls are left out; give each "
        "such scope or layer a name",
    ),
    _Explanation(
        r"Can ?not squeeze dim\[\d+\], expected a dimension of 1, got (\d+)",
        "tf.squeeze takes out dimensions of 1, and one of {1} stands here; every path is traced with the shapes of the "
        "arguments, also one that ends the recursion with smaller tensors: state an `input_signature` (of Defun, a "
        "tf.TensorSpec) with None for the dimensions that change",
        quotes=True,
    ),
    _Explanation(
        r"^maximum recursion depth exceeded",
        "functions of Python call one another more often than Python lets them while the body is traced. One that "
        "calls itself, and ends where a tensor says so, is traced without end: put @tfr.recursive above its `def`. "
        "Where a method, a functools.partial, a tf.function, or a function that assigns global variables or has "
        "attributes is made recursive under another name, g = tfr.recursive(f), its body still calls f: write "
        "f = tfr.recursive(f)",
        of_results=True,
    ),
    _Explanation(
        r"Number of mask dimensions must be specified|Cannot infer argument `num` from shape <unknown>"
        r"|(?:unknown|undefined|undefined or unknown) (?:rank|TensorShape)|Received shape: <unknown>"
        r"|'images' contains no shape"
        r"|[Rr]ank .*(?:be (?:statically )?(?:known|defined)|is unknown)|have (?:a )?(?:statically-)?known rank",
        "TensorFlow has to know a shape here, and neither the arguments of a function nor the results of calls have "
        "one by themselves; call x.set_shape([...]) or tf.ensure_shape for an argument, and state `output_shapes` in "
        "the Declare or Defun of a function that is called; tf.ensure_shape serves for calls, too",
        quotes=True,
    ),
)


def leave_out_own_frames() -> None:
    """From now on, let what AutoGraph says of an error show the user's lines, without this package's between them."""
    autograph_errors.leave_out_of_errors(_FOLDERS[0])


@contextlib.contextmanager
def explained(function: str, *, autograph: bool | None = None, note: Callable[[], str] = str) -> Iterator[None]:
    """Let errors of what is built inside say what is wrong with the body of `function`; their types stay.

    Args:
      function: its name.
      autograph: whether the user lets AutoGraph convert the body; None where it never does.
      note: what to append to errors about dtypes and shapes of tensors.

    Raises:
      TypeError, ValueError, AttributeError, RuntimeError, AssertionError: as what is built inside does (a
        NotImplementedError and a RecursionError are RuntimeErrors, but AutoGraph makes a StagingError of the latter).
      tf.errors.InvalidArgumentError: if a session was run for a tensor of the body.
    """
    try:
        yield
    except (TypeError, ValueError, AttributeError, RuntimeError, AssertionError, StagingError) as error:
        text = _explanation(error, autograph=autograph, note=note)
        if text is None:
            if autograph and autograph_errors.is_raised_in_branch(error, is_ours) and _RAISED not in str(error):
                message = f"{str(error).rstrip()}\n\nFunction '{function}'{place(error)}: {_RAISED}"
                raise with_message(error, message) from error
            raise
        raise with_message(error, f"Function '{function}'{place(error)}: {text}") from error
    except tf.errors.InvalidArgumentError as error:
        text = _explanation(error)
        if text is None or error.op is None or not error.op.graph.building_function:  # of a session of another graph
            raise
        message = f"Function '{function}'{place(error)}: {text}"
        raise tf.errors.InvalidArgumentError(error.node_def, None, message) from error


def with_users_frames(error: Exception) -> Exception:
    """An error without the frames of libraries in its traceback, unless the user wants to see those.

    AutoGraph writes every frame that is there into the message. Those of contextlib are where `explained` is left.
    """
    if not tf.debugging.is_traceback_filtering_enabled():
        return error
    entries, entry = [], error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        if not is_ours(file) and file != contextlib.__file__:
            entries.append(entry)
        entry = entry.tb_next
    kept = None
    for entry in reversed(entries):
        kept = types.TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return error.with_traceback(kept)


def is_ours(file: str) -> bool:
    """Whether a file of Python is TensorFlow's or this package's, not the user's or another library's."""
    return os.path.abspath(file).startswith(_FOLDERS)


def is_explained(message: str) -> bool:
    """Whether a message says what is wrong already, and with which function."""
    return message.startswith(("Function '", "Call of '"))


def _explanation(error: Exception, *, autograph: bool | None = None, note: Callable[[], str] = str) -> str | None:
    """What an error means, None if that is not known or said already; arguments as those of `explained`."""
    message = autograph_errors.message_of(error)
    if is_explained(message):
        return None
    for known in _EXPLANATIONS:
        if found := re.search(known.pattern, message):
            groups = enumerate(found.groups(), start=1)
            text = known.text
            for number, group in groups:
                text = text.replace(f"{{{number}}}", group or "")
            if autograph is not None and known.is_converted:
                text = _of_converted(known, error, text, autograph)
            if known.quotes:
                text = f"{text} ({' '.join(message.split())})"
            return text + note() if known.of_results else text
    return None


def _of_converted(known: _Explanation, error: Exception, text: str, autograph: bool) -> str:
    """The `text` of an explanation as it is for a body that AutoGraph converts, where it can and is let to."""
    if (cause := autograph_errors.unconverted(error, is_ours, is_off=not autograph)) is not None:
        remains = f" (What stays an error then: {known.in_converted})" if known.in_converted and not autograph else ""
        return f"{cause}. Unconverted, {text}{remains}"
    return known.in_converted if known.in_converted and autograph_errors.is_in_converted(error, is_ours) else text


def place(error: Exception) -> str:
    """File and line of the body where the error came up, if it is in a file."""
    for file, line in _frames(error):
        if not is_ours(file) and not os.path.abspath(file).startswith(_CALLED) and os.path.exists(file):
            if "contextlib" not in file and not is_converted(file):
                return f" ({os.path.basename(file)}, line {line})"
    return ""


def _frames(error: Exception) -> list[tuple[str, int]]:
    """Files and lines that an error came through, the innermost first."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    lines = [autograph_errors.users_line(frame.filename, frame.lineno or 0) for frame in frames]
    return autograph_errors.converted_lines(error) + lines
