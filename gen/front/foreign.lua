-- SPDX-License-Identifier: Apache-2.0
--
-- Names from other languages and libraries, and one sentence for each: what to write in an expression instead, or that there is no
-- counterpart. Data; runtime/lang/foreign_names.h has the same tables. A name that an op or a primitive has needs no row.

local source = require "gen.base.source"

local M = {}

-- Modules that names of functions and constants are written with: np.exp.
M.modules = { "F", "Math", "cmath", "cp", "jax.nn", "jax.numpy", "jnp", "jnp.linalg", "linalg", "math", "nn", "np", "np.linalg", "numpy", "numpy.linalg",
              "quern", "scipy.special", "special", "std", "tf", "torch", "torch.linalg" }

-- Functions: name -> sentence. Names of math.h with a last f or l, for float and long double, need no row.
M.functions = {}

local function functions(rows)
  for name, sentence in pairs(rows) do M.functions[name] = sentence end
end

-- The same function of another name: "write NAME". gen/tools/python_facts.lua has these names for Python, too.
M.aliases = {}
local function aliases(rows)
  for name, other in pairs(rows) do M.aliases[name], M.functions[name] = other, "write " .. other end
end

-- NumPy, the array API, scipy.special
aliases {
  absolute = "abs", amax = "max", amin = "min", arccos = "acos", arccosh = "acosh", arcsin = "asin", arcsinh = "asinh",
  arctan = "atan", arctan2 = "atan2", arctanh = "atanh", around = "round", bitwise_not = "bitwise_invert",
  deg2rad = "radians", greater_or_equal = "greater_equal", invert = "bitwise_invert", left_shift = "bitwise_left_shift",
  less_or_equal = "less_equal", power = "pow", product = "prod", rad2deg = "degrees", right_shift = "bitwise_right_shift",
  true_divide = "divide", float_divide = "divide", alltrue = "all", sometrue = "any", bitwise_left = "bitwise_left_shift",
  count = "count_nonzero", minus = "subtract", plus = "add", times = "multiply", expit = "sigmoid", logistic = "sigmoid",
  mod = "remainder", ln = "log", sqr = "square", sgn = "sign",
}
functions {
  mod = "write remainder(x, y), with the sign of y, or fmod(x, y), with that of x",
  nan_to_num = "write where(isnan(x), 0, x)",
  isposinf = "write x == inf",
  isneginf = "write x == -inf",
  select = "write where(condition, x, y)",
  choose = "write where(condition, x, y)",
  piecewise = "write where(condition, x, y)",
  iif = "write where(condition, x, y)",
  ifelse = "write where(condition, x, y)",
  dot = "there is no matrix product; of vectors write vecdot(x, y)",
  matmul = "there is no matrix product; of vectors write vecdot(x, y)",
  einsum = "there is no matrix product; of vectors write vecdot(x, y)",
  inner = "there is no matrix product; of vectors write vecdot(x, y)",
  real = "numbers are real here",
  imag = "numbers are real here",
  conj = "numbers are real here",
  conjugate = "numbers are real here",
  angle = "numbers are real here",
  median = "there is no op that sorts",
  percentile = "there is no op that sorts",
  quantile = "there is no op that sorts",
  sort = "there is no op that sorts",
  argsort = "there is no op that sorts",
  topk = "there is no op that sorts",
  unique = "there is no op that sorts",
  reshape = "give the operand as a view of that shape",
  transpose = "give the operand as a view with its dimensions in that order",
  broadcast_to = "operands are broadcast by themselves",
  concatenate = "an expression works element by element: give each part by itself",
  concat = "an expression works element by element: give each part by itself",
  stack = "an expression works element by element: give each part by itself",
  zeros_like = "write 0 * x",
  ones_like = "write 0 * x + 1",
  exp10 = "write pow(10, x)",
  zeros = "write the number: operands are broadcast by themselves",
  ones = "write the number: operands are broadcast by themselves",
  full_like = "write 0 * x + value",
  flip = "give the operand as a view in that order",
  fliplr = "give the operand as a view in that order",
  flipud = "give the operand as a view in that order",
  roll = "an expression works element by element: shift the operand before",
  diff = "the derivative of a formula is grad; of neighbours subtract two views",
  gradient = "the derivative of a formula is grad; of neighbours subtract two views",
  cross = "write its parts by themselves, such as a1 * b2 - a2 * b1",
  interp = "there is no op that looks values up: do it before",
  digitize = "there is no op that looks values up: do it before",
  searchsorted = "there is no op that looks values up: do it before",
  convolve = "an expression works element by element: do it before",
  correlate = "an expression works element by element: do it before",
  erfinv = "there is no inverse of erf",
  complex = "numbers are real here",
  iff = "write where(condition, x, y)",
  ternary = "write where(condition, x, y)",
  len = "of a vector write sum(0 * x + 1)",
  print = "an expression gives values: name an output, y = x, and print that",
}

