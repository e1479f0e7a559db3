# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays and PyTorch's tensors as quern.Array, and back: one memory, whichever way; what cannot go is refused."""

import gc
import sys
import warnings

import quern
from tap import done_testing, is_, ok, raises, skip_all

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None
if not numpy and not torch:
    skip_all("neither NumPy nor PyTorch is there")

NAMES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64",
         "complex128", "bool"]


def of_numpy():
    def address(a):
        return a.__array_interface__["data"][0]

    for name in NAMES:
        a = numpy.arange(12).reshape(3, 4).astype(name)
        x = quern.from_dlpack(a)
        ok((x.dtype, x.shape, x.data_ptr(), x.tolist()) == (a.dtype, a.shape, address(a), a.tolist()), "NumPy, in: " + name)
        for way in (numpy.asarray, numpy.from_dlpack, numpy.array):
            if way is numpy.from_dlpack and name == "bool" and numpy.lib.NumpyVersion(numpy.__version__) < "1.25.0":
                continue  # takes no bool
            b = way(x)
            is_shared = address(b) == address(a)
            ok(b.dtype == a.dtype and (b == a).all() and is_shared == (way is not numpy.array),
               "NumPy, out by {}: {}".format(way.__name__, name))
    a = numpy.arange(24.0).reshape(2, 3, 4)
    views = {"transposed": a.T, "reversed": a[::-1, :, ::-2], "broadcast": numpy.broadcast_to(a[0, 0], (5, 4)), "empty": a[:0],
             "one item": a[1:, 1, 2], "0-d": a[1, 1, 2, ...], "a column": a[:, 1:2, 3], "misaligned": numpy.frombuffer(
                 bytearray(33), "u1")[1:].view("f8")}
    for name, view in views.items():
        x = quern.from_dlpack(view)
        b = numpy.asarray(x)
        ok(x.tolist() == view.tolist() and b.tolist() == view.tolist() and b.shape == view.shape, "NumPy: " + name)
        ok(view.size == 0 or address(b) == address(view) == x.data_ptr(), "the same memory")
    x = quern.from_dlpack(a)
    numpy.asarray(x)[0, 0, 0] = 77
    is_((a[0, 0, 0], x.tolist()[0][0][0]), (77.0, 77.0), "what is written on one side is seen on the other")
    if "nonzero" in quern.ops():
        found = quern.nonzero(a > 20)
        is_([type(places) for places in found], [numpy.ndarray] * 3, "nonzero: NumPy in, NumPy out")
        ok(all((mine == its).all() for mine, its in zip(found, numpy.nonzero(a > 20))), "and what NumPy's has")
    a = numpy.arange(4)
    a.flags.writeable = False
    x = quern.from_dlpack(a)
    ok(x.readonly and x.data_ptr() == address(a), "read-only memory comes as such, from every NumPy")
    ok(not numpy.asarray(x).flags.writeable and numpy.asarray(x.T).base is not None, "and goes as such")
    ok(not quern.from_dlpack(numpy.broadcast_to(numpy.zeros(1), 3), copy=True).readonly, "a copy is not")
    for bad in (numpy.zeros(3, ">f4"), numpy.zeros(3, "M8[s]"), numpy.zeros(3, "U2"), numpy.zeros(3, "V3"), numpy.array([None]),
                numpy.zeros(3, "f4,i4"),
                numpy.zeros(3, numpy.longdouble), numpy.zeros(3, [("a", "f4"), ("b", "i1")])["a"]):
        raises((BufferError, TypeError), lambda: quern.from_dlpack(bad), "NumPy: {} {}".format(bad.dtype, bad.strides))
    is_(quern.from_dlpack(numpy.float32(2.5)).item(), 2.5, "a NumPy scalar")
    x = quern.from_dlpack(numpy.ones(3))
    gc.collect()
    is_(x.tolist(), [1.0, 1.0, 1.0], "the array outlives its producer")
    counts = []
    a = numpy.ones(3)
    for _ in range(2):
        for _ in range(1000):
            numpy.from_dlpack(quern.from_dlpack(a)), numpy.asarray(quern.from_dlpack(a)), quern.from_dlpack(a, copy=True)
        # (From 3.12 on types like this one are immortal: their counts say nothing.)
        of_type = sys.getrefcount(numpy.ndarray) if sys.version_info < (3, 12) else None
        counts.append((sys.getrefcount(a), sys.getrefcount(a.dtype), of_type))
    is_(counts[0], counts[1], "no references are left")
    raises((TypeError, BufferError), lambda: numpy.asarray(quern.empty(3, dtype="bf16")), "NumPy has no bfloat16", "bfloat16")


def of_torch():
    names = [n for n in NAMES + ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
             if hasattr(torch, n)]
    for name in names:
        t = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
        x = quern.from_dlpack(t)
        ok((x.dtype, x.shape, x.strides, x.data_ptr()) == (t.dtype, tuple(t.shape), t.stride(), t.data_ptr()),
           "PyTorch, in: " + name)
        wanted = t.tolist() if not name.startswith("float8") else t.to(torch.float32).tolist()
        is_(x.tolist(), wanted, "its values")
        u = torch.from_dlpack(x)
        ok(u.dtype == t.dtype and u.data_ptr() == t.data_ptr(), "PyTorch, out: " + name)
    t = torch.arange(24.0).reshape(2, 3, 4)
    for name, view in {"transposed": t.permute(2, 0, 1), "expanded": t[:, :1].expand(2, 5, 4), "empty": t[:0], "0-d": t[1, 1, 1],
                       "steps": t[:, ::2, 1::3]}.items():
        x = quern.from_dlpack(view)
        u = torch.from_dlpack(x)
        is_same = not view.numel() or u.data_ptr() == view.data_ptr()
        ok(x.tolist() == view.tolist() == u.tolist() and is_same, "PyTorch: " + name)
    x = quern.from_dlpack(t)
    torch.from_dlpack(x)[0, 0, 0] = 77
    is_((t[0, 0, 0].item(), x.tolist()[0][0][0]), (77.0, 77.0), "what is written on one side is seen on the other")
    raises(BufferError, lambda: quern.from_dlpack(torch.ones(3, requires_grad=True)), "PyTorch refuses what wants a gradient")
    y = quern.from_dlpack(t, copy=True)
    ok(y.data_ptr() != t.data_ptr() and y.tolist() == t.tolist(), "copy=True")
    is_(quern.from_dlpack(t, copy=False, device="cpu").data_ptr(), t.data_ptr(), "copy=False")
    is_(quern.from_dlpack(t, device=torch.device("cpu")).data_ptr(), t.data_ptr(), "a torch.device")
    is_(torch.utils.dlpack.from_dlpack(x.__dlpack__()).data_ptr(), t.data_ptr(), "a legacy capsule, to PyTorch")
    is_(quern.from_dlpack(torch.utils.dlpack.to_dlpack(t)).data_ptr(), t.data_ptr(), "and from it")
    del t
    gc.collect()
    is_(x.tolist()[0][0][:2], [77.0, 1.0], "the array outlives its producer")
    u = torch.from_dlpack(quern.from_dlpack(bytearray(b"abc")))
    gc.collect()
    is_(u.tolist(), [97, 98, 99], "and its consumer's tensor the array")


warnings.simplefilter("ignore")
if numpy:
    of_numpy()
if torch:
    of_torch()
if numpy and torch:
    a = numpy.arange(6.0, dtype="f4")
    t = torch.from_dlpack(quern.from_dlpack(a))
    t += 1
    is_((a.tolist(), t.data_ptr()), ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], a.__array_interface__["data"][0]), "NumPy to PyTorch")

done_testing()
