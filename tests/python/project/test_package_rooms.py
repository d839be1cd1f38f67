"""The rooms of the Python package: who may import whom, and who may touch what is private to TensorFlow."""
# SPDX-License-Identifier: Apache-2.0

import ast
import pathlib
import re

import pytest

from tensorflow_recursion import _native

pytestmark = pytest.mark.every_case

PACKAGE = "tensorflow_recursion"
ROOT = pathlib.Path(__file__).resolve().parents[3]

# A module imports only from lines above its own; `a, b` on one line do not import each other.
ORDER = """
    _build_info, _native
    _loader
    names
    _tf
    _tf.attributes
    errors, converted, keras_functions
    notices
    _tf.replacements
    _tf.recorders
    _tf.typed, _tf.changed_files, _tf.tangents
    _tf.read_shapes, _tf.graphs, _tf.nodes, _tf.functions, _tf.handles, _tf.sessions, _tf.saved_attributes
    _tf.variable_scopes
    _tf.assignments, _tf.copies, _tf.importing, _tf.function_calls
    _tf.followed, _tf.origins, _tf.hints, _tf.saving
    _tf.branches, _tf.tapes, _tf.inlining, _tf.loading, _tf.conversion, _tf.datasets, _tf.keras_scopes
    _tf.freezing, _tf.nests, _tf.dataclass_nests, _tf.function_parts
    _tf.function_copies, _tf.arrays
    _tf.function_kinds
    _tf.type_texts
    _tf.function_types
    _tf.patches, _tf.inferring, _tf.lists, _tf.loops, _tf.pools, _tf.side_effects
    _tf.autograph, _tf.autograph_errors, _tf.vectorized
    _tf.tracing
    ops, explanations
    vectorization, conversions
    traces
    traces.signatures, traces.shapes, traces.handed_on, traces.made_functions, traces.looks
    traces.definitions, traces.results, traces.made_variables
    traces.traced_bodies, traces.result_shapes, traces.contradictions
    traces.attempts, traces.ends
    traces.tracing
    traces.nested_calls, traces.unresolved, traces.installation
    argument_kinds
    argument_kinds.sharing, argument_kinds.passed_numbers, argument_kinds.output_signatures
    argument_kinds.specializations
    argument_kinds.known_specializations, argument_kinds.inference, argument_kinds.endless
    call_checks, call_arguments, methods, eager_functions, imports, loop_errors
    weight_gradients
    weight_gradients.sizes, weight_gradients.weight_views
    weight_gradients.gradients_of_sums
    weight_gradients.contributions
    weight_gradients.terms
    weight_gradients.products, weight_gradients.rows
    weight_gradients.contributing
    weight_gradients.usages, weight_gradients.fixed_values
    weight_gradients.uses_in_body, weight_gradients.weights
    weight_gradients.obstacles
    forward_backward
    forward_backward.modes, forward_backward.tracer, forward_backward.tf_functions, forward_backward.effects
    forward_backward.knowledge
    forward_backward.pairs
    forward_backward.pair_functions, forward_backward.bodies
    forward_backward.cut
    forward_backward.groups
    gradients
    gradients.user_functions, gradients.dead_inputs, gradients.snapshots, gradients.repeats
    gradients.higher_orders, gradients.records, gradients.requested_pairs
    gradients.call_kinds, gradients.gradient_calls
    gradients.forward_calls, gradients.backward_calls
    gradients.requests
    calls
    defined, recursive_functions, error_lines
    recursive, declarations
    config, function
    debugging
    __init__
"""
LEVELS = {
    module: level for level, line in enumerate(ORDER.split("\n")) for module in line.replace(",", " ").split() if module
}


def module_name(path):
    """`gradients.records`, `_tf`, ...; `__init__` is the package itself."""
    parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def sources():
    """The Python files of the package by module, apart from what the build writes."""
    found = {module_name(path): path for path in sorted((ROOT / PACKAGE).rglob("*.py"))}
    found.pop("_build_info", None)
    return found


def imports(tree):
    """Full names of the modules (or of names in them) that a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(tree):
    """Modules of the package that a file imports."""
    for name in imports(tree):
        if name.split(".")[0] == PACKAGE:
            parts = name.split(".")[1:]
            known = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
            yield next((module for module in known if module in LEVELS), "__init__")


def private_members(tree):
    """Names of attributes with one leading underscore that a file reads or sets of other objects than its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "super")):
                yield node.attr


