# SPDX-License-Identifier: Apache-2.0
"""The cases of gpu.py in other libraries, each in its fastest form: into preallocated memory where that is possible, compiled
before it is timed. A peer is made with the common stream (and may raise if something is missing); make(kind, inputs, out)
returns a function that computes into out, or returns its result. All work on PyTorch's tensors. share: the part of the
benchmark's seconds for compiling and tuning."""
import math
import re

import gpu_cases


class Unsupported(Exception):
    pass


class Eager:
    name, share = "PyTorch", 0.1

    def __init__(self, torch, stream):
        self.torch, self.version = torch, "PyTorch " + torch.__version__

    def make(self, kind, inputs, out):
        torch, gelu = self.torch, self.torch._C._nn.gelu  # the one that takes out=
        if kind in gpu_cases.REDUCTIONS:
            return gpu_cases.torch_reduction(torch, kind, *inputs, out=out)
        if kind in ("add", "scale"):
            f = torch.add if kind == "add" else torch.mul
            return lambda: f(*inputs, out=out)
        if kind == "bias_gelu":
            def run():
                torch.add(*inputs, out=out)
                gelu(out, out=out)
            return run
        a, b, c, d = inputs

        def run_gelu():
            torch.addcmul(c, a, b, out=out)
            gelu(out, out=out)
            torch.mul(out, d, out=out)
        return run_gelu


class Compiled:
    name, share = "torch.compile", 0.25

    def __init__(self, torch, stream):
        self.torch, self.version = torch, "torch.compile with max_autotune_pointwise"

    def make(self, kind, inputs, out):
        torch, gelu = self.torch, self.torch.nn.functional.gelu

        def add(a, b, y):
            y.copy_(a + b)

        def scale(a, b, y):
            y.copy_(a * b)

        def bias_gelu(a, b, y):
            y.copy_(gelu(a + b))

        def gelu_4(a, b, c, d, y):
            y.copy_(gelu(a * b + c) * d)

        torch._dynamo.reset()
        f = {"add": add, "scale": scale, "bias_gelu": bias_gelu, "gelu": gelu_4}[kind]
        f = torch.compile(f, dynamic=False, options={"max_autotune_pointwise": True})
        return lambda: f(*inputs, out)


C_BODIES = {"add": "a + b", "scale": "a * b", "bias_gelu": "gelu_of(a + b)", "gelu": "gelu_of(a * b + c) * d"}


class Jiterator:
    name, share = "jiterator", 0.1

    def __init__(self, torch, stream):
        self.torch, self.version = torch, "torch.cuda.jiterator"

    def make(self, kind, inputs, out):
        names = ", ".join("T " + name for name in "abcd"[:len(inputs)])
        body = C_BODIES[kind]
        if "gelu_of" in body:
            start = body.index("gelu_of(")
            end = body.index(")", start)
            inner, rest = body[start + 8:end], body[end + 1:]
            body = f"T u = {inner}; return T(0.5) * u * (T(1) + erf(u * T({math.sqrt(0.5)!r}))){rest};"
        else:
            body = f"return {body};"
        f = self.torch.cuda.jiterator._create_jit_fn(f"template <typename T> T quern_{kind}({names}) {{ {body} }}")
        return lambda: f(*inputs)


def on_cupy(cupy, tensors):
    for tensor in tensors:
        if str(tensor.dtype) == "torch.bfloat16":
            raise Unsupported("it has no bf16")
    return [cupy.asarray(tensor) for tensor in tensors]


class CupyKernel:
    name, share = "CuPy kernel", 0.1

    def __init__(self, torch, stream):
        import cupy
        self.cupy, self.version = cupy, "CuPy " + cupy.__version__
        self.stream = cupy.cuda.ExternalStream(stream)
        self.stream.use()

    def make(self, kind, inputs, out):
        *arrays, y = on_cupy(self.cupy, [*inputs, out])
        names = "abcd"[:len(arrays)]
        body = re.sub(r"\b([abcd])\b", r"(float)\1", C_BODIES[kind])
        preamble = f"__device__ float gelu_of(float x) {{ return 0.5f * x * (1 + erff(x * {math.sqrt(0.5):.9g}f)); }}"
        kernel = self.cupy.ElementwiseKernel(", ".join(f"{kind_of} {name}" for kind_of, name in zip("PQRS", names)), "Y y",
                                             f"y = (Y)({body})", f"quern_{kind}", preamble=preamble)
        return lambda: kernel(*arrays, y)


class CupyFuse:
    name, share = "CuPy fuse", 0.1

    def __init__(self, torch, stream):
        import cupy
        from cupyx.scipy.special import erf
        self.cupy, self.erf, self.version = cupy, erf, "CuPy's fuse"
        self.stream = cupy.cuda.ExternalStream(stream)
        self.stream.use()

    def make(self, kind, inputs, out):
        cupy, erf, root = self.cupy, self.erf, math.sqrt(0.5)
        arrays = on_cupy(cupy, inputs)

        def gelu_of(x):
            return 0.5 * x * (1 + erf(x * root))

        f = {"add": lambda a, b: a + b, "scale": lambda a, b: a * b, "bias_gelu": lambda a, b: gelu_of(a + b),
             "gelu": lambda a, b, c, d: gelu_of(a * b + c) * d}[kind]
        fused = cupy.fuse(kernel_name=f"quern_{kind}")(f)
        return lambda: fused(*arrays)


class Triton:
    name, share = "Triton", 0.25

    def __init__(self, torch, stream):
        import triton

        import gpu_triton
        self.module, self.version = gpu_triton, "Triton " + triton.__version__

    def make(self, kind, inputs, out):
        return self.module.make(kind, inputs, out)


PEERS = [Eager, Compiled, Jiterator, CupyKernel, CupyFuse, Triton]
