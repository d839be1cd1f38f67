"""Recursive functions that a SavedModel has as attributes, elements and signatures, as it has tf.functions."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.python.checkpoint import graph_view
from tensorflow.python.framework import func_graph
from tensorflow.python.saved_model import function_serialization, nested_structure_coder, save, signature_serialization
from tensorflow.python.trackable import autotrackable, base, data_structures

from tensorflow_recursion import names
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

# What is kept with TensorFlow's view of an object to be saved: its recursive functions that can be saved, with the
# tf.functions that are saved in their place.
_CHECKED: Attribute[dict[Any, Any]] = Attribute(names.CHECKED)
# The name in a spec's text.
_NAME = re.compile(r", name=(None|'[^']*')")


class _Saving(threading.local):
    """What this thread saves.

    Attributes:
      found: the names of the recursive functions that the model has.
      is_without: whether it is saved without them, after that failed with them.
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.is_without = False


_saving = _Saving()


def install(
    kinds: tuple[type, ...], entry_of: Callable[[Any], Any], warn: Callable[[Sequence[str], Exception], None]
) -> None:
    """Let TensorFlow save objects of `kinds`.

    Args:
      kinds: the classes of recursive functions, and of those bound to an object.
      entry_of: returns the tf.function that is saved in place of such an object.
      warn: is called with the names of attributes that are not saved, and the error that says why.
    """
    list_children = graph_view.ObjectGraphView.list_children

    def entries(view: Any, parent: Any) -> Iterator[tuple[str, Any]]:
        checked = _CHECKED.made(view, dict)  # a function may be an attribute of many objects
        for name, get in _attributes(parent, kinds):
            try:
                value = get()
                entry = checked.get(value) or entry_of(value)
                if value not in checked:
                    _check(entry)
            except Exception as error:  # anything may come out of a body
                warn([f"{type(parent).__name__}.{name}"], error)
            else:
                checked[value] = entry
                _saving.found.append(f"{type(parent).__name__}.{name}")
                yield name, entry

    def list_with_entries(self: Any, obj: Any, save_type: str = base.SaveType.CHECKPOINT, **kwargs: Any) -> Any:
        children = list_children(self, obj, save_type, **kwargs)  # traces tf.functions, which may call ours
        if save_type != base.SaveType.SAVEDMODEL or _saving.is_without or not (found := list(entries(self, obj))):
            return children
        children = list_children(self, obj, save_type, **kwargs)  # our traces may have made variables
        return [*children, *(base.TrackableReference(name, entry) for name, entry in found)]

    replace_for_good(graph_view.ObjectGraphView, "list_children", list_with_entries)
    _install_signatures(kinds, entry_of)
    _install_second_attempt(warn, lambda function: entry_of(function) if isinstance(function, kinds) else function)


def _install_signatures(kinds: tuple[type, ...], entry_of: Callable[[Any], Any]) -> None:
    """Let such objects be signatures of a model."""
    find_function = signature_serialization.find_function_to_export
    signature_of = signature_serialization._get_signature

    def find_function_or_entry(view: Any) -> Any:
        # TensorFlow makes a signature of the only function that a module has. That is a tf.function's place first: a
        # module may have recursive functions for no other purpose than that its tf.function calls them.
        own = {name for name, _ in _attributes(view.root, kinds)}
        return find_function(_Without(view, own)) or find_function(view)

    def signature_or_that_of_entry(function: Any) -> Any:
        return signature_of(entry_of(function) if isinstance(function, kinds) else function)

    replace_for_good(signature_serialization, "find_function_to_export", find_function_or_entry)
    replace_for_good(signature_serialization, "_get_signature", signature_or_that_of_entry)


def _install_second_attempt(warn: Callable[[Sequence[str], Exception], None], saved_for: Callable[[Any], Any]) -> None:
    """Save a model without its recursive functions where it cannot be saved with them.

    `saved_for` returns what is saved in place of a function; its user may give it an alias.
    """
    build = save._build_meta_graph

    def build_with_entries(obj: Any, signatures: Any, options: Any, meta_graph_def: Any = None) -> Any:
        _saving.found.clear()
        if options.function_aliases:
            options = copy.copy(options)
            options.function_aliases = {name: saved_for(one) for name, one in options.function_aliases.items()}
        try:
            return build(obj, signatures, options, meta_graph_def)
        except (AssertionError, KeyError) as error:  # a function reads what the model does not keep
            if not _saving.found:
                raise
            if meta_graph_def is not None:
                meta_graph_def.Clear()
            _saving.is_without = True
            try:
                built = build(obj, signatures, options, meta_graph_def)
            finally:
                _saving.is_without = False
            warn(list(dict.fromkeys(_saving.found)), error)
            return built

    replace_for_good(save, "_build_meta_graph", build_with_entries)


def _check(entry: Any) -> None:
    """Trace what has a signature, as TensorFlow does to save it; raises NotEncodableError for what it cannot write."""
    function_serialization.serialize_function(entry, [])
    for function in entry._list_all_concrete_functions_for_serialization():
        outputs = func_graph.convert_structure_to_signature(function.structured_outputs)
        nested_structure_coder.encode_structure((function.structured_input_signature, outputs))


class _Without:
    """A view of what is saved where the root lacks some children."""

    def __init__(self, view: Any, names: set[str]) -> None:
        self._view, self._names, self.root = view, names, view.root

    def list_children(self, obj: Any) -> list[Any]:
        return [child for child in self._view.list_children(obj) if child.name not in self._names]


def trace_if_new(entry: Any, call_type: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Trace a tf.function for calls of a type, given with its arguments as specs, unless a trace serves such calls."""
    traced = [function.function_type for function in entry._list_all_concrete_functions()]
    if not any(_parameters(one) == _parameters(call_type) for one in traced):
        entry.get_concrete_function(*args, **kwargs)


def _parameters(call_type: Any) -> list[Any]:
    """The parameters of a type, without the names that TensorFlow gives specs where it traces."""
    return [(name, _NAME.sub("", str(one.type_constraint))) for name, one in call_type.parameters.items()]


def can_be_saved(arguments: Any) -> bool:
    """Whether a SavedModel can say that a function takes such arguments, a nest of specs and Python values."""
    return bool(nested_structure_coder.can_encode(arguments))


def _attributes(parent: Any, kinds: tuple[type, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Which attributes of an object, or elements of a list, tuple or dictionary, are of these classes.

    Yields their names, and what returns their values.
    """
    if isinstance(parent, data_structures.List | data_structures.ListWrapper | data_structures._TupleWrapper):
        elements: Iterable[tuple[Any, Any]] = ((str(i), value) for i, value in enumerate(parent))
    elif isinstance(parent, data_structures.Mapping | data_structures._DictWrapper):
        elements = parent.items()
    else:
        elements = ()
    for key, value in elements:
        if isinstance(key, str) and isinstance(value, kinds):
            yield key, functools.partial(_itself, value)
    if isinstance(parent, autotrackable.AutoTrackable):
        for name in dir(parent):
            found = inspect.getattr_static(parent, name, None)  # properties would run code
            if isinstance(found.__func__ if isinstance(found, staticmethod) else found, kinds):
                yield name, functools.partial(getattr, parent, name)


def _itself(value: Any) -> Any:
    return value
