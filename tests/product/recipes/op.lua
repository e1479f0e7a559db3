-- SPDX-License-Identifier: Apache-2.0
--
-- A throwaway unary op, for t330-recipes: "cube". Beside its entry, what the tests over all ops hold it by.

return {
  new = {},
  edits = {
    ["dsl/unary.lua"] = { { before = [[unary "negative" {]], text = [==[
unary "cube" {
  doc    = "x * x * x.",
  dtypes = numeric,
  ulp    = { f32 = 1.5, f64 = 1.5 },
  body   = [[ x * x * x ]],
  examples = { { x = 3, y = 27 } },
}

]==] } },
    ["tools/measure/ref.h"] = { { before = "  REF_N_OPS,\n", text = "  REF_CUBE,\n" } },
    ["tools/measure/ref.c"] = {
      { before = [[    {{"modf.fraction",]], text = "    {{\"cube\", 1, 0, 0, 0, 1.5, {0}}, TAKES_NUMERIC, 0},\n" },
      { before = "    case REF_SQUARE: return (__int128)",
        text = "    case REF_CUBE: {\n      const unsigned __int128 u = (unsigned __int128)x[0];\n      return (__int128)(u * u * u);\n    }\n" },
      { before = "    case REF_EXP:", text = "    case REF_CUBE: return x * x * x;\n" },
    },
    ["tests/kernels/special_cases.txt"] = { { before = "without gcd ", text = "without cube: no standard has it\n" } },
  },
}
