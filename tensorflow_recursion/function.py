"""Declare and Defun under the name that scripts for TensorFlow's own `function` module import."""
# SPDX-License-Identifier: Apache-2.0

from tensorflow_recursion.declarations import Declare, Defun

__all__ = ["Declare", "Defun"]
