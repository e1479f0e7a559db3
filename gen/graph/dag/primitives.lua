-- SPDX-License-Identifier: Apache-2.0
--
-- The primitives: the operations that nodes of a graph compute, a row each. From these rows come the functions and operators
-- of the language (expr.lua), folding (dag.lua), the evaluator (evaluate.lua), derivatives (derive.lua), the spellings of the
-- targets, the library's kernels of one operation each and the tables of runtime/lang (products/primitive_kernels.lua). Data and
-- small functions: knows no syntax, and of targets only the spellings in its rows.
--
--   name        of the node operation
--   doc         what it computes, of its arguments x, y, z: a line of docs/primitives.md
--   arguments   how many
--   takes       the kinds of the arguments, a key of M.KINDS; nil: their types differ
--   result      the result's type if it is not that of the arguments: "bool"
--   call        a body may call it by its name
--   operator    its sign in a body; prefix: that of one operand
--   looks_at_sign   it sees the sign bit of its last argument, of an operand's NaN, too
--   signless    the result is the same bits for integers of either sign
--   fold        (x, y, type): the result on integers, exact modulo 2^bits; folds constants, and evaluates
--   simplify    (dag, type name, args): an existing node equal to the result, or nil
--   evaluate    (x, y, z, at): the result on numbers, before it is rounded; at = { type, of = the first argument's type, node,
--               types }. Or a table of such functions by kind of the type
--   derive      what each argument x, y, z adds to the derivative, as text of the language: out is the result, grad the
--               argument's own derivative, "0" is nothing. Or a derivation without a rule: "branches", "cast", "constant" (adds
--               nothing). nil: no derivative; underived: the operation's name in that error, if not `name`.
--               At kinks they are PyTorch's: half of grad to each of two equal operands, 0 to the argument 0 of abs
--   c, cuda     the spelling in a target: $1 $2 $3 are the arguments, $t the type computed in, $f the first argument's; other
--               words are the target's. Or a table of spellings by computed type or kind; of_bool: the first argument is a
--               condition; constant: the last argument is a constant; of_operand: it is an operand, so that a NaN has
--               the bits that it has in memory; of_fused: the first one is an fma, or a choice that has one; any: all else
--   cuda_free   the spelling as an operand where a NaN's bits do not matter: the hardware changes signs as it reads
--   exact       the spelling in numbers of 113 bits, conditions as int, for `check --measure`; nil: bodies that use the operation are
--               not measured
--   family      the library's file of kernels with this operation

local arithmetic = require "gen.base.arithmetic"
local number = require "gen.base.number"

local M = {}

