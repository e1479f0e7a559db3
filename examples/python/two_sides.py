# SPDX-License-Identifier: Apache-2.0
"""An array that NumPy and Quern both hold: what one side writes, the other sees."""
import numpy

import quern

x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
view = quern.from_dlpack(x)
copy = quern.from_dlpack(x, copy=True)

x[0, 0] = 7
print("NumPy wrote, Quern sees", view.tolist())
assert view.tolist()[0][0] == 7

quern.multiply(view, 2, out=view)
print("Quern wrote, NumPy sees", x.tolist())
assert x.tolist() == [[14, 2, 4], [6, 8, 10]]
print("the copy stays as it was", copy.tolist())
assert copy.tolist() == [[0, 1, 2], [3, 4, 5]]

columns = quern.from_dlpack(x.T)  # a transposed view is the same memory, too
quern.add(columns, numpy.float32([10, 20]), out=columns)
print("a view of it, transposed", x.tolist())
assert x.tolist() == [[24, 12, 14], [26, 28, 30]]

fixed = numpy.float32([1, 2, 3])
fixed.flags.writeable = False
try:
    quern.negative(fixed, out=fixed)
except ValueError as error:
    print("what is not to be written is not:", error)
else:
    raise AssertionError("a read-only array was written")

del x  # the memory stays as long as anyone holds it
assert view.tolist()[0] == [24, 12, 14]
