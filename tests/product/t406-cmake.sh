#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t406-cmake.sh: Quern in CMake projects: quern_generate and quern_freeze of the installed package, a spec that is edited, two frozen
# folders in one program; the sources as a part of another project.
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/../support/tap.sh"
: "${QUERN_BUILD_DIR:?the folder of libquern.so}" "${QUERN_SOURCE_DIR:?the repository}"
build=$(cd "$QUERN_BUILD_DIR" && pwd)
source=$(cd "$QUERN_SOURCE_DIR" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t406.XXXXXX") || bail 'no temporary folder'
trap 'rm -rf "$work"' EXIT
cd "$work" || bail "no $work"
echo 'TAP version 13'
skip_sanitised "$build/libquern.so"
cmake --install "$build" --prefix "$work/installed" >said 2>&1 || bail 'it is not installed'

# ---- The installed package
CC=$quick_cc
export CC
mkdir project
cat >project/ops.lua <<'END'
op "acme.blend" { doc = "The mean of x and y.", inputs = "x, y", dtypes = floating, body = "(x + y) / 2" }
END
cat >project/lone.lua <<'END'
unary "lone.alone" { doc = "x + 1.", dtypes = floating, body = "x + 1" }
END
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(uses C)
find_package(Quern REQUIRED)
quern_generate(TARGET acme OPS add clip sum DTYPES f32 SPECS ops.lua)
quern_generate(TARGET lone DTYPES f32 SPECS lone.lua)
quern_generate(TARGET pure PREFIX bare OPS multiply DTYPES f32 KERNELS_ONLY)
quern_freeze(TARGET first SCAN first.c DTYPES f32)
quern_freeze(TARGET second SCAN second.c DTYPES f32)
add_executable(own own.c)
target_link_libraries(own PRIVATE acme pure)
add_executable(fused first.c second.c)
target_link_libraries(fused PRIVATE first second Quern::quern)
END
cat >project/own.c <<'END'
#include <acme.h>
#include <bare.h>
#include <stdio.h>
int main(void) {
  float x[3] = {1, 2, 3}, y[3] = {3, 4, 5}, z[3];
  int64_t n = 3;
  const DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  const DLTensor tz = {z, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  if (acme_blend(&tx, &ty, &tz, NULL) != 0) return puts(acme_last_error()), 1;
  printf("%g %d\n", z[2], bare_n_kernels > 0);
  return 0;
}
END
cat >project/first.c <<'END'
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>
quern_status second(const DLTensor *x, const DLTensor *y, char *text, size_t size);
static quern_status explain(const char *expression, const DLTensor *x, const DLTensor *y, char *text, size_t size) {
  quern_op *op = NULL;
  DLTensor in = *x, out = *y, *ins[1] = {&in}, *outs[1] = {&out};
  const quern_status status = quern_op_compile(NULL, expression, &op);
  if (status != 0) return status;
  if (quern_op_call(op, 1, ins, 1, outs, NULL) != 0) return -1;
  quern_op_explain(op, 1, ins, 1, outs, NULL, text, size);
  quern_op_release(op);
  return 0;
}
int main(void) {
  float x[3] = {1, 2, 3}, y[3];
  int64_t n = 3;
  char text[2][2000];
  const DLTensor tx = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, ty = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0};
  if (explain(QUERN_KERNEL(twice_and_one, y = 2 * x + 1), &tx, &ty, text[0], sizeof text[0]) != 0) return 1;
  if (second(&tx, &ty, text[1], sizeof text[1]) != 0) return 2;
  printf("%d %d %g\n", strstr(text[0], "interpreter") == NULL, strstr(text[1], "interpreter") == NULL, y[2]);
  return 0;
}
END
cat >project/second.c <<'END'
#include <quern/quern.h>
quern_status second(const DLTensor *x, const DLTensor *y, char *text, size_t size);
quern_status second(const DLTensor *x, const DLTensor *y, char *text, size_t size) {
  quern_op *op = NULL;
  DLTensor in = *x, out = *y, *ins[1] = {&in}, *outs[1] = {&out};
  const quern_status status = quern_op_compile(NULL, QUERN_KERNEL(cube_less_one, y = x * x * x - 1), &op);
  if (status != 0) return status;
  if (quern_op_call(op, 1, ins, 1, outs, NULL) != 0) return -1;
  quern_op_explain(op, 1, ins, 1, outs, NULL, text, size);
  quern_op_release(op);
  return 0;
}
END
try 'a project generates two trees and freezes two sources' cmake -S project -B built -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
[ "$(cd built/lone.quern/kernels && echo *_op_*)" = lone_op_alone_cpu.c ]; ok $? 'a spec without OPS has its own ops only'
try 'and is built' cmake --build built
[ "$(built/own 2>&1 | tee said)" = '4 1' ]; ok $? "its ops run"
[ "$(QUERN_JIT=off built/fused 2>&1 | tee said)" = '1 1 26' ]; ok $? 'both frozen folders serve it, without a compiler'
sleep 1
sed -i 's:/ 2":/ 4":' project/ops.lua
try 'a spec is edited' cmake --build built
[ "$(built/own 2>&1 | tee said)" = '2 1' ]; ok $? 'its op is generated again'
cmake --build built >said 2>&1 && grep -q 'no work to do' said; ok $? 'once'
mkdir both
printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(both C)' 'find_package(Quern REQUIRED)' 'include(both.cmake)' >both/CMakeLists.txt
echo 'quern_generate(TARGET both OPS gelu ALL_OPS)' >both/both.cmake
refused 'OPS and ALL_OPS together' 'OPS and ALL_OPS are given' cmake -S both -B both/built -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
if [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ]; then
  echo 'quern_generate(TARGET every ALL_OPS DTYPES f32 SPECS ../project/ops.lua KERNELS_ONLY)' >both/both.cmake
  try 'ALL_OPS beside a spec' cmake -S both -B both/built -G Ninja -DCMAKE_PREFIX_PATH="$work/installed"
  (cd both/built/every.quern && ls kernels/*_op_gelu_cpu.c kernels/*_blend_cpu.c) >said 2>&1; ok $? 'has them all'
fi
echo 'quern_generate(TARGET gone OPS gelo)' >>project/CMakeLists.txt
refused 'an unknown op is named, and the nearest one' gelu cmake --build built

# ---- The sources within a project
mkdir whole
cp project/ops.lua project/own.c whole/
cat >whole/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(whole C)
include(FetchContent)
set(QUERN_OPS add)
set(QUERN_LEVELS v2)
set(QUERN_WITH_CLANG OFF)
FetchContent_Declare(quern SOURCE_DIR "$source")
FetchContent_MakeAvailable(quern)
quern_generate(TARGET acme OPS add DTYPES f32 SPECS ops.lua)
quern_generate(TARGET bare OPS multiply DTYPES f32 KERNELS_ONLY)
add_executable(own own.c)
target_link_libraries(own PRIVATE acme bare)
add_executable(linked EXCLUDE_FROM_ALL linked.c)
target_link_libraries(linked PRIVATE Quern::quern-static)
END
cat >whole/linked.c <<'END'
#include <quern/ops.h>
#include <stdio.h>
int main(void) { return printf("%s\n", quern_op_describe(quern_builtin_add())->name) < 0; }
END
try 'FetchContent with the sources' cmake -S whole -B part -G Ninja -DCMAKE_BUILD_TYPE=Debug -DFETCHCONTENT_FULLY_DISCONNECTED=ON
try 'is built: a tree' cmake --build part
[ -z "$(find part -name 'libquern*' -o -name 'quern-gen.so' | tee said)" ]; ok $? 'not the library, which no target of it links'
[ "$(part/own 2>&1 | tee said)" = '2 1' ]; ok $? 'and runs'
if [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ]; then
  try 'a program of the static library is built' cmake --build part --target linked
  [ "$(part/linked 2>&1 | tee said)" = add ]; ok $? 'and runs'
else
  skip 'a program of the static library' 'the library is compiled once more for it: ./bootstrap.sh test full'
fi
done_testing