-- `takes` -> kinds. float: an integer becomes a float (dtypes' `floating`); whole: an integer stays as it is.
M.KINDS = {
  float = { float = true }, whole = { float = true }, integer = { integer = true }, bool = { bool = true },
  number = { integer = true, float = true }, bits = { bool = true, integer = true },
  any = { bool = true, integer = true, float = true },
}

M.list = {}
M.of = {} -- name -> row

local function primitive(row)
  M.list[#M.list + 1] = row
  M.of[row.name] = row
end

local function is_const(node) return node.op == "const" end

-- What a condition is that a constant decides, or nil. absorbing: the value (0 or 1) that decides "and" and "or".
local function decided_by(absorbing)
  return function(_, type_name, args)
    if type_name ~= "bool" then return nil end
    for k = 1, 2 do
      if is_const(args[k]) then return args[k].value == absorbing and args[k] or args[3 - k] end
    end
  end
end

---------------------------------------------------------------------------------------------------- arithmetic

primitive {
  name = "add", arguments = 2, takes = "number", operator = "+", signless = true, family = "arithmetic",
  doc = "The sum. Integers wrap modulo 2^bits.",
  fold = function(x, y) return x + y end,
  evaluate = function(x, y) return x + y end,
  derive = { "grad", "grad" },
  c = { float = "$1 + $2", integer = "q_add_$t($1, $2)" },
  cuda = { f32 = "__fadd_rn($1, $2)", f64 = "__dadd_rn($1, $2)", integer = "q_add_$t($1, $2)" },
  exact = "$1 + $2",
}

primitive {
  name = "sub", arguments = 2, takes = "number", operator = "-", signless = true, family = "arithmetic",
  doc = "The difference. Integers wrap modulo 2^bits.",
  fold = function(x, y) return x - y end,
  evaluate = function(x, y) return x - y end,
  derive = { "grad", "-grad" },
  c = { float = "$1 - $2", integer = "q_sub_$t($1, $2)" },
  cuda = { f32 = "__fsub_rn($1, $2)", f64 = "__dsub_rn($1, $2)", integer = "q_sub_$t($1, $2)" },
  exact = "$1 - $2",
}

primitive {
  name = "mul", arguments = 2, takes = "number", operator = "*", signless = true, family = "arithmetic",
  doc = "The product. Integers wrap modulo 2^bits.",
  fold = function(x, y) return x * y end,
  evaluate = function(x, y) return x * y end,
  derive = { "grad * y", "grad * x" },
  c = { float = "$1 * $2", integer = "q_mul_$t($1, $2)" },
  cuda = { f32 = "__fmul_rn($1, $2)", f64 = "__dmul_rn($1, $2)", integer = "q_mul_$t($1, $2)" },
  exact = "$1 * $2",
}

primitive {
  name = "div", arguments = 2, takes = "float", operator = "/", family = "float",
  doc = "The quotient of floats.",
  evaluate = function(x, y) return x / y end,
  derive = { "grad / y", "-(grad * (out / y))" },
  c = { float = "$1 / $2" },
  cuda = "qc_div_$t($1, $2)",
  exact = "$1 / $2",
}

primitive {
  name = "quot", arguments = 2, takes = "integer", call = true, family = "division",
  doc = "The integer quotient, rounded toward 0. By 0 it is 0; the least number by -1 wraps to itself.",
  fold = function(x, y, t) return (number.divided(x, y, t.signed)) end,
  c = { integer = "q_quot_$t($1, $2)" },
  cuda = { integer = "q_quot_$t($1, $2)" },
}

primitive {
  name = "rem", arguments = 2, takes = "number", call = true, family = "division",
  doc = "The remainder of the quotient rounded toward 0, with the sign of x (fmod in C). By 0: NaN of floats, 0 of integers.",
  fold = function(x, y, t) return select(2, number.divided(x, y, t.signed)) end,
  evaluate = arithmetic.remainder,
  derive = { "grad", "-(grad * rint((x - out) / y))" },
  c = "q_rem_$t($1, $2)",
  cuda = "q_rem_$t($1, $2)",
  exact = "REAL_F(fmod)($1, $2)",
}

primitive {
  name = "gcd", arguments = 2, takes = "integer", call = true, family = "division",
  doc = "The greatest common divisor of the magnitudes. gcd(0, 0) is 0.",
  fold = function(x, y, t) return number.gcd(x, y, t.signed) end,
  c = { integer = "q_gcd_$t($1, $2)" },
  cuda = { integer = "q_gcd_$t($1, $2)" },
}

primitive {
  name = "neg", arguments = 1, takes = "number", prefix = "-", signless = true, family = "arithmetic",
  doc = "The negative. Of floats the sign bit is flipped, of a zero too; integers wrap.",
  fold = function(x) return -x end,
  evaluate = function(x) return -x end,
  derive = { "-grad" },
  c = { float = "-($1)", of_fused = "q_neg_$t($1)", integer = "q_neg_$t($1)" }, -- GCC makes of -fma(x, y, z) what has another zero's sign
  cuda = "q_neg_$t($1)",
  cuda_free = { f32 = "-($1)", f64 = "-($1)" },
  exact = "-$1",
}

primitive {
  name = "abs", arguments = 1, takes = "number", call = true, family = "arithmetic",
  doc = "The magnitude. Of floats the sign bit is cleared; the least integer wraps to itself.",
  evaluate = {
    float = function(x) return arithmetic.is_negative(x) and -x or x end,
    integer = function(x, _, _, at) return at.type.signed and x < 0 and -x or x end,
  },
  derive = { "x > 0 ? grad : x < 0 ? -grad : 0 * x" },
  c = "q_abs_$t($1)",
  cuda = "q_abs_$t($1)",
  cuda_free = { f32 = "qc_abs_f32($1)", f64 = "qc_abs_f64($1)" },
  exact = "REAL_F(fabs)($1)",
}

primitive {
  name = "maximum", arguments = 2, takes = "number", call = true, family = "arithmetic",
  doc = "The larger of two numbers. NaN if either is NaN; +0 is larger than -0.",
  evaluate = {
    float = arithmetic.larger,
    integer = function(x, y, _, at) return arithmetic.less(x, y, at.type) and y or x end,
  },
  derive = { "x == y ? 0.5 * grad : x < y ? 0 : grad", "x == y ? 0.5 * grad : x > y ? 0 : grad" },
  c = "q_max_$t($1, $2)",
  cuda = "q_max_$t($1, $2)",
  exact = "exact_maximum($1, $2)",
}

primitive {
  name = "minimum", arguments = 2, takes = "number", call = true, family = "arithmetic",
  doc = "The smaller of two numbers. NaN if either is NaN; -0 is smaller than +0.",
  evaluate = {
    float = arithmetic.smaller,
    integer = function(x, y, _, at) return arithmetic.less(y, x, at.type) and y or x end,
  },
  derive = { "x == y ? 0.5 * grad : x > y ? 0 : grad", "x == y ? 0.5 * grad : x < y ? 0 : grad" },
  c = "q_min_$t($1, $2)",
  cuda = "q_min_$t($1, $2)",
  exact = "exact_minimum($1, $2)",
}

---------------------------------------------------------------------------------------------------- of floats

primitive {
  name = "sqrt", arguments = 1, takes = "float", call = true, family = "float",
  doc = "The square root, correctly rounded. NaN below 0; of -0 it is -0.",
  evaluate = arithmetic.sqrt,
  derive = { "grad / (2 * out)" },
  c = "q_sqrt_$t($1)",
  cuda = "q_sqrt_$t($1)",
  exact = "REAL_F(sqrt)($1)",
}

primitive {
  name = "rint", arguments = 1, takes = "float", call = true, family = "float",
  doc = "The nearest whole number, to even between two. The sign of a zero stays.",
  evaluate = arithmetic.rint,
  derive = { "0" },
  c = "q_rint_$t($1)",
  cuda = "q_rint_$t($1)",
  exact = "REAL_F(rint)($1)",
}

primitive {
  name = "floor", arguments = 1, takes = "whole", call = true, family = "float",
  doc = "The largest whole number not above x.",
  evaluate = arithmetic.floor,
  derive = { "0" },
  c = "q_floor_$t($1)",
  cuda = "q_floor_$t($1)",
  exact = "REAL_F(floor)($1)",
}

primitive {
  name = "ceil", arguments = 1, takes = "whole", call = true, family = "float",
  doc = "The smallest whole number not below x.",
  evaluate = arithmetic.ceil,
  derive = { "0" },
  c = "q_ceil_$t($1)",
  cuda = "q_ceil_$t($1)",
  exact = "REAL_F(ceil)($1)",
}

primitive {
  name = "trunc", arguments = 1, takes = "whole", call = true, family = "float",
  doc = "x without its fraction: rounded toward 0.",
  evaluate = arithmetic.trunc,
  derive = { "0" },
  c = "q_trunc_$t($1)",
  cuda = "q_trunc_$t($1)",
  exact = "REAL_F(trunc)($1)",
}

primitive {
  name = "copysign", arguments = 2, takes = "float", call = true, family = "float", looks_at_sign = true,
  doc = "The magnitude of x with the sign of y: as it lies in memory where y is an operand; a NaN that was computed counts as positive.",
  evaluate = arithmetic.copysign,
  derive = { "x == 0 ? 0 : signbit(x) == signbit(y) ? grad : -grad", "0" },
  c = { of_operand = "q_raw_copysign_$t($1, $2)", any = "q_copysign_$t($1, $2)" },
  cuda = { of_operand = "q_raw_copysign_$t($1, $2)", any = "q_copysign_$t($1, $2)" },
  exact = "exact_copysign($1, $2)",
}

primitive {
  name = "signbit", arguments = 1, takes = "float", result = "bool", call = true, family = "float", looks_at_sign = true,
  doc = "Whether the sign bit is set, of -0 too; of a NaN as it lies in memory where x is an operand, false where it was computed.",
  evaluate = function(x) return x == x and arithmetic.is_negative(x) and 1 or 0 end,
  c = { of_operand = "q_raw_signbit_$f($1)", bool = "q_signbit_$f($1)" },
  cuda = { of_operand = "q_raw_signbit_$f($1)", bool = "q_signbit_$f($1)" },
  exact = "exact_signbit($1)",
}

-- In place of an op or a choice that is folded to one of its operands: else the result would count as an operand.
primitive {
  name = "canon", arguments = 1, derive = { "grad" },
  doc = "x; of a NaN, the one NaN. What is no move has it where it gives an operand as it is.",
  simplify = function(_, _, args) return args[1].op == "canon" and args[1] or nil end,
  evaluate = function(x) return x end,
  c = "q_canon_$t($1)",
  cuda = "q_canon_$t($1)",
  exact = "$1",
}

primitive {
  name = "fma", arguments = 3, takes = "float", call = true, family = "float",
  doc = "x * y + z, rounded once.",
  evaluate = function(x, y, z, at) return arithmetic.fma(x, y, z, at.type) end,
  derive = { "grad * y", "grad * x", "grad" },
  c = "q_fma_$t($1, $2, $3)",
  cuda = "q_fma_$t($1, $2, $3)",
  exact = "$1 * $2 + $3",
}

---------------------------------------------------------------------------------------------------- of bits

primitive {
  name = "and", arguments = 2, takes = "bits", operator = "&", signless = true, family = "bits",
  doc = "Bits set in both; of conditions, both hold.",
  fold = function(x, y) return x & y end,
  simplify = decided_by(0),
  c = { integer = "($t)($1 & $2)", bool = "$1 & $2" },
  cuda = { integer = "($t)($1 & $2)", bool = "$1 && $2" },
  exact = "$1 & $2",
}

primitive {
  name = "or", arguments = 2, takes = "bits", operator = "|", signless = true, family = "bits",
  doc = "Bits set in either; of conditions, at least one holds.",
  fold = function(x, y) return x | y end,
  simplify = decided_by(1),
  c = { integer = "($t)($1 | $2)", bool = "$1 | $2" },
  cuda = { integer = "($t)($1 | $2)", bool = "$1 || $2" },
  exact = "$1 | $2",
}

primitive {
  name = "xor", arguments = 2, takes = "bits", operator = "^", signless = true, family = "bits",
  doc = "Bits set in one alone; of conditions, one alone holds.",
  fold = function(x, y) return x ~ y end,
  c = { integer = "($t)($1 ^ $2)", bool = "$1 ^ $2" },
  cuda = { integer = "($t)($1 ^ $2)", bool = "$1 != $2" },
  exact = "$1 ^ $2",
}

primitive {
  name = "not", arguments = 1, takes = "integer", prefix = "~", signless = true, family = "bits",
  doc = "All bits flipped.",
  fold = function(x) return ~x end,
  c = { integer = "($t)~$1" },
  cuda = { integer = "($t)~$1" },
}

primitive {
  name = "count_bits", arguments = 1, takes = "integer", call = true, signless = true, family = "bits",
  doc = "How many bits are 1.",
  fold = function(x, _, t) return arithmetic.count_bits(x, t) end,
  c = { integer = "q_count_bits_$t($1)" },
  cuda = { integer = "q_count_bits_$t($1)" },
}

primitive {
  name = "lnot", arguments = 1, takes = "bool", prefix = "!", family = "bits",
  doc = "Whether the condition does not hold.",
  simplify = function(dag, _, args) return is_const(args[1]) and dag:constant("bool", 1 - args[1].value) or nil end,
  evaluate = function(x) return 1 - x end,
  c = { bool = "~$1" },
  cuda = { bool = "!$1" },
  exact = "!$1",
}

primitive {
  name = "shl", arguments = 2, takes = "integer", operator = "<<", signless = true, family = "bits",
  doc = "x shifted left by y bits. y below 0, or the width or more: 0.",
  simplify = function(dag, type_name, args)
    local t, x, count = dag.types.by_name[type_name], args[1], args[2]
    if not is_const(count) then return nil end
    if count.value < 0 or count.value >= t.bits then return dag:constant(type_name, 0) end
    return is_const(x) and dag:constant(type_name, x.value << count.value) or nil
  end,
  evaluate = function(x, count, _, at) return arithmetic.shifted_left(x, count, at.type) end,
  c = { constant = "q_shlc_$t($1, $2)", any = "q_shl_$t($1, $2)" },
  cuda = { constant = "q_shlc_$t($1, $2)", any = "q_shl_$t($1, $2)" },
}

primitive {
  name = "shr", arguments = 2, takes = "integer", operator = ">>", family = "bits",
  doc = "x shifted right by y bits, signed integers with copies of the sign. y below 0, or the width or more: as by the width.",
  simplify = function(dag, type_name, args)
    local t, x, count = dag.types.by_name[type_name], args[1], args[2]
    if not is_const(count) then return nil end
    if count.value < 0 or count.value >= t.bits then
      return t.signed and dag:make("shr", type_name, { x, dag:constant(count.type, t.bits - 1) }) or dag:constant(type_name, 0)
    end
    return is_const(x) and dag:constant(type_name, arithmetic.shifted_right(x.value, count.value, t)) or nil
  end,
  evaluate = function(x, count, _, at) return arithmetic.shifted_right(x, count, at.type) end,
  c = { constant = "q_shrc_$t($1, $2)", any = "q_shr_$t($1, $2)" },
  cuda = { constant = "q_shrc_$t($1, $2)", any = "q_shr_$t($1, $2)" },
}

-- raw: a NaN has the bits that the hardware made; bits: those of the canonical NaN.
local function bits_of(x, _, _, at) return number.float_bits(x, at.of) end

primitive {
  name = "bits", arguments = 1, signless = true, underived = "as_i32 and as_i64",
  doc = "The bits of a float as an integer, and back. All NaNs have the bits of the positive quiet NaN.",
  simplify = function(_, type_name, args) return is_const(args[1]) and args[1].type == type_name and args[1] or nil end,
  evaluate = bits_of,
  c = { integer = "($t)q_bits_$f($1)" },
  cuda = { integer = "($t)q_bits_$f($1)" },
}

primitive {
  name = "raw", arguments = 1, signless = true, underived = "the bits of a float",
  doc = "The bits of a float as an integer; those of a NaN are unspecified. Of the library's own functions alone.",
  evaluate = bits_of,
  c = { integer = "($t)q_raw_$f($1)" },
  cuda = { integer = "($t)q_raw_$f($1)" },
}

primitive {
  name = "from_bits", arguments = 1, signless = true, derive = "constant",
  doc = "The float of some bits.",
  evaluate = function(x, _, _, at) return number.float_value(x, at.type) end,
  c = { float = "q_from_$t((u$b)$1)" },
  cuda = { float = "q_from_$t((u$b)$1)" },
}

---------------------------------------------------------------------------------------------------- comparisons

-- Comparisons of unsigned integers that a zero decides: the zero's place among the arguments, and what holds. No compiler then warns.
local OF_ZERO = { lt = { 2, 0 }, gt = { 1, 0 }, ge = { 2, 1 }, le = { 1, 1 } }

-- c, cuda: of numbers, then of conditions
local function comparison(name, operator, signless, holds, c, cuda, doc)
  primitive {
    name = name, arguments = 2, takes = "any", result = "bool", operator = operator, signless = signless, family = "compare",
    doc = doc,
    simplify = function(dag, _, args)
      local t, of_zero = dag.types.by_name[args[1].type], OF_ZERO[name]
      if t.kind ~= "integer" or t.signed or not of_zero then return nil end
      local zero = args[of_zero[1]]
      return is_const(zero) and zero.value == 0 and dag:constant("bool", of_zero[2]) or nil
    end,
    evaluate = function(x, y, _, at) return holds(x, y, at.of) and 1 or 0 end,
    c = { any = "Q_MASK(m$m, $1 " .. operator .. " $2)", of_bool = c },
    exact = "$1 " .. operator .. " $2",
    cuda = { any = "$1 " .. operator .. " $2", of_bool = cuda },
  }
end

local less = arithmetic.less
comparison("lt", "<", nil, less, "~$1 & $2", "!$1 && $2",
           "Whether x is less than y; false if either is NaN.")
comparison("le", "<=", nil, function(x, y, t) return less(x, y, t) or x == y end, "~$1 | $2", "!$1 || $2",
           "Whether x is less than y or equal; false if either is NaN.")
comparison("gt", ">", nil, function(x, y, t) return less(y, x, t) end, "$1 & ~$2", "$1 && !$2",
           "Whether x is greater than y; false if either is NaN.")
comparison("ge", ">=", nil, function(x, y, t) return less(y, x, t) or x == y end, "$1 | ~$2", "$1 || !$2",
           "Whether x is greater than y or equal; false if either is NaN.")
comparison("eq", "==", true, function(x, y) return x == y end, "~($1 ^ $2)", "$1 == $2",
           "Whether x and y are equal; false if either is NaN.")
comparison("ne", "!=", true, function(x, y) return x ~= y end, "$1 ^ $2", "$1 != $2",
           "Whether x and y differ; true if either is NaN.")

---------------------------------------------------------------------------------------------------- conversions and choices

primitive {
  name = "cast", arguments = 1, derive = "cast",
  doc = "x in another type: integers wrap, floats round to nearest even; a float to an integer rounds toward 0 and saturates, NaN to 0.",
  simplify = function(dag, type_name, args)
    local x, kind = args[1], dag.types.by_name
    local is_exact = is_const(x) and kind[type_name].kind == "integer" and kind[x.type].kind == "integer"
    return is_exact and dag:constant(type_name, x.value) or nil
  end,
  evaluate = function(x, _, _, at) return arithmetic.cast(x, at.of, at.type) end,
  c = { bool = "Q_MASK(m$m, $1 != 0)", of_bool = "($t)($1 & 1)", any = "q_cast_$f_$t($1)" },
  cuda = { bool = "$1 != 0", of_bool = "q_cast_bool_$t((bool_s)$1)", any = "q_cast_$f_$t($1)" },
  exact = { bool = "$1 != 0", any = "$1" },
}

-- Rounds to the dtype in the node's name; the compute type holds all numbers of that dtype.
primitive {
  name = "round", arguments = 1, derive = "cast",
  doc = "x rounded to a dtype that is only stored, in the type that it is computed in.",
  evaluate = function(x, _, _, at)
    return arithmetic.cast(arithmetic.cast(x, at.of, at.types.by_name.f64), at.types.by_name.f64, at.types.by_name[at.node.name])
  end,
  c = { float = "q_cast_$n_$t(q_cast_$f_$n($1))" },
  cuda = { float = "q_cast_$n_$t(q_cast_$f_$n($1))" },
  exact = { bool = "$1 != 0", any = "$1" },
}

-- select: the second argument where the first holds, else the third. rare: the same for a rare block; the second argument is
-- computed only if some element needs it.
local choices = {
  select = "y where the condition x holds, else z.",
  rare = "As select; y is computed only where some element of a block needs it.",
}
for _, name in ipairs { "select", "rare" } do
  primitive {
    name = name, arguments = 3, signless = name == "select" or nil, derive = "branches",
    doc = choices[name],
    simplify = function(dag, _, args)
      local chosen = args[2] == args[3] and args[2] or is_const(args[1]) and (args[1].value ~= 0 and args[2] or args[3])
      return chosen and dag:computed(chosen) or nil
    end,
    evaluate = function(condition, yes, no) return condition ~= 0 and yes or no end,
    c = { bool = "($1 & $2) | (~$1 & $3)", any = "q_sel_$t($1, $2, $3)" },
    cuda = "$1 ? $2 : $3",
    exact = "$1 ? $2 : $3",
  }
end

-- An item of the node's table; the index counts modulo its length.
primitive {
  name = "lookup", arguments = 1, derive = "constant",
  doc = "An item of a table; the index counts modulo its length, a power of two.",
  evaluate = function(index, _, _, at)
    local items = at.node.table.items
    local item = items[(index & (#items - 1)) + 1]
    return at.type.kind == "float" and item + 0.0 or item
  end,
  c = "$table[$1 & $last]",
  cuda = "$table[$1 & $last]",
}

---------------------------------------------------------------------------------------------------- what a body calls

-- name -> { arguments, takes } of a row, or { arguments, as = result type, node } of a cast of bits. is_trusted: of the
-- library's own math alone.
M.functions = { lookup = { arguments = 2, is_trusted = true } }
for _, row in ipairs(M.list) do
  if row.call then M.functions[row.name] = row end
end
for _, type_name in ipairs { "i32", "u32", "i64", "u64", "f32", "f64" } do
  M.functions["as_" .. type_name] = { arguments = 1, as = type_name, node = "bits" }
end
for _, type_name in ipairs { "i32", "u32", "i64", "u64" } do
  M.functions["raw_" .. type_name] = { arguments = 1, as = type_name, node = "raw", is_trusted = true }
end

-- Signs of operations of two operands, and of one -> row.
M.of_operator, M.of_prefix = {}, {}
for _, row in ipairs(M.list) do
  if row.operator then M.of_operator[row.operator] = row end
  if row.prefix then M.of_prefix[row.prefix] = row end
end

return M