def test_every_module_has_its_place():
    assert set(sources()) == set(LEVELS) - {"_build_info", "_native"}


@pytest.mark.parametrize(
    "room", ["_tf", "traces", "argument_kinds", "weight_gradients", "forward_backward", "gradients"]
)
def test_room_says_what_each_of_its_modules_is_for(room):
    text = ast.get_docstring(ast.parse(sources()[room].read_text()))
    described = re.findall(r"^- `((?!f__)\w+)`:", text, re.MULTILINE)  # f__forward is a function, no module
    assert {f"{room}.{name}" for name in described} == {name for name in sources() if name.startswith(f"{room}.")}


@pytest.mark.parametrize("module", sources())
def test_module_imports_only_from_rooms_before_it(module):
    tree = ast.parse(sources()[module].read_text())
    found = {other: LEVELS[other] for other in imported_rooms(tree)}
    assert {other for other, level in found.items() if level >= LEVELS[module]} == set()


@pytest.mark.parametrize("module", [name for name in sources() if name.split(".")[0] != "_tf"])
def test_private_modules_and_members_of_tensorflow_are_left_to_their_room(module):
    tree = ast.parse(sources()[module].read_text())
    modules = [name for name in imports(tree) if name.startswith(("tensorflow.", "tensorflow_core."))]
    assert modules == []
    allowed = {"_native", "_build_info"}
    assert set(private_members(tree)) - allowed == set()


def replaced_for_good(tree):
    """What a file says to replace in TensorFlow for good, as far as it says it by a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "replace_for_good":
            owner, name, _ = node.args
            if isinstance(name, ast.Constant):
                yield f"{ast.unparse(owner)}.{name.value}"


def assigned_in_tensorflow(tree):
    """The attributes of modules and classes of TensorFlow that a file assigns to."""
    from_modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {
        alias.asname or alias.name
        for node in from_modules
        if node.module.split(".")[0] == "tensorflow"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if (name := ast.unparse(node)).split(".")[0] in imported:
                yield name


@pytest.mark.parametrize("module", [name for name in sources() if name.split(".")[0] == "_tf"])
def test_what_is_replaced_for_good_is_listed(module):
    tree = ast.parse(sources()[module].read_text())
    assert list(assigned_in_tensorflow(tree)) == [], "replace_for_good does it"
    text = ast.get_docstring(ast.parse(sources()["_tf.replacements"].read_text()))
    entry = re.search(rf"^- `{module.removeprefix('_tf.')}`.*?(?=^- |^$)", text, re.MULTILINE | re.DOTALL)
    listed = re.findall(r"`(\w[\w.]*\.\w+)`", entry[0]) if entry else []
    found = list(replaced_for_good(tree))
    if module == "_tf.recorders":  # it says some by variables
        assert set(found) < set(listed)
    else:
        assert sorted(found) == sorted(listed)


def strings(tree):
    """The string constants of a file, apart from docstrings and parts of longer texts."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


@pytest.mark.parametrize("module", [name for name in sources() if name != "names"])
def test_names_of_operators_and_suffixes_are_written_in_the_library_alone(module):
    shared = {name for key, name in _native.NAMES.items() if key.endswith(("_OP", "_SUFFIX")) or key == "OPTIMIZER"}
    assert len(shared) > 10
    assert shared.isdisjoint(strings(ast.parse(sources()[module].read_text())))


def test_checks_find_what_they_look_for():
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from tensorflow_recursion.calls import Library\n"
        "def f(op):\n    from tensorflow.python.ops import cond_v2\n    op._set_attr('a', 1)\n    self._a = 1\n"
    )
    assert list(imported_rooms(tree)) == ["calls"]
    assert "tensorflow.python.ops.cond_v2" in imports(tree)
    assert list(private_members(tree)) == ["_set_attr"]
    tree = ast.parse(
        "from tensorflow.python.ops import a\na.b.c = d.e = 1\na.f, x = 1, 2\nreplace_for_good(a.b, 'c', d)\n"
    )
    assert list(assigned_in_tensorflow(tree)) == ["a.b.c", "a.f"]
    assert list(replaced_for_good(tree)) == ["a.b.c"]
    assert set(strings(ast.parse("'a docstring'\nx = f'{y}__fn' + 'name'"))) == {"__fn", "name"}
