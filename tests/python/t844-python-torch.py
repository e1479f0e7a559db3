# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors in calls: by its C exchange API where it has one, else by capsules; one memory throughout, and what its own
__dlpack__ refuses is refused here."""

import quern
from tap import diag, done_testing, is_, ok, raises, skip, skip_all

try:
    import torch
except ImportError:
    skip_all("there is no PyTorch here")

diag("PyTorch " + torch.__version__)
x = torch.arange(8.0)
y = torch.ones(8)
z = torch.zeros(8)
where = z.data_ptr()
for n in range(8):
    z.zero_()
    ok(quern.add(x, y, out=z) is z and z.tolist() == (x + y).tolist() and z.data_ptr() == where, "into a tensor, {}".format(n))
ok(type(quern.add(x, y)) is torch.Tensor, "PyTorch in, PyTorch out")
ok(type(quern.add(1, y)) is torch.Tensor, "behind a number, too")
ok(torch.equal(quern.gelu(x.reshape(2, 4).T), quern.gelu(x).reshape(2, 4).T), "transposed")
ok(torch.equal(quern.add(x[::2], y[1::2]), x[::2] + 1), "strided")
ok(torch.equal(quern.add(x[3], x), x[3] + x), "0-d")
ok(torch.equal(quern.add(x.expand(3, 8), 1), x.expand(3, 8) + 1), "broadcast")
is_(quern.add(torch.empty(0, 3), 1).shape, (0, 3), "empty")
for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
              torch.uint8):
    v = torch.ones(5, dtype=dtype)
    got = quern.add(v, v)
    ok(got.dtype == dtype and torch.equal(got, v + v), str(dtype))
is_(quern.add(x, y, dtype=torch.float64).dtype, torch.float64, "dtype=torch.float64")
is_(quern.op("astype")(x, dtype=torch.bfloat16).dtype, torch.bfloat16, "astype")
ok(torch.equal(quern.op("nonzero")(x), x.nonzero()), "nonzero, as PyTorch's")
ok(torch.equal(quern.compress(x > 3, x), torch.masked_select(x, x > 3)), "compress, as masked_select")
ok(torch.equal(quern.where(x > 3, x, 0), torch.where(x > 3, x, torch.zeros(()))), "where")
f = quern.compile("a = x*w; b = a > 3")
a, b = f(x, 2)
ok(type(a) is torch.Tensor and torch.equal(a, x * 2) and torch.equal(b, a > 3), "an expression's outputs")
big = torch.ones(300, 400)
ok(torch.equal(quern.add(big, big.T.contiguous().T), big + big), "many items")

try:
    import numpy as np
    n = np.ones(8, "f4")
    ok(type(quern.add(n, x)) is np.ndarray and type(quern.add(x, n)) is torch.Tensor, "with NumPy: as the first operand")
    ok(quern.add(x, n, out=n) is n and n.tolist() == (x + 1).tolist(), "into NumPy's memory")
except ImportError:
    skip(2, "there is no NumPy here")

# What is more than its memory.
leaf = torch.ones(8, requires_grad=True)
for name, tensor in (("that requires a gradient", leaf), ("of a graph", leaf * 2), ("of a parameter", torch.nn.Parameter(x))):
    raises(BufferError, lambda: quern.add(tensor, 1.0), "a tensor " + name, "the functions of quern.torch have derivatives")
    raises(BufferError, lambda: quern.add(x, 1.0, out=tensor), "out, a tensor " + name, "require")
is_(quern.add(leaf.detach(), 1.0).tolist(), [2.0] * 8, "detached")
with torch.no_grad():
    raises(BufferError, lambda: quern.add(leaf, 1.0), "as PyTorch has it, without gradients as well", "require")
c = torch.complex(x, y)
raises(BufferError, lambda: quern.add(c.conj(), 1.0), "a conjugated view", "conjugate")
raises(BufferError, lambda: quern.add(c.conj().imag, 1.0), "its imaginary part, a negated view", "resolve_neg")
raises(BufferError, lambda: quern.add(c.conj().imag[2], x), "an item of that", "resolve_neg")
raises(BufferError, lambda: quern.add(x, y, out=c.clone().conj().imag), "a negated view as out", "resolve_neg")
is_(quern.add(c.conj().imag.resolve_neg(), 0.0).tolist(), [-1.0] * 8, "resolved")
is_(quern.add(c.imag, 1.0).tolist(), [2.0] * 8, "the imaginary part of what is not conjugated")
for name, view in (("of stride 1", c.conj().imag.as_strided((3,), (1,))),
                   ("of integers", torch._neg_view(torch.ones(3, dtype=torch.int32))),
                   ("of a complex tensor", torch._neg_view(c))):
    raises(BufferError, lambda: quern.add(view, 1), "a negated view " + name, "resolve_neg")
    raises(BufferError, lambda: quern.add(view.resolve_neg(), 1, out=view), "as out", "resolve_neg")
    raises(BufferError, lambda: quern.from_dlpack(view), "and by from_dlpack", "resolve_neg")


class Tracked(torch.Tensor):
    asked = 0

    def is_neg(self):
        Tracked.asked += 1
        return super().is_neg()


tracked = torch.ones(3).as_subclass(Tracked)
is_((quern.add(tracked, 1).tolist(), Tracked.asked > 0), ([2.0] * 3, True), "a subclass's own is_neg is asked")
raises(BufferError, lambda: quern.add(x.to_sparse(), 1.0), "a sparse tensor", "give x.to_dense()")
raises(BufferError, lambda: quern.asarray(x.to_sparse()), "  as an Array", "give x.to_dense()")
raises(BufferError, lambda: quern.add(torch.empty(3, device="meta"), 1.0), "a tensor without memory", "it has no memory")
raises(BufferError, lambda: torch.vmap(lambda row: quern.add(row, 1.0))(torch.ones(2, 3)), "within vmap", "the functions of quern.torch")
raises(TypeError, lambda: quern.add(c, 1.0), "a dtype that the op has not")


class Sub(torch.Tensor):
    pass


is_(quern.add(x.as_subclass(Sub), 1.0).tolist(), (x + 1).tolist(), "a subclass")
raises(ValueError, lambda: quern.add(x, y, out=torch.zeros(1).expand(8)), "an output that overlaps itself", "add: output 1 (out)")
ok(torch.equal(x, torch.arange(8.0)) and z.data_ptr() == where, "operands are as they were")
done_testing()
