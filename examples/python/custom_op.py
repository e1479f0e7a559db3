# SPDX-License-Identifier: Apache-2.0
"""An op of one's own, from a spec, on a PyTorch tensor; on a NumPy array where PyTorch is not installed."""
import os

import numpy

import quern

swish, = quern.load_spec(os.path.join(os.path.dirname(os.path.abspath(__file__)), "acme.lua"))
print(swish.__doc__)
values = [-2.0, -1.0, 0.0, 1.0, 2.0]
wanted = [x / (1 + numpy.exp(-1.5 * x)) for x in values]
try:
    import torch
except ImportError:
    print("PyTorch is not installed: on a NumPy array")
    x = numpy.array(values, numpy.float32)
else:
    x = torch.tensor(values)

y = swish(x, beta=1.5)
print(type(y).__module__, y)
assert type(y) is type(x) and numpy.allclose(numpy.asarray(y), wanted, rtol=1e-6)

# It is an op as any other: in place, and within expressions.
assert swish(x, beta=1.5, out=x) is x
gate = quern.compile("y = acme.swish(a) * b")
print(gate(x, 2.0))
