-- SPDX-License-Identifier: Apache-2.0
--
-- The dtypes: the only such list. ORDER DTYPE: rows appear in generated tables in this order.
--   code, bits   DLPack's; code 6 is bool, 0 int, 1 uint, 2 float, 4 bfloat, 5 complex
--   kind         bool < integer < float < complex, the order in which a value may be cast without being asked
--   c            the type in kernels of an element in memory. A float without one has storage type and casts made of its row
--                (templates/c/headers/stored_float.h.in); a complex dtype has its bits
--   compute      the dtype that arithmetic runs in
--   signed       of integers
--   exponent     bits of a float's exponent; digits: of its significand, the implicit one included. Of a complex dtype: its parts'
--   casts_in_blocks   the cast between it and what it computes in is a function over a row of elements, not over one
--   finite       of a float: it has no infinity, and its one NaN is all ones; what is too large becomes that
--   built        true: every build has kernels for it; "preview": those that ask for it do (generate --preview), to others it is
--                unknown

dtype "bool" { code = 6, bits = 8,  kind = "bool",    c = "bool_s", compute = "bool", built = true }
dtype "i8"   { code = 0, bits = 8,  kind = "integer", c = "i8",     compute = "i8",  signed = true, built = true }
dtype "i16"  { code = 0, bits = 16, kind = "integer", c = "i16",    compute = "i16", signed = true, built = true }
dtype "i32"  { code = 0, bits = 32, kind = "integer", c = "i32",    compute = "i32", signed = true, built = true }
dtype "i64"  { code = 0, bits = 64, kind = "integer", c = "i64",    compute = "i64", signed = true, built = true }
dtype "u8"   { code = 1, bits = 8,  kind = "integer", c = "u8",     compute = "u8",  built = true }
dtype "u16"  { code = 1, bits = 16, kind = "integer", c = "u16",    compute = "u16", built = true }
dtype "u32"  { code = 1, bits = 32, kind = "integer", c = "u32",    compute = "u32", built = true }
dtype "u64"  { code = 1, bits = 64, kind = "integer", c = "u64",    compute = "u64", built = true }
dtype "f16"  { code = 2, bits = 16, kind = "float",   c = "f16_s",  compute = "f32", built = true, exponent = 5, digits = 11,
               casts_in_blocks = true }
dtype "bf16" { code = 4, bits = 16, kind = "float",   c = "bf16_s", compute = "f32", built = true, exponent = 8, digits = 8 }
dtype "f32"  { code = 2, bits = 32, kind = "float",   c = "f32",    compute = "f32", built = true, exponent = 8, digits = 24 }
dtype "f64"  { code = 2, bits = 64, kind = "float",   c = "f64",    compute = "f64", built = true, exponent = 11, digits = 53 }
dtype "f8_e4m3fn"  { code = 10, bits = 8, kind = "float", compute = "f32", built = "preview", exponent = 4, digits = 4, finite = true }
dtype "complex128" { code = 5, bits = 128, kind = "complex", compute = "complex128", built = "preview", exponent = 11, digits = 53 }

-- Bits of a size, for ops that move values without looking at them; of sizes that some dtype has.
dtype "b8"  { code = 1, bits = 8,  kind = "bits", c = "u8",  compute = "b8" }
dtype "b16" { code = 1, bits = 16, kind = "bits", c = "u16", compute = "b16" }
dtype "b32" { code = 1, bits = 32, kind = "bits", c = "u32", compute = "b32" }
dtype "b64" { code = 1, bits = 64, kind = "bits", c = "u64", compute = "b64" }
dtype "b128" { code = 1, bits = 128, kind = "bits", c = "b128", compute = "b128" }
