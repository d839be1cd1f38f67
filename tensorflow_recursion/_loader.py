"""Loads the operator library into TensorFlow, after checking that it was built for it."""
# SPDX-License-Identifier: Apache-2.0

import pathlib

import tensorflow as tf

LIBRARY = "libtensorflow_recursion.so"
# Without --no-cache-dir pip may take the wheel that it built for the other TensorFlow.
BUILD_COMMAND = "pip install --force-reinstall --no-cache-dir --no-deps ."


def load() -> None:
    """Load the operator library that stands beside this file.

    Raises:
      ImportError: if the library is missing, was built for another minor version of TensorFlow, or cannot be loaded.
    """
    check_version(_built_for(), tf.__version__)
    path = pathlib.Path(__file__).with_name(LIBRARY)
    if not path.exists():
        raise ImportError(f"tensorflow_recursion is not built: {path} is missing; build it with: {BUILD_COMMAND}")
    try:
        tf.load_op_library(str(path))
    except tf.errors.OpError as error:
        raise ImportError(f"cannot load {path}: {error.message}; rebuild it with: {BUILD_COMMAND}") from error


def check_version(built_for: str, running: str) -> None:
    """Check that a library built for one TensorFlow version can be loaded into another.

    Binaries are not portable between minor versions: loading one crashes the process or misreads memory.

    Args:
      built_for: version the library was compiled against, e.g. `"2.21.0"`.
      running: version of the TensorFlow that was imported.

    Raises:
      ImportError: if the two differ in major or minor version; names both and the command that rebuilds.
    """
    if built_for.split(".")[:2] != running.split(".")[:2]:
        raise ImportError(
            f"tensorflow_recursion was built for TensorFlow {built_for} and does not load under TensorFlow {running}; "
            f"rebuild it with: {BUILD_COMMAND}"
        )


def _built_for() -> str:
    try:
        from tensorflow_recursion import _build_info
    except ImportError as error:
        raise ImportError(f"tensorflow_recursion is not built; build it with: {BUILD_COMMAND}") from error
    return _build_info.TENSORFLOW_VERSION
