# SPDX-License-Identifier: Apache-2.0
"""The cases of gpu.py in Triton, in the usual form, each tuned over a few block sizes."""
import triton
import triton.language as tl

FLAT = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in
        ((512, 4), (1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 8))]
TILES = [triton.Config({"BM": m, "BN": n}, num_warps=warps) for m, n, warps in
         ((4, 256, 4), (8, 256, 4), (4, 1024, 8), (8, 512, 8), (32, 32, 4), (32, 64, 4), (64, 32, 4), (64, 64, 8))]


@triton.jit
def gelu_of(x):
    return 0.5 * x * (1 + tl.math.erf(x * 0.7071067811865476))


@triton.autotune(configs=FLAT, key=["n"])
@triton.jit
def flat_add(a, b, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    u = tl.load(a + at, mask=mask).to(tl.float32) + tl.load(b + at, mask=mask).to(tl.float32)
    tl.store(y + at, u.to(y.dtype.element_ty), mask=mask)


@triton.autotune(configs=FLAT, key=["n"])
@triton.jit
def flat_gelu(a, b, c, d, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    u = tl.load(a + at, mask=mask).to(tl.float32) * tl.load(b + at, mask=mask).to(tl.float32)
    u = gelu_of(u + tl.load(c + at, mask=mask).to(tl.float32)) * tl.load(d + at, mask=mask).to(tl.float32)
    tl.store(y + at, u.to(y.dtype.element_ty), mask=mask)


# KIND: "add", "scale", "bias_gelu"; b is [rows, columns], a row or a column by its strides' being 0.
@triton.autotune(configs=TILES, key=["rows", "columns", "a0", "b0", "b1"])
@triton.jit
def tiles(a, b, y, rows, columns, a0, a1, b0, b1, y0, KIND: tl.constexpr, B_ROW: tl.constexpr, B_COLUMN: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    u = tl.load(a + i[:, None] * a0 + j[None, :] * a1, mask=mask).to(tl.float32)
    if B_ROW:
        v = tl.load(b + j, mask=j < columns).to(tl.float32)[None, :]
    elif B_COLUMN:
        v = tl.load(b + i, mask=i < rows).to(tl.float32)[:, None]
    else:
        v = tl.load(b + i[:, None] * b0 + j[None, :] * b1, mask=mask).to(tl.float32)
    if KIND == "scale":
        u = u * v
    else:
        u = u + v
    if KIND == "bias_gelu":
        u = gelu_of(u)
    tl.store(y + i[:, None] * y0 + j[None, :], u.to(y.dtype.element_ty), mask=mask)


def make(kind, inputs, out):
    if out.dim() == 1:
        n = out.numel()
        kernel = flat_gelu if kind == "gelu" else flat_add
        return lambda: kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](*inputs, out, n)
    a, b = inputs
    (rows, columns), is_row, is_column = out.shape, b.dim() == 1, b.dim() == 2 and b.shape[1] == 1
    b0, b1 = (0, 1) if is_row else b.stride()
    return lambda: tiles[lambda meta: (triton.cdiv(columns, meta["BN"]), triton.cdiv(rows, meta["BM"]))](
        a, b, out, rows, columns, a.stride(0), a.stride(1), b0, b1, out.stride(0), kind, is_row, is_column)
