"""What is replaced in TensorFlow: functions for a while, in one thread, or for good.

`Replacements` are there for the whole process, as long as any thread needs them. But what replaces a function does what
TensorFlow does in every thread that does not need it. Their classes say what they replace, in `patches`, `inlining`,
`inferring`, `read_shapes` and `side_effects`.

`replace_for_good` is for what a user of this package needs at any time. What replaces a function calls that function,
unless something of ours is concerned, or TensorFlow errs. This is all that is replaced for good, by the modules that do
it:

- `recorders`, so that it is known which tapes, accumulators and watchers are active: `tape.push_new_tape`,
  `tape.push_tape`, `tape.pop_tape`, `forwardprop.ForwardAccumulator._push_accumulator`,
  `forwardprop.ForwardAccumulator._pop_accumulator`, `record.VariableWatcher.__enter__`,
  `record.VariableWatcher.__exit__`.
- `followed`, for tangents, and because TensorFlow errs in zeros of datasets and in calls that return nothing:
  `default_gradient.zeros_like`, `concrete_function._ForwardBackwardCall.record`,
  `concrete_function.ConcreteFunction._call_flat`.
- `function_calls`, so that a trace that calls cannot run is made anew: `function_cache.FunctionCache.lookup`.
- `branches`, so that bodies have If and While, and branches names of their own:
  `control_flow_util.EnableControlFlowV2`, `control_flow_util_v2.unique_fn_name`; and so that their gradients take
  eager tensors: `cond_v2._CondGradFuncGraph.capture`, `while_v2._WhileBodyGradFuncGraph.capture`; and because
  TensorFlow errs about tensors of one name in two graphs: `control_flow_ops.CondContext.AddValue`,
  `control_flow_ops.CondContext._ProcessOutputTensor`, `control_flow_ops.WhileContext.AddValue`.
- `side_effects`, so that functions leave out what nothing reads: `auto_control_deps.op_is_stateful`,
  `auto_control_deps._get_resource_inputs`.
- `vectorized`, so that they leave out calls that are vectorized: `pfor.PFor._add_conversion`.
- `autograph`, so that it leaves out our own lines, and because TensorFlow errs in conditional expressions, and about
  the lines of decorators: `config.CONVERSION_RULES`, `ConditionalExpressionTransformer.visit_IfExp`,
  `origin_info.resolve_entity`.
- `changed_files`, because TensorFlow converts functions that were edited after they were loaded: `parser.parse_entity`.
- `autograph_errors`, so that errors leave out our own lines, and because TensorFlow errs in those of users:
  `traceback_utils._EXCLUDED_PATHS`, `traceback_utils._process_traceback_frames`.
- `inlining`, so that graphs of loaded branches and loops are made once: `cond_v2.get_func_graphs`,
  `while_v2._get_graph`.
- `arrays`, so that eager calls return arrays as such: `TensorArrayTraceType.from_tensors`.
- `loops`, for what errors say, and because TensorFlow errs: `while_v2._check_shapes_compat`,
  `control_flow_ops._EnforceShapeInvariant`, `while_v2._is_loop_invariant`.
- `origins`, so that errors say more: `ops.raise_from_not_ok_status`, `error_interpolation.interpolate_graph`,
  `atomic_function.InterpolateRuntimeError`.
- `datasets`, so that recursive functions of datasets do no harm: `atomic_function.from_func_graph`,
  `snapshot_op._snapshot`, `DatasetV2.fingerprint`.
- `read_shapes`, to see who reads a rank: `ops.SymbolicTensor.ndim`.
- `importing`, so that imported calls are static: `importer._ProcessGraphDefParam`.
- `hints`, so that SavedModels say what to import: `save._fill_meta_graph_def`,
  `builder_impl._SavedModelBuilder._tag_and_add_meta_graph`.
- `saving`, so that gradients are saved: `save._iterate_op_types`, `save._trace_gradient_functions`.
- `saved_attributes`, so that recursive functions are saved: `graph_view.ObjectGraphView.list_children`,
  `signature_serialization.find_function_to_export`, `signature_serialization._get_signature`,
  `save._build_meta_graph`.
- `loading`, so that functions that call each other are loaded: `loader.load_function_def_library`,
  `loader._list_function_deps`, `loader.fix_node_def`, `loader._get_gradient_op_type`, `loader.function_def_lib`,
  `SessionGraphLoader.load`, `SessionGraphLoader.load_graph`.
- `freezing`, so that they are frozen: `converter.tf_optimizer`, `converter._Node.new`,
  `converter._replace_variables_by_constants`.
- `conversion`, so that the converters to TensorFlow Lite, XLA and fewer bits refuse them: `lite.convert`,
  `XLACompileContext.AddOp`, `quantize_model._static_range_quantize`, `quantize_model._dynamic_range_quantize`,
  `quantize_model._weight_only_quantize`.

Besides, `pools` and `lists` replace registered gradients. What is replaced in one graph or object alone is not listed.
"""
# SPDX-License-Identifier: Apache-2.0

import abc
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Replacements(abc.ABC):
    """Functions of TensorFlow that are replaced while any thread is inside of `active`, and what replaces them."""

    def __init__(self) -> None:
        self._depth = threading.local()  # how many `active` of this thread are open
        self._lock = threading.Lock()  # guards what follows: threads enter and leave on their own
        self._users = 0
        self._originals: list[tuple[Any, str, Any]] = []

    @property
    def are_active(self) -> bool:
        """Whether this thread is inside of `active`."""
        return getattr(self._depth, "value", 0) > 0

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Inside, the replacements do their work in this thread."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._install()
        self._depth.value = getattr(self._depth, "value", 0) + 1
        try:
            yield
        finally:
            self._depth.value -= 1
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._uninstall()

    @abc.abstractmethod
    def _install(self) -> None:
        """Replace what is to be replaced."""

    def _uninstall(self) -> None:
        while self._originals:
            setattr(*self._originals.pop())

    def replace(self, owner: Any, name: str, replacement: Callable[..., Any]) -> None:
        """Let `replacement` be called in place of a function, in threads where replacements are active."""
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return (replacement if self.are_active else original)(*args, **kwargs)

        self.put(owner, name, call)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Let `owner` have `value` as its attribute `name` in all threads, until no replacement is active."""
        self._originals.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def replace_for_good(owner: Any, name: str, replacement: Any) -> None:
    """Let `owner`, a module or class of TensorFlow, have `replacement` as its attribute `name` from now on."""
    setattr(owner, name, replacement)
