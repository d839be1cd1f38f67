"""What the tests of devices and processes share: places to spread operators over, and who went where."""
# SPDX-License-Identifier: Apache-2.0

import collections
import contextlib
import pathlib
import re
import subprocess
import sys
import zlib

import tensorflow as tf
from limits import HANG_SECONDS
from tensorflow.python.framework import load_library

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

CPUS = ("/device:CPU:0", "/device:CPU:1")
GPU = "/device:GPU:0"
_NATIVE = pathlib.Path(__file__).resolve().parents[2] / "tools" / "native.py"

# Ends a run that would otherwise wait for ever; what a lost message of a server would make of it comes after.
TIMEOUT = tf1.RunOptions(timeout_in_ms=1000 * HANG_SECONDS)
_CLIENT_TIMEOUT_MS = 1000 * (HANG_SECONDS + 60)

_STATE = (tf.resource,)


class Place(collections.namedtuple("Place", "target devices config")):
    """Where a session runs: its target, the devices to choose from, and the configuration without the switch."""

    def session(self, static=True, isolated=True, **options):
        """A session of the default graph; `isolated` ones share no variables and queues with others."""
        config = tf1.ConfigProto()
        config.CopyFrom(self.config)
        config.isolate_session_state = isolated and bool(self.target)
        if static:
            config = tfr.session_config(config, **options)
        return tf1.Session(self.target, config=config)

    def spread(self):
        """The scope in which operators are spread over the devices."""
        return tf1.device(Spread(self.devices))


def one_device():
    return Place("", CPUS[:1], tf1.ConfigProto(device_count={"GPU": 0}))


def two_devices():
    """Two devices of this process: CPUs, or a CPU and the fake GPU if that is loaded."""
    if tf1.config.list_physical_devices("GPU"):
        # It has few kernels.
        return Place("", (CPUS[0], GPU), tf1.ConfigProto(allow_soft_placement=True))
    return Place("", CPUS, tf1.ConfigProto(device_count={"CPU": 2}))


def load_fake_gpu():
    """Builds the plugin in tests/cc/fake_gpu and gives this process its device."""
    library = subprocess.run(
        [sys.executable, str(_NATIVE), "fake-gpu"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    load_library.load_pluggable_device_library(library)


def of_cluster(cluster):
    return Place(cluster.target, tuple(cluster.devices), tf1.ConfigProto(operation_timeout_in_ms=_CLIENT_TIMEOUT_MS))


class Spread:
    """A device function that deals operators out by a hash of their names.

    It leaves to TensorFlow what must be where something else is: whoever takes or passes on a variable, a queue or the
    like. Where such a thing is *made* is dealt out too.
    """

    def __init__(self, devices):
        self._devices = devices

    def __call__(self, op):
        if op.device or any(_is_state(tensor) for tensor in op.inputs):
            return op.device
        return self._devices[zlib.crc32(op.name.encode()) % len(self._devices)]


def _is_state(tensor):
    return tensor.dtype in _STATE or tensor.dtype._is_ref_dtype


def on(device):
    """The scope of a device, or no scope."""
    return tf.device(device) if device else contextlib.nullcontext()


def run_traced(session, fetches, feeds=None):
    """Returns the values and the step's RunMetadata, with partition graphs and a full trace."""
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(
        trace_level=tf1.RunOptions.FULL_TRACE, output_partition_graphs=True, timeout_in_ms=TIMEOUT.timeout_in_ms
    )
    return session.run(fetches, feeds, options=options, run_metadata=metadata), metadata


def partition_nodes(metadata):
    """The nodes of all partitions, those that `Recursion>Run` holds in its own graph included."""
    for graph in metadata.partition_graphs:
        for node in graph.node:
            yield node
            if node.op == "Recursion>Run":
                yield from tf1.GraphDef.FromString(node.attr["graph"].s).node


def traced_devices(metadata, pattern):
    """The devices on which a node ran whose name begins as the pattern says."""
    return {
        device.device
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
        if re.match(pattern, node.node_name)
    }


def is_on(found, requested):
    """Whether a full device name is one of those that a request allows."""
    found, requested = tf.DeviceSpec.from_string(found), tf.DeviceSpec.from_string(requested)
    parts = ("job", "task", "device_type", "device_index")
    return all(getattr(requested, part) in (None, getattr(found, part)) for part in parts)
