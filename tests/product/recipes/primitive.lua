-- SPDX-License-Identifier: Apache-2.0
--
-- A throwaway primitive, for t330-recipes: "absdiff", |x - y| of any numbers. Its tests are part of it: t010, t700 and t045 find it
-- in the two files below tests/support.

local subjects = {}
for _, name in ipairs { "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64" } do
  subjects[#subjects + 1] = string.format("BINARY(absdiff, %s, %s)\n", name, name)
end

return {
  new = {},
  edits = {
    ["gen/graph/dag/primitives.lua"] = { { before = "primitive {\n  name = \"maximum\"", text = [==[
primitive {
  name = "absdiff", arguments = 2, takes = "number", call = true, family = "arithmetic",
  doc = "The distance of x and y.",
  evaluate = {
    float = function(x, y) return math.abs(x - y) end,
    integer = function(x, y, _, at) return arithmetic.less(x, y, at.type) and y - x or x - y end,
  },
  derive = { "x > y ? grad : x < y ? -grad : 0 * x", "x > y ? -grad : x < y ? grad : 0 * x" },
  c = "q_absdiff_$t($1, $2)",
  cuda = "q_absdiff_$t($1, $2)",
  exact = "REAL_F(fabs)($1 - $2)",
}

]==] } },
    ["templates/c/headers/kernel.h"] = { { before = "#include \"kernel_cast.h\"", text = [==[
Q_FN f32 q_absdiff_f32(f32 x, f32 y) { return q_abs_f32(x - y); }
Q_FN f64 q_absdiff_f64(f64 x, f64 y) { return q_abs_f64(x - y); }
#define Q_ABSDIFF(X) \
  Q_FN X q_absdiff_##X(X x, X y) { return x < y ? q_sub_##X(y, x) : q_sub_##X(x, y); }
Q_ABSDIFF(i8) Q_ABSDIFF(i16) Q_ABSDIFF(i32) Q_ABSDIFF(i64) Q_ABSDIFF(u8) Q_ABSDIFF(u16) Q_ABSDIFF(u32) Q_ABSDIFF(u64)
#undef Q_ABSDIFF

]==] } },
    ["templates/cuda/kernel_cuda.h"] = { { after = "#undef Q_CAST_VIA_F32\n", text = [==[

Q_FN f32 q_absdiff_f32(f32 x, f32 y) { return q_abs_f32(__fsub_rn(x, y)); }
Q_FN f64 q_absdiff_f64(f64 x, f64 y) { return q_abs_f64(__dsub_rn(x, y)); }
#define Q_ABSDIFF(X) \
  Q_FN X q_absdiff_##X(X x, X y) { return x < y ? q_sub_##X(y, x) : q_sub_##X(x, y); }
Q_ABSDIFF(i8) Q_ABSDIFF(i16) Q_ABSDIFF(i32) Q_ABSDIFF(i64) Q_ABSDIFF(u8) Q_ABSDIFF(u16) Q_ABSDIFF(u32) Q_ABSDIFF(u64)
#undef Q_ABSDIFF
]==] } },
    ["tests/support/references/kernel_subject.def"] = { { before = "UNARY(sqrt, f32, f32)", text = table.concat(subjects) } },
    ["tests/support/references/primitive_reference.h"] = {
      { before = [[    {"add", 2,]], text = "    {\"absdiff\", 2, NUMBER, 's', 1},\n" },
      { before = [[  else if (!strcmp(op, "maximum"))]], text = "  else if (!strcmp(op, \"absdiff\")) r = x < y ? y - x : x - y;\n" },
      { before = [[  if (!strcmp(op, "copysign"))]],
        text = "  if (!strcmp(op, \"absdiff\")) return IN_BOTH(fabsf(A32 - B32), fabs(A64 - B64));\n" },
    },
  },
}
