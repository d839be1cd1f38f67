"""Recursive functions as one static dataflow graph on stock TensorFlow."""
# SPDX-License-Identifier: Apache-2.0

from tensorflow_recursion import _loader

_loader.load()

from tensorflow_recursion import (  # noqa: E402
    config,
    conversions,
    error_lines,
    explanations,
    function,
    imports,
    loop_errors,
    names,
    vectorization,
)
from tensorflow_recursion._build_info import VERSION as __version__  # noqa: E402
from tensorflow_recursion._tf import arrays, changed_files, datasets, followed, lists, loops, pools, read_shapes  # noqa: E402
from tensorflow_recursion.config import session_config  # noqa: E402
from tensorflow_recursion.debugging import bytecode, is_static, transform_graph  # noqa: E402
from tensorflow_recursion.declarations import Declare, Defun  # noqa: E402
from tensorflow_recursion.recursive import recursive  # noqa: E402

arrays.let_functions_return_arrays()
changed_files.refuse()
conversions.register()
datasets.hide_from_optimizer(names.INVOKE)
datasets.refuse_fingerprints(names.INVOKE)
followed.follow(names.INVOKE, names.RECALL)
error_lines.show_in_errors()
explanations.leave_out_own_frames()
imports.register()
loop_errors.explain_loops()
lists.mend_gathers()
loops.mend_invariants()
read_shapes.watch_ndim()
pools.mend_second_derivatives()
vectorization.register()

__all__ = [
    "Declare",
    "Defun",
    "__version__",
    "bytecode",
    "config",
    "function",
    "is_static",
    "recursive",
    "session_config",
    "transform_graph",
]
