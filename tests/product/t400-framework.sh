#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t400-framework.sh: a generated tree in someone else's project: examples/framework by CMake, by sources.txt, as a single
# file; GCC and Clang without a warning; the header in C99 and C++17; the same bits however it is compiled; two trees and
# the library in one process.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t400.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
framework=$source/examples/framework
strict='-Wall -Wextra -Wshadow -Wcast-qual -Wconversion -Werror'

generate() { lua5.4 "$source/build.lua" generate "$@"; }
compilers=
for compiler in gcc clang-19; do
  if command -v $compiler >/dev/null; then compilers="$compilers $compiler"; else echo "# no $compiler here"; fi
done

# ---- by CMake, as the example does; kept in the build folder, so that a second run compiles nothing
launcher= # optimised, and by the machine's compiler, in full only; examples/demo is so in every build
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || launcher="sh;$source/tests/support/unoptimised.sh"
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || export CC="$quick_cc" CXX="$quick_cxx"
try 'the example configures and generates' cmake -S "$framework" -B "$build/framework" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DQUERN_BUILD_LUA="$source/build.lua" \
  -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
try '  builds' cmake --build "$build/framework"
unset CC CXX
try '  and all of its checks pass' runs "$build/framework/pebble-try"
nm -D --defined-only "$build/framework/pebble-try" 2>/dev/null | awk '{ print $3 }' >"$said"
! grep -qE '^(quern|qn|qk)_' "$said"; ok $? '  without a name of the library in it'

