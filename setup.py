"""Builds the operator library and the native module against the installed TensorFlow."""
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "tools"))
import native

PACKAGE = "tensorflow_recursion"
PRODUCTS = (native.LIBRARY, native.MODULE, "_build_info.py")


class BuildNative(build_ext):
    """Hands the work to CMake (tools/native.py); setuptools only learns where the products are."""

    def run(self):
        if self.inplace:
            destination = pathlib.Path(self.get_finalized_command("build_py").get_package_dir(PACKAGE))
        else:
            destination = pathlib.Path(self.build_lib, PACKAGE)
        destination.mkdir(parents=True, exist_ok=True)
        try:
            native.build_package(destination, self.distribution.get_version())
        except native.BuildError as error:
            sys.exit(f"tensorflow_recursion: {error}")

    def get_outputs(self):
        return [os.path.join(self.build_lib, PACKAGE, name) for name in PRODUCTS]

    def get_output_mapping(self):
        package_dir = self.get_finalized_command("build_py").get_package_dir(PACKAGE)
        return {os.path.join(self.build_lib, PACKAGE, n): os.path.join(package_dir, n) for n in PRODUCTS}


class BuildPython(build_py):
    """Leaves out what an in-place build put beside the sources: it may be for another TensorFlow."""

    def find_package_modules(self, package, package_dir):
        return [m for m in super().find_package_modules(package, package_dir) if m[1] != "_build_info"]

    def find_data_files(self, package, src_dir):
        return [f for f in super().find_data_files(package, src_dir) if not f.endswith(".so")]


setup(
    # Named so that the wheel carries a platform tag; BuildNative decides what is built.
    ext_modules=[Extension(f"{PACKAGE}._native", sources=[])],
    cmdclass={"build_ext": BuildNative, "build_py": BuildPython},
)