-- math.h
aliases { fabs = "abs", lrint = "rint", llrint = "rint", nearbyint = "rint", scalbn = "ldexp", scalbln = "ldexp" }
functions {
  lround = "write round(x), to even between two, or trunc(x + copysign(0.5, x))",
  llround = "write round(x), to even between two, or trunc(x + copysign(0.5, x))",
  fdim = "write maximum(x - y, 0)",
  tgamma = "there is no gamma function",
  lgamma = "there is no gamma function",
  gamma = "there is no gamma function",
  gammaln = "there is no gamma function",
  digamma = "there is no gamma function",
  logb = "write frexp.exponent(x) - 1",
  ilogb = "write frexp.exponent(x) - 1",
  isnormal = "write isfinite(x), or compare with the least normal number",
  remquo = "write x - y * rint(x / y)",
  drem = "write x - y * rint(x / y)",
}

-- PyTorch, JAX
aliases {
  clamp = "clip", div = "divide", eq = "equal", ge = "greater_equal", gt = "greater", hardsigmoid = "hard_sigmoid",
  hardswish = "hard_swish", le = "less_equal", logsigmoid = "log_sigmoid", lt = "less", mul = "multiply", ne = "not_equal",
  neg = "negative", norm = "vector_norm", sub = "subtract", swish = "silu", cumsum = "cumulative_sum",
  cumprod = "cumulative_prod",
}
functions {
  relu6 = "write clip(x, 0, 6)",
  hardtanh = "write clip(x, -1, 1)",
  lerp = "write x + w * (y - x)",
  mix = "write x + w * (y - x)",
  frac = "write x - trunc(x)",
  fract = "write x - floor(x)",
  rsqrt = "write 1 / sqrt(x)",
  inversesqrt = "write 1 / sqrt(x)",
  saturate = "write clip(x, 0, 1)",
  step = "write heaviside(x, 1)",
  xlogy = "write where(x == 0, 0, x * log(y))",
  logit = "write log(x / (1 - x))",
  masked_fill = "write where(mask, value, x)",
  addcmul = "write x + value * y * z",
  addcdiv = "write x + value * y / z",
  dropout = "there are no random numbers: give a mask as an operand",
  rand = "there are no random numbers: give them as an operand",
  randn = "there are no random numbers: give them as an operand",
  random = "there are no random numbers: give them as an operand",
}

-- Casts
functions {
  astype = "write a cast, (f32)x", -- as a method: the op of this name says so itself
  to = "write a cast, (f32)x",
  char = "write a cast, (i8)x",
  bool_ = "write a cast, (bool)x",
  cast = "write a cast, (f32)x",
  half = "write a cast, (f16)x",
  bfloat16 = "write a cast, (bf16)x",
  float16 = "write a cast, (f16)x",
  float32 = "write a cast, (f32)x",
  float64 = "write a cast, (f64)x",
  int8 = "write a cast, (i8)x",
  int16 = "write a cast, (i16)x",
  int32 = "write a cast, (i32)x",
  int64 = "write a cast, (i64)x",
  uint8 = "write a cast, (u8)x",
  uint16 = "write a cast, (u16)x",
  uint32 = "write a cast, (u32)x",
  uint64 = "write a cast, (u64)x",
}

-- Words: name -> { sentence, is_refused = no input may have this name }. Said where the text cannot be read on at the word or behind
-- it, or where it is called.
M.words = {}

local CHOICE = "a choice is condition ? x : y, or where(condition, x, y)"
local LOOP = "there are no loops: an expression works on all elements"
local TRUTH = "flags are 1 and 0, conditions are comparisons, such as x == x"
local CAST = "a cast is (f32)x, a local f32 t = x"
local QUOTE = "names are written without quotes"
local BLANK = "write an ordinary blank"
local FUNCTION = "an expression is a formula of its operands, without functions of its own"
local INDEX = "operands are whole tensors: give a view"
local NONE = "there is no such value: leave it out"
local LIMIT = "write the number, for a dtype's last bit such as 0x1p-23"
local LIMITS = "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON INT_MAX INT_MIN INT32_MAX INT32_MIN INT64_MAX INT64_MIN"
for sentence, names in pairs {
  [CHOICE] = "if else elif", [LOOP] = "for while", [TRUTH] = "True False true false", [FUNCTION] = "def import",
  [NONE] = "None NULL null nullptr nil", ["write INFINITY"] = "Inf INF Infinity", ["write NAN"] = "NaN", ["write 2 * PI"] = "M_2PI",
  ["write PI"] = "M_PI", ["write PI / 2"] = "M_PI_2", ["write PI / 4"] = "M_PI_4", ["write E"] = "M_E", ["write LN2"] = "M_LN2",
  ["write LN10"] = "M_LN10", ["write LOG2E"] = "M_LOG2E", ["write LOG10E"] = "M_LOG10E", ["write SQRT2"] = "M_SQRT2",
  ["write SQRT1_2"] = "M_SQRT1_2", [LIMIT] = LIMITS,
} do
  for name in names:gmatch "%S+" do M.words[name] = { sentence, is_refused = true } end
