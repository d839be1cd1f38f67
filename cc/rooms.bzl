"""The rooms of the C++ and their order, written once: Bazel loads this, tests/python/project/test_rooms.py executes it."""
# SPDX-License-Identifier: Apache-2.0

load("@tensorflow//:flags.bzl", "TENSORFLOW_COPTS")
load("//cc:flags.bzl", "COPTS")
load("//cc:unity.bzl", "unity")

# Each room with those directly below it. Its files may include headers of the room itself and of every room that can be
# reached downwards: `values` those of `base`, `executor` those of `program`, `analysis`, `values` and `base`.
ROOMS = {
    "base": [],
    "values": ["base"],
    "native": ["values"],
    "analysis": ["values"],
    "bytecode": ["analysis"],
    "program": ["bytecode"],
    "executor": ["program"],
    "expand": ["analysis"],
    "passes": ["expand"],
    "kernels": ["executor", "passes", "native"],
    "python": ["kernels"],
}

def room():
    """The library of the room that this BUILD file lies in. Only rooms directly above it and the tests may use it."""
    name = native.package_name().split("/")[-1]
    above = [other for other in ROOMS if name in ROOMS[other]]
    native.cc_library(
        name = name,
        srcs = unity("unity", native.glob(["*.cc"])),
        hdrs = native.glob(["*.h"]),
        copts = TENSORFLOW_COPTS + COPTS,
        linkstatic = True,
        alwayslink = True,  # operators and kernels register themselves
        visibility = ["//cc/%s:__pkg__" % other for other in above] + ["//:__pkg__", "//tests/cc:__pkg__"],
        deps = ["//cc/" + other for other in ROOMS[name]] + ["@tensorflow//:framework"],
    )
    native.cc_library(  # for the Python module, which finds the rooms themselves in the operator library
        name = "headers",
        hdrs = native.glob(["*.h"]),
        visibility = ["//cc/%s:__pkg__" % other for other in above],
        deps = ["//cc/%s:headers" % other for other in ROOMS[name]] + ["@tensorflow//:headers"],
    )
