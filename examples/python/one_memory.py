# SPDX-License-Identifier: Apache-2.0
"""A C library fills a NumPy array, Quern transforms it in place, PyTorch reads it: one memory from one end to the other."""
import ctypes
import os
import subprocess
import tempfile

import numpy

import quern

here = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "sensor.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", file, os.path.join(here, "sensor.c")], check=True)
    sensor = ctypes.CDLL(file)
sensor.sensor_read.argtypes = ctypes.c_void_p, ctypes.c_size_t
sensor.sensor_last.restype = ctypes.c_void_p

frame = numpy.empty((3, 4), numpy.float32)
sensor.sensor_read(frame.ctypes.data, frame.size)
print("NumPy's array  ", hex(frame.ctypes.data))
print("the C library's", hex(sensor.sensor_last()))

dark = numpy.float32([100, 101, 102, 103])  # a number for each column
calibrate = quern.compile("param gain; y = gain * (raw - dark)")
calibrate(frame, dark, gain=0.5, out=frame)
array = quern.from_dlpack(frame)
print("Quern's array  ", hex(array.data_ptr()))
assert array.data_ptr() == frame.ctypes.data == sensor.sensor_last()

try:
    import torch
except ImportError:
    print("PyTorch's tensor: left out, PyTorch is not installed")
else:
    tensor = torch.from_dlpack(frame)
    print("PyTorch's      ", hex(tensor.data_ptr()))
    assert tensor.data_ptr() == frame.ctypes.data
    print("its mean       ", tensor.mean().item())

print(frame)
sensor.sensor_read(frame.ctypes.data, frame.size)
print("read again     ", array.tolist()[0])
assert array.tolist()[0] == [100, 137, 174, 110]