end
for name, sentence in pairs {
  float = "the dtypes are f32 and f64", double = "the dtype is f64", int = "the dtypes are i32 and i64", long = "the dtype is i64",
  short = "the dtype is i16", unsigned = "the dtypes are u8 to u64", ["const"] = "a local is declared with its dtype, or auto",
  var = "a local is declared with its dtype, or auto", let = "a local is declared with its dtype, or auto",
  ["and"] = "write &&", ["or"] = "write ||", ["not"] = "write !", -- of bodies: in a host's expression they are signs
  ["then"] = CHOICE, switch = CHOICE, ["do"] = LOOP, ["function"] = FUNCTION, lambda = FUNCTION,
  ["in"] = LOOP, is = "write ==", xor = "write ^ of integers or conditions", mod = M.functions.mod, div = "write x / y or floor_divide(x, y)",
  bool = CAST, i8 = CAST, i16 = CAST, i32 = CAST, i64 = CAST, u8 = CAST, u16 = CAST, u32 = CAST, u64 = CAST, f16 = CAST, bf16 = CAST,
  f32 = CAST, f64 = CAST, ["."] = "functions are written without a module, exp(x)", ["'"] = QUOTE, ['"'] = QUOTE,
  ["\u{2018}"] = QUOTE, ["\u{2019}"] = QUOTE, ["\u{201C}"] = QUOTE, ["\u{201D}"] = QUOTE, ["\u{D7}"] = "write *", ["\u{22C5}"] = "write *", ["\u{B7}"] = "write *",
  ["\u{F7}"] = "write /", ["\u{2212}"] = "write -", ["\u{2013}"] = "write -", ["\u{B2}"] = "write ** 2", ["\u{B3}"] = "write ** 3",
  ["\u{2264}"] = "write <=", ["\u{2265}"] = "write >=", ["\u{2260}"] = "write !=", ["\u{221A}"] = "write sqrt(x)", ["\u{3C0}"] = "write PI",
  ["\u{221E}"] = "write INFINITY", ["\u{2227}"] = "write &&", ["\u{2228}"] = "write ||", ["\u{AC}"] = "write !", ["\u{A0}"] = BLANK,
  ["\u{202F}"] = BLANK, ["\u{FEFF}"] = "the text begins with a mark of its encoding: leave it out",
  ["`"] = "names have the letters a to z, digits and _",
  ["\\"] = "a text may have several lines as it is",
  ["["] = INDEX, ["]"] = INDEX, ["@"] = M.functions.matmul, ["$"] = "names have letters, digits and _",
} do M.words[name] = { sentence } end
for letter = 0x391, 0x3C9 do -- Greek
  M.words[utf8.char(letter)] = M.words[utf8.char(letter)] or { "names have the letters a to z, digits and _" }
end

-- Behind the sentence of a call with too many arguments, of an op over axes. ORDER callee.c
M.AXES = ": axes have a name, axis=0"

-- What follows a module, the longest one, in a name with dots; nil: it does not begin with one.
function M.behind_module(name)
  local rest
  for _, module in ipairs(M.modules) do
    local is_module = #name > #module + 1 and name:sub(1, #module + 1) == module .. "."
    if is_module and not (rest and #rest <= #name - #module - 1) then rest = name:sub(#module + 2) end
  end
  return rest
end

-- The sentence for an unknown function, or nil. knows(name): whether there is an op or a primitive of the name
function M.of_function(name, knows)
  if M.words[name] then return nil end -- hint.lua says it
  local base = M.behind_module(name) or name
  if M.functions[base] then return M.functions[base] end
  if base ~= name then return knows(base) and "write " .. base or nil end
  local head, method = name:match "^(.*)%.([^.]*)$"
  if head and knows(head) then -- of an op, not of an operand
    local variant = head .. "_" .. method
    return knows(variant) and "write " .. variant or nil
  elseif method then
    local sentence = M.functions[method] or M.words[method] and M.words[method][1]
    return sentence or knows(method) and "no registered op, and operands have no methods: write " .. method or nil
  end
  local double = name:match "^(.+)[fl]$"
  if not double then return nil end
  return knows(double) and "write " .. double or M.functions[double]
end

-- What follows an unknown name of an op in a message: what to write, or the nearest name. ops: name -> op
function M.advice(name, ops)
  local sentence = M.of_function(name, function(other) return ops[other] end)
  return sentence and ": " .. sentence or source.suggest(name, ops)
end

return M
