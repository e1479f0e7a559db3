#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t307-measure.sh: `build.lua check --measure` builds a spec's ops, holds them to the bounds they declare against their
# bodies in 113 bits, and sees bounds that do not hold, wrong special cases and what it cannot measure. The specs of the documents hold.
set -u
: "${QUERN_TEST_EXHAUSTIVE=}"
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t307.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
TMPDIR=$work
export TMPDIR

# measure STATUS NAME: measures spec.lua, with the text of standard input. It is compiled quickly, but in full what holds; documents' specs are
# compiled as users' are.
measure() {
  cat >spec.lua
  progress='--progress always' compiler="sh '$source/tests/support/unoptimised.sh' cc"
  [ "$1" = 0 ] || progress=
  [ "$1$QUERN_TEST_EXHAUSTIVE" != 01 ] || compiler=cc
  CC=$compiler lua5.4 "$source/build.lua" check --measure $progress spec.lua >said 2>&1
  got=$?
  [ $got = "$1" ]
  status=$?
  [ $status = 0 ] || echo "exit $got, wanted $1" >>said
  ok $status "$2"
}
says() { grep -qE -- "$1" said; ok $? "  and says: $1"; }

# Specs that documents show: that of the tour, the one to start from, those of the examples.
awk '/^```lua$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/docs/tour.md" >readme.lua
lua5.4 "$source/build.lua" new acme.start >said 2>&1 || bail "no spec to start from"
n_shown=0
for spec in readme.lua acme_start.lua "$source"/examples/*/*.lua; do
  n_shown=$((n_shown + 1))
  in_part $n_shown 6 || continue
  try "what $(basename "$spec") declares holds" lua5.4 "$source/build.lua" check --measure "$spec"
done
[ $n_shown -ge 5 ]; ok $? 'specs that documents show: some on each day'
rm -f readme.lua acme_start.lua

# One file for all that holds, and one for each way not to hold: a program is built for each.
measure 0 'what holds' <<'END'
unary "acme.softsign" { doc = "d", dtypes = floating, body = "x / (1 + abs(x))", ulp = { f32 = 1.5, f64 = 1.5 },
  examples = { { x = 1.0, y = 0.5 } } }
binary "acme.more" { doc = "d", dtypes = { "f32" }, result = "bool", body = "x > y",
  examples = { { x = 1.0, y = 0.5, out = 1 } } }
op "acme.either" { doc = "d", inputs = "bool c, x, y", params = { slope = 0.1 }, dtypes = { "f64" },
  body = "c ? x * slope : sqrt(y)", examples = { { c = 0, x = 1.0, y = 4.0, out = 2.0 } } }
unary "acme.bits" { doc = "d", dtypes = { "f32" }, body = "as_f32(as_u32(x) ^ 1)",
  examples = { { x = 0.0, y = 0x1p-149 } } }
unary "acme.quarter" { doc = "d", dtypes = { "f32" }, body = "x * (0.25 * PI)", ulp = { f32 = 1.5 },
  examples = { { x = 0.0, y = 0.0 } } }
unary "acme.tenth" { doc = "d", dtypes = { "f64" }, body = "x * 0.1", ulp = { f64 = 1.5 },
  examples = { { x = 0.0, y = 0.0 } } }
unary "acme.given" { doc = "d", dtypes = floating, body = "sin(x) * x", ulp = { f32 = 3, f64 = 3 },
  grad = "grad * (cos(x) * x + sin(x))", examples = { { x = 0.0, y = 0.0 } } }
unary "acme.kinks" { doc = "d", dtypes = { "f32" }, body = "abs(x) + maximum(x, 0.5)", ulp = { f32 = 1 },
  examples = { { x = 0.0, y = 0.5 } } }
op "acme.mixed" { doc = "d", inputs = "bool c, x, y", params = { slope = 0.1 }, dtypes = { "f64" },
  body = "c ? exp(x) * slope : x / y", ulp = { f64 = 2 },
  grad = { x = "c ? grad * out : grad / y", y = "c ? 0 : -(grad * out / y)" },
  examples = { { c = 0, x = 1.0, y = 4.0, out = 0.25 } } }
unary "acme.steps" { doc = "d", dtypes = { "f64" }, body = "floor(x)", examples = { { x = 0.5, y = 0.0 } } }
END
for dtype in f16 bf16 f32 f64; do
  says "^acme.softsign $dtype: ok: declared [0-9.]+, worst [01]\.[0-9]+ ULP: .*special cases 18 of 18"
done
says '^acme.more f32: ok: .*special cases 324 of 324'
says '^measuring acme.more f32, \[#*\.*\] [0-9]+ of [0-9]+$'
says '^acme.either f64: ok: .*; 205832 points, 0 beyond'
says '^acme.bits: f32 is not measured: it looks at bits'
# numbers are what they stand for: pi / 4, and a tenth
says '^acme.quarter f32: ok: declared 1.5, worst 0\.[6-9]'
says '^acme.tenth f64: ok: declared 1.5, worst 0\.[6-9]'
# a derivative that the spec gives is held to differences of the body, and so are derived ones; not at kinks
says '^acme.given_backward: by x: ok: as differences of acme.given have it, at [0-9]{4} points'
says '^acme.kinks_backward: by x: ok: '
says '^acme.mixed_backward: by x: ok: '
says '^acme.mixed_backward: by y: ok: '
says '^acme.steps_backward: by x: ok: '

# What does not hold: one of three each day.
if in_part 0 3; then
# one that does not hold, one that is a little too small, none, which is that of exact results, and those of several outputs
measure 1 'bounds that do not hold' <<'END'
unary "acme.log1p" { doc = "d", dtypes = { "f32" }, body = "log(1 + x)", ulp = { f32 = 2 },
  examples = { { x = 0.0, y = 0.0 } } }
unary "acme.third" { doc = "d", dtypes = { "f32" }, body = "x * 0.1 * 10.1", ulp = { f32 = 0.7 },
  examples = { { x = 0.0, y = 0.0 } } }
unary "acme.sin" { doc = "d", dtypes = { "f32" }, body = "sin(x)",
  examples = { { x = 0.0, y = 0.0 } } }
op "acme.split" { doc = "d", inputs = "x", outputs = "whole, rest, i32 n", dtypes = { "f32" },
  body = "whole = trunc(x); rest = (x + 1) - whole - 1; n = (i32)x;",
  examples = { { x = 1.5, whole = 1.0, rest = 0.5, n = 1 } } }
END
says '^acme.log1p f32: NOT within its bound: declared 2, worst '
says '^acme.third f32: it would have to declare [0-9.]+$'
says '^acme.sin f32: NOT within its bound: declared 0.5, worst 0\.[5-9]'
says '^acme.split.whole f32: ok: .*special cases 18 of 18'
says '^acme.split.rest f32: NOT within its bound'
says '^acme.split.n: f32 is not measured: it computes with integers'

fi
if in_part 1 3; then
# inf * 0: the body overflows on the way where its value does not
measure 1 'a special case that is not what the body means' <<'END'
unary "acme.ratio" { doc = "d", dtypes = { "f32" }, body = "(x * x) / (1 + x * x)", ulp = { f32 = 4 },
  examples = { { x = 1.0, y = 0.5 } } }
END
says '^acme.ratio f32: 3.40[0-9e+]+ \(0x7f7fffff\) gives nan .*, and is 1 \(0x3f800000\)'

fi
if in_part 2 3; then
measure 1 'a derivative that is another' <<'END'
unary "acme.wrong" { doc = "d", dtypes = { "f64" }, body = "sin(x)", ulp = { f64 = 1 }, grad = "grad * cos(x) * 1.0001",
  grad_ulp = { f64 = 4 }, examples = { { x = 0.0, y = 0.0 } } }
binary "acme.lopsided" { doc = "d", dtypes = { "f64" }, body = "x * y", grad = { x = "grad * y", y = "x > 0 ? grad * x : 0" },
  examples = { { x = 1.0, y = 1.0, out = 1.0 } } }
END
says '^acme.wrong_backward: by x: NOT the derivative of acme.wrong: at [-0-9.e]+ it is .*, and differences give '
says '^acme.lopsided_backward: by x: ok: '
says '^acme.lopsided_backward: by y: NOT the derivative of acme.lopsided: at -'

fi

# Each function with a known exact value, by its name, a 16th each day; sums of powers where they are more than the larger
# operand.
{
  SOURCE=$source LUA_PATH="$source/?.lua;;" lua5.4 -e '
    local main, measure, order = require "gen.main", require "gen.tools.measure", require "gen.base.order"
    local model = main.load(os.getenv "SOURCE", {})
    local sums, pair = "abs(x), abs(y)", "x, y"
    local arguments = { pow = pair, atan2 = pair, hypot = pair, logaddexp = sums, logaddexp2 = sums, floor_divide = pair,
                        trunc_divide = pair, remainder = pair }
    for _, name in ipairs(order.keys(measure.exact(model))) do
      print(string.format("op \"acme.my_%s\" { doc = \"d\", inputs = \"x, y\", dtypes = { \"f64\" }, body = \"%s(%s)\", "
        .. "ulp = { f64 = 1 }, examples = { { x = 1.0, y = 1.0, out = 1.0 } } }", name, name, arguments[name] or "x"))
    end'
} | sed 's/, examples = .* }/ }/' >every.lua
[ "$(grep -c '^op ' every.lua)" -ge 32 ]; ok $? "$(grep -c '^op ' every.lua) functions have exact values"
number=0
while read -r line; do
  number=$((number + 1))
  ! in_part $number 16 >>day || echo "$line"
done <every.lua >all.lua
cat day 2>/dev/null; rm -f day every.lua
measure 0 'functions' <all.lua
functions=$(grep -c '^op ' all.lua)
[ "$(grep -c '^acme.my_.* f64: ok' said)" = "$functions" ] && [ "$functions" -ge 2 ]
ok $? "  each of $functions is within 1 ULP"

cp all.lua spec.lua
CC=false lua5.4 "$source/build.lua" check --measure spec.lua >said 2>&1
[ $? = 1 ]
ok $? 'without a compiler'
says '^false cannot build the program that measures'
[ "$(ls)" = "$(printf 'all.lua\nsaid\nspec.lua')" ]
ok $? 'nothing is left behind'
done_testing
