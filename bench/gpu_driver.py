# SPDX-License-Identifier: Apache-2.0
"""CUDA's driver and libquern for gpu.py, both by ctypes: nothing else is needed to run and time Quern's kernels."""
import ctypes
import os
import statistics
import struct
import time
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, \
    c_uint64, c_void_p

# ---- The driver ----


class CudaError(Exception):
    pass


def open_driver():
    """As the library does: QUERN_CUDA_PATH, the loader, /usr/local/cuda/lib64."""
    given = os.environ.get("QUERN_CUDA_PATH", "")
    folders = [given, given + "/lib64"] if given.startswith("/") else []
    for path in [f + "/libcuda.so.1" for f in folders]:
        if os.path.isfile(path):
            return ctypes.CDLL(path)
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        if not os.path.isfile("/usr/local/cuda/lib64/libcuda.so.1"):
            raise
        return ctypes.CDLL("/usr/local/cuda/lib64/libcuda.so.1")


class Driver:
    """A device, its primary context current, and a stream; torch may have made the context already."""
    CAPTURE_RELAXED, MULTIPROCESSORS, L2_BYTES, MAJOR, MINOR = 2, 16, 38, 75, 76

    def __init__(self, ordinal=0):
        self.library, self.ordinal = open_driver(), ordinal
        self("cuInit", 0)
        self.handle, context, stream = c_int(), c_void_p(), c_void_p()
        self("cuDeviceGet", byref(self.handle), ordinal)
        self("cuDevicePrimaryCtxRetain", byref(context), self.handle)
        self("cuCtxSetCurrent", context)
        self("cuStreamCreate", byref(stream), 1)
        self.context, self.stream = context, stream
        self.events = []

    def __call__(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            text = c_char_p()
            self.library.cuGetErrorName(code, byref(text))
            raise CudaError(f"{name}: {text.value.decode() if text.value else code}")

    def attribute(self, which):
        value = c_int()
        self("cuDeviceGetAttribute", byref(value), which, self.handle)
        return value.value

    def describe(self):
        name, version = ctypes.create_string_buffer(100), c_int()
        self("cuDeviceGetName", name, 100, self.handle)
        self("cuDriverGetVersion", byref(version))
        return (f"{name.value.decode()}, sm_{self.attribute(self.MAJOR)}{self.attribute(self.MINOR)}, "
                f"{self.attribute(self.MULTIPROCESSORS)} multiprocessors, {self.attribute(self.L2_BYTES) >> 20} MiB of L2, "
                f"driver {version.value // 1000}.{version.value % 1000 // 10}")

    def allocate(self, n_bytes):
        address = c_uint64()
        self("cuMemAlloc_v2", byref(address), c_size_t(n_bytes))
        return address.value

    def free(self, address):
        self("cuMemFree_v2", c_uint64(address))

    def synchronize(self):
        self("cuStreamSynchronize", self.stream)

    def copy(self, to, source, n_bytes):
        self("cuMemcpyAsync", c_uint64(to), c_uint64(source), c_size_t(n_bytes), self.stream)

    def fill(self, address, n_bytes, pattern):
        """Fills with a repeated pattern: copies it once, then doubles the filled part by copies on the device."""
        done = min(len(pattern), n_bytes)
        self("cuMemcpyHtoDAsync_v2", c_uint64(address), pattern, c_size_t(done), self.stream)
        while done < n_bytes:
            step = min(done, n_bytes - done)
            self.copy(address + done, address, step)
            done += step
        self.synchronize()

    def read(self, address, n_bytes):
        data = ctypes.create_string_buffer(n_bytes)
        self("cuMemcpyDtoHAsync_v2", data, c_uint64(address), c_size_t(n_bytes), self.stream)
        self.synchronize()
        return data.raw

    # -- time

    def event(self, k):
        while len(self.events) <= k:
            event = c_void_p()
            self("cuEventCreate", byref(event), 0)
            self.events.append(event)
        return self.events[k]

    def elapsed_us(self, a, b):
        ms = c_float()
        self("cuEventElapsedTime", byref(ms), self.event(a), self.event(b))
        return 1e3 * ms.value

    def times_us(self, run, repeats):
        """The time of each of several runs in a row, by events between them: the device does not wait for the host."""
        events, record = [self.event(k) for k in range(repeats + 1)], self.library.cuEventRecord
        record(events[0], self.stream)
        for k in range(repeats):
            run()
            record(events[k + 1], self.stream)
        self("cuEventSynchronize", events[repeats])
        return [self.elapsed_us(k, k + 1) for k in range(repeats)]

    def graph_us(self, run, launches, repeats):
        """The device's time for one of many launches that are one graph."""
        graph, executable = c_void_p(), c_void_p()
        self("cuStreamBeginCapture_v2", self.stream, self.CAPTURE_RELAXED)
        try:
            for _ in range(launches):
                run()
        finally:
            self("cuStreamEndCapture", self.stream, byref(graph))
        self("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        self("cuGraphLaunch", executable, self.stream)
        self.synchronize()
        times = self.times_us(lambda: self("cuGraphLaunch", executable, self.stream), repeats)
        self("cuGraphExecDestroy", executable)
        self("cuGraphDestroy", graph)
        return statistics.median(times) / launches

    def host_us(self, run, calls, repeats):
        """The host's time for one of many calls, without synchronisation."""
        times = []
        for _ in range(repeats):
            self.synchronize()
            start = time.perf_counter_ns()
            for _ in range(calls):
                run()
            times.append((time.perf_counter_ns() - start) / calls / 1e3)
        self.synchronize()
        return statistics.median(times)


# ---- Quern ----


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class QuernScalar(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("v", c_double * 2)]


class QuernCall(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("params", POINTER(QuernScalar)), ("n_params", c_int32), ("stream", c_void_p),
                ("workspace", c_void_p), ("workspace_bytes", c_size_t), ("out_flags", POINTER(c_uint64))]


class QuernOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("jit", c_int32), ("threads", c_int32), ("parallel_for", c_void_p), ("host", c_void_p),
                ("log", c_void_p), ("cache_dir", c_char_p), ("kernel_memory_limit", c_size_t), ("cc", c_char_p)]


CUDA, JIT_SYNC = 2, 2
DTYPES = {"f16": (2, 16), "f32": (2, 32), "f64": (2, 64), "bf16": (4, 16), "i64": (0, 64)}  # DLPack's code, bits


class QuernError(Exception):
    pass


class Quern:
    def __init__(self, path, driver, cache_dir):
        self.library, self.driver, self.context = ctypes.CDLL(path), driver, c_void_p()
        self.library.quern_last_error.restype = c_char_p
        self.library.quern_version.restype = c_uint32
        # The two that are timed: arguments are converted as quickly as ctypes can.
        self.library.quern_plan_run.argtypes = [c_void_p] * 4
        self.library.quern_op_call.argtypes = [c_void_p, c_int32, c_void_p, c_int32, c_void_p, c_void_p]
        options = QuernOptions(size=ctypes.sizeof(QuernOptions), jit=JIT_SYNC, cache_dir=cache_dir.encode())
        self.check(self.library.quern_ctx_create(byref(options), byref(self.context)))

    def check(self, status):
        if status:
            raise QuernError(self.library.quern_last_error().decode())

    def version(self):
        v = self.library.quern_version()
        return f"Quern {v >> 16}.{v >> 8 & 255}.{v & 255}"

    def compile(self, expression):
        op = c_void_p()
        self.check(self.library.quern_op_compile(self.context, expression.encode(), byref(op)))
        return op

    def find(self, name):
        op = c_void_p()
        self.check(self.library.quern_op_find(self.context, name.encode(), byref(op)))
        return op

    def bind(self, op, inputs, output, axes=None, more=()):
        return Bound(self, op, inputs, output, axes, more)


UNSUPPORTED = -10  # QUERN_E_UNSUPPORTED


class Bound:
    """An op and its arrays (of gpu_cases): a plan, and the arguments of a call. axes: bits, of an op that reduces; more: further
    outputs."""

    def __init__(self, quern, op, inputs, output, axes=None, more=()):
        self.quern, self.op, library = quern, op, quern.library
        arrays, self.n_out = [*inputs, output, *more], 1 + len(more)
        self.tensors = [self.tensor(a) for a in arrays]
        pointers = [ctypes.pointer(t) for t in self.tensors]
        self.n_in = len(inputs)
        self.ins = (POINTER(DLTensor) * len(inputs))(*pointers[:len(inputs)])
        self.outs = (POINTER(DLTensor) * self.n_out)(*pointers[len(inputs):])
        self.call = QuernCall(size=ctypes.sizeof(QuernCall), stream=quern.driver.stream)
        if axes is not None:
            self.axes = QuernScalar(kind=0)  # QUERN_I64
            ctypes.memmove(byref(self.axes, QuernScalar.v.offset), byref(c_int64(axes)), 8)
            self.call.params, self.call.n_params = ctypes.pointer(self.axes), 1
        wanted = c_size_t()
        quern.check(library.quern_op_workspace(op, self.n_in, self.ins, self.n_out, self.outs, byref(self.call), byref(wanted)))
        self.workspace = quern.driver.allocate(wanted.value) if wanted.value else None
        if self.workspace:
            self.call.workspace, self.call.workspace_bytes = self.workspace, wanted.value
        self.plan = c_void_p()
        status = library.quern_op_prepare(op, self.n_in, self.ins, self.n_out, self.outs, byref(self.call), byref(self.plan))
        if status != UNSUPPORTED:  # a derivative of a scan is not planned
            quern.check(status)
        self.in_data = (c_void_p * len(inputs))(*[a.address for a in inputs])
        self.out_data = (c_void_p * self.n_out)(output.address, *[a.address for a in more])

    def tensor(self, array):
        code, bits = DTYPES[array.dtype]
        ndim = len(array.shape)
        return DLTensor(data=array.address, device=DLDevice(CUDA, self.quern.driver.ordinal), ndim=ndim,
                        dtype=DLDataType(code, bits, 1), shape=(c_int64 * ndim)(*array.shape),
                        strides=(c_int64 * ndim)(*array.strides))

    def runner(self):
        """Runs the plan, if there is one; what it returns is the status."""
        if not self.plan:
            return self.caller()
        run, plan, call = self.quern.library.quern_plan_run, self.plan.value, ctypes.addressof(self.call)
        ins, outs = ctypes.addressof(self.in_data), ctypes.addressof(self.out_data)
        return lambda: run(plan, ins, outs, call)

    def caller(self):
        """Calls the op, with all checks and choices of a call."""
        run, op, call = self.quern.library.quern_op_call, self.op.value, ctypes.addressof(self.call)
        ins, outs = ctypes.addressof(self.ins), ctypes.addressof(self.outs)
        n_in, n_out = self.n_in, self.n_out
        return lambda: run(op, n_in, ins, n_out, outs, call)

    def explain(self):
        text = ctypes.create_string_buffer(1 << 16)
        self.quern.check(self.quern.library.quern_op_explain(self.op, self.n_in, self.ins, self.n_out, self.outs, byref(self.call), text,
                                                             c_size_t(len(text))))
        return dict(line.split(": ", 1) for line in text.value.decode().splitlines() if ": " in line)

    def release(self):
        self.quern.library.quern_plan_release(self.plan)
        self.quern.library.quern_op_release(self.op)
        if self.workspace:
            self.quern.driver.free(self.workspace)


# ---- Items as bytes and back ----


LETTERS = {"f16": "e", "f32": "f", "f64": "d", "i64": "q"}  # of struct


def pack(dtype, values):
    if dtype == "bf16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{LETTERS[dtype]}", *[int(v) for v in values] if dtype == "i64" else values)


def unpack(dtype, data):
    if dtype == "bf16":
        return [struct.unpack("<f", b"\0\0" + data[k:k + 2])[0] for k in range(0, len(data), 2)]
    n = len(data) * 8 // DTYPES[dtype][1]
    return list(struct.unpack(f"<{n}{LETTERS[dtype]}", data))