# ---- by sources.txt alone
cp -R "$build/framework/kernels" "$work/tree"
turn=0
for compiler in $compilers; do # one a day, which optimises one level
  one=
  for level in v2 v3 v4; do
    turn=$((turn + 1))
    ! in_part $turn 6 || one="$one $level"
  done
  [ -n "$one" ] || continue
  by_level=$compiler
  try "$compiler: sources.txt, C11, no warning" env QUERN_TREE_O1="core$one" sh "$source/tests/support/build-tree.sh" "$compiler" "$work/tree" "$work/$compiler" -std=c11 -O0 $strict
  try '  links with the example' $compiler -std=c11 $strict -I"$work/tree" -o "$work/$compiler/try" "$framework/framework.c" "$framework/array.c" \
    "$framework/pool.c" "$work/$compiler"/*.o -lpthread -lm
  try '  its checks pass' runs "$work/$compiler/try"
done

# ---- as a single file; not optimised here, which takes long, but by one of the compilers each day below
try 'a single file' generate --single --prefix pebble --spec "$framework/pebble.lua" --out "$work/single" \
  --ops add,multiply,gelu,leaky_relu,clip,less,where,astype,pebble.mish --dtypes bool,u8,i32,f16,f32,f64
for compiler in $compilers; do
  try "$compiler: compiles" $compiler -std=gnu11 -O0 $strict -I"$work/single" -c -o "$work/single/$compiler.o" "$work/single/pebble.c"
  try '  links in one command' $compiler -std=gnu11 -O0 $strict -I"$work/single" -o "$work/single/try-$compiler" \
    "$work/single/$compiler.o" "$framework/framework.c" "$framework/array.c" "$framework/pool.c" -lpthread -lm
  try '  the checks pass' runs "$work/single/try-$compiler"
done

# ---- the header
echo '#include "pebble.h"
#include "pebble.h"
int main(void) { return pebble_version() >> 24 ? 1 : 0; }' >"$work/header.c"
for compiler in $compilers; do
  for standard in c99 c11 c17; do
    try "$compiler: the header as $standard" $compiler -std=$standard -pedantic-errors $strict -fsyntax-only -I"$work/tree" "$work/header.c"
  done
done
for compiler in g++ clang++-19; do
  command -v $compiler >/dev/null || continue
  casts=-Wold-style-cast
  [ $compiler != g++ ] || casts="$casts -Wuseless-cast"
  for standard in c++17 c++20; do
    try "$compiler: the header as $standard" $compiler -x c++ -std=$standard -pedantic-errors $strict $casts -fsyntax-only -I"$work/tree" "$work/header.c"
  done
done

# ---- the same bits from every way of compiling it
cat >"$work/bits.c" <<'C'
#include <stdio.h>
#include <string.h>
#include "pebble.h"
enum { N = 20000 };
static float x[N], y[N];
static uint64_t hash = 0xcbf29ce484222325u;
static void eat(const float *p) {
  for (size_t i = 0; i < sizeof x; i++) hash = (hash ^ ((const unsigned char *)p)[i]) * 0x100000001b3u;
}
int main(void) {
  int64_t n = N;
  uint32_t state = 1;
  for (int i = 0; i < N; i++) {
    state = state * 1664525u + 1013904223u;
    const uint32_t special[] = {0, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u, 1, 0x807fffffu, 0x7f7fffffu};
    uint32_t bits = i < 9 ? special[i] : i % 4 ? state : (state & 0x83ffffffu) | 0x3c000000u;
    memcpy(&x[i], &bits, 4);
  }
  DLTensor a = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, b = a;
  b.data = y;
  if (pebble_gelu(&a, &b, NULL)) return 1;
  eat(y);
  if (pebble_mish(&a, &b, NULL)) return 1;
  eat(y);
  if (pebble_multiply(&a, &b, &b, NULL)) return 1;
  eat(y);
  if (pebble_leaky_relu(&a, &b, NULL)) return 1;
  eat(y);
  printf("%016llx\n", (unsigned long long)hash);
  return 0;
}
C
: >"$work/hashes"
bits() { # bits NAME COMMAND...: compiles and runs
  name=$1
  shift
  "$@" -o "$work/bits" >"$said" 2>&1 && "$work/bits" >"$work/hash" 2>>"$said" && echo "$(cat "$work/hash") $name" >>"$work/hashes"
  ok $? "bits: $name"
}
turn=0
for compiler in $compilers; do
  turn=$((turn + 1))
  [ ! -d "$work/$compiler" ] || bits "$compiler by level" $compiler -I"$work/tree" "$work/bits.c" "$work/$compiler"/*.o -lpthread
  ! in_part $turn 6 ||
    bits "$compiler -O3 -march=native -std=gnu11" $compiler -O3 -march=native -std=gnu11 -I"$work/single" "$work/bits.c" "$work/single/pebble.c" -lpthread
  bits "$compiler -O0" $compiler -O0 -std=gnu11 -I"$work/single" "$work/bits.c" "$work/single/$compiler.o" -lpthread
done
for isa in v2 v3; do # the last one compiled by level, held down
  "$work/$by_level/try" >/dev/null 2>&1 # warm
  $by_level -I"$work/tree" "$work/bits.c" "$work/$by_level"/*.o -lpthread -o "$work/bits" && PEBBLE_ISA=$isa "$work/bits" >"$work/hash" &&
    echo "$(cat "$work/hash") $by_level held to $isa" >>"$work/hashes"
  ok $? "bits: held to $isa"
done
cp "$work/hashes" "$said"
[ "$(cut -d' ' -f1 "$work/hashes" | sort -u | wc -l)" = 1 ]; ok $? 'all of them are the same'

# ---- a stranger's flags that would change results are refused by the text itself
! gcc -Ofast -std=gnu11 -c -o "$work/fast.o" -I"$work/single" "$work/single/pebble.c" >"$said" 2>&1 && grep -q '#error\|error:' "$said"
ok $? '-Ofast is refused'

# ---- two trees and the library in one process
for prefix in one two; do
  generate --single --prefix $prefix --ops add,gelu --dtypes f32 --out "$work/$prefix" >"$said" 2>&1
  ok $? "a tree under the prefix $prefix"
done
cat >"$work/both.c" <<'C'
#include <quern/quern.h>
#include <quern/ops.h>
#include "one.h"
#include "two.h"
#include <string.h>
int main(void) {
  float x[1000], a[1000], b[1000], c[1000];
  int64_t n = 1000;
  for (int i = 0; i < 1000; i++) x[i] = (float)(i - 500) * 0.01f;
  DLTensor in = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, o = in, t = in, q = in;
  o.data = a, t.data = b, q.data = c;
  const quern_options few = {.size = sizeof few, .threads = 1};
  if (quern_ctx_configure_default(&few) != 0) return 1;
  if (one_ctx_configure_default(NULL) != 0) return 2; /* each has a default of its own */
  if (one_gelu(&in, &o, NULL) != 0 || two_gelu(&in, &t, NULL) != 0 || quern_gelu(&in, &q, NULL) != 0) return 3;
  if (memcmp(a, b, sizeof a) != 0 || memcmp(a, c, sizeof a) != 0) return 4;
  t.ndim = -1;
  if (two_gelu(&in, &t, NULL) == 0 || one_last_error()[0] != 0 || quern_last_error()[0] != 0 || two_last_error()[0] == 0) return 5;
  return 0;
}
C
if [ -e "$build/libquern.so" ]; then
  try 'they compile together with the library' $quick_cc -std=gnu11 -O0 $strict -I"$source/include" -I"$build/generated" -I"$work/one" -I"$work/two" -o "$work/both" \
    "$work/both.c" "$work/one/one.c" "$work/two/two.c" -L"$build" -lquern -Wl,-rpath,"$build" -lpthread
  try '  live together, give the same bits, and keep their errors apart' "$work/both"
else
  skip 'the library beside two trees' 'it is not built here'
fi

done_testing
