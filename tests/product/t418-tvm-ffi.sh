#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t418-tvm-ffi.sh: `generate --abi tvm-ffi`: ops as functions of tvm-ffi. A C caller that makes the values by hand, under AddressSanitizer
# and UndefinedBehaviorSanitizer, with a libtvm_ffi of its own and with none; a tree by CMake, the library's module, and, where Python
# has apache-tvm-ffi, calls on NumPy's arrays and PyTorch's tensors, errors as Python's, docstrings, metadata, and Quern's declarations
# against the real headers. Without the option a tree has no line of it. QUERN_TEST_TVM_FFI: that Python, else QUERN_TEST_PYTHON, or python3;
# in full one with the package from an index, if one can be reached.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t418.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
strict='-Wall -Wextra -Wcast-qual -Wconversion -Werror'
sanitized='-fsanitize=address,undefined -fno-sanitize-recover=all -g'
generate() { lua5.4 "$source/build.lua" generate "$@"; }
echo 'unary "acme.swish" { doc = "x times its logistic: \"SiLU\".", dtypes = floating, body = [[ x / (1 + exp(-x)) ]] }
unary "acme.named" { doc = "Names say nothing.", dtypes = floating, params = { axes = -1, keepdims = 0 }, body = [[ x * axes + keepdims ]] }' >"$work/mine.lua"
functions() { nm -D --defined-only "$1" | awk '$3 ~ /^__tvm_ffi_/ { print $3 }' | sort; } # those that tvm-ffi finds
expected() { for op; do printf '%s\n' "__tvm_ffi_$op" "__tvm_ffi__doc_$op" "__tvm_ffi__metadata_$op"; done | sort; }

# ---- a single file, called from C
ops=add,arange,astype,clip,divmod,ldexp,multiply,nonzero,sum,where
dtypes=bool,i32,i64,f16,bf16,f32,f64
try 'a single file' generate --single --abi tvm-ffi --prefix acme --spec "$work/mine.lua" --ops $ops --dtypes $dtypes --out "$work/single"
try '  compiles' gcc -std=gnu11 -O0 $strict $sanitized -fPIC -shared -fvisibility=hidden -o "$work/acme.so" "$work/single/acme.c" -lpthread
functions "$work/acme.so" >"$work/there"
expected acme_named acme_swish $(echo $ops | tr , ' ') | diff - "$work/there" >"$said"; ok $? '  has three functions of each op'
caller() { # caller NAME FLAG...
  name=$1
  shift
  gcc -std=gnu11 -O1 -Wall -Wextra -Werror $sanitized "$@" -I"$source/runtime" -I"$source/include" -I"$source/tests/support" -I"$work/single" \
    -o "$work/$name" "$source/tests/product/t418-tvm-ffi.c" "$source/tests/support/tap.c" "$work/acme.so" -lpthread -lm
}
try 'a caller that is libtvm_ffi itself' caller library -DAS_LIBRARY -rdynamic
try '  all checks pass' runs "$work/library"
try 'one without it' caller alone
try '  all checks pass' runs "$work/alone"

# no memory for the ops themselves
cat >"$work/lacking.c" <<'C'
#include <stdlib.h>
#include <string.h>
#include "abi/tvm_ffi_abi.h"
#include "acme.h"
extern qn_tvm_function __tvm_ffi_add, __tvm_ffi__doc_add, __tvm_ffi__metadata_add;
static int is_refused = 1;
void *asked(size_t size) { return is_refused ? NULL : malloc(size); }
int main(void) {
  qn_tvm_any result = {0}, none[3] = {{0}};
  qn_tvm_function *const all[] = {__tvm_ffi_add, __tvm_ffi__doc_add, __tvm_ffi__metadata_add};
  for (int k = 0; k < 3; k++)
    if (all[k](NULL, none, 3, &result) != -1 || !strstr(acme_last_error(), "out of memory")) return 1 + k;
  is_refused = 0;
  return all[0](NULL, none, 3, &result) != -1 || strncmp(acme_last_error(), "add: input 1", 12) ? 9 : 0;
}
C
try 'one without memory' gcc -std=gnu11 -O0 -w -I"$source/runtime" -I"$source/include" -I"$work/single" -Dmalloc=asked -c -o "$work/acme.o" "$work/single/acme.c"
try '  built' gcc -std=gnu11 -O0 -I"$source/runtime" -I"$source/include" -I"$work/single" -o "$work/lacking" "$work/lacking.c" "$work/acme.o" -lpthread -lm
try '  is told so' "$work/lacking"

# ---- a tree, by CMake, and by sources.txt
try 'a tree' generate --abi tvm-ffi --prefix acme --spec "$work/mine.lua" --ops add --dtypes f32 --out "$work/tree"
for compiler in gcc clang-19; do
  command -v $compiler >/dev/null || continue
  sed -n 's/^abi //p' "$work/tree/sources.txt" | while read -r file; do
    $compiler -std=c11 -O1 $strict -Wshadow -fPIC -I"$work/tree" -c -o "$work/$(basename "$file").o" "$work/tree/$file" || exit 1
  done >"$said" 2>&1
  ok $? "  $compiler compiles what sources.txt has of it, without a warning"
done
! nm -u "$work"/acme_tvm_ffi*.o | grep ' TVMFFI' >"$said"; ok $? '  nothing of libtvm_ffi is linked'
try '  CMake configures it' cmake -S "$work/tree" -B "$work/built" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER_LAUNCHER="sh;$source/tests/support/unoptimised.sh"
try '  and builds it' cmake --build "$work/built"
functions "$work/built/acme_tvm_ffi.so" >"$work/there"
expected acme_named acme_swish add | diff - "$work/there" >"$said"; ok $? '  a module with the functions of each op'
try 'the tree without it' generate --prefix acme --spec "$work/mine.lua" --ops add --dtypes f32 --out "$work/plain"
! grep -rqi 'tvm' "$work/plain" --exclude='*.d'; ok $? '  has no line of it'
diff -rq "$work/plain" "$work/tree" | grep -v 'CMakeLists.txt\|sources.txt\|FILES.md\|manifest.json\|acme.d ' >"$said"
[ "$(cat "$said")" = "Only in $work/tree: abi" ]; ok $? '  and is the same otherwise'
refused 'another ABI' "'cffi', expected tvm-ffi" generate --abi cffi --out "$work/o"
refused '--kernels-only' 'not with --kernels-only' generate --abi tvm-ffi --kernels-only --out "$work/o"

# ---- the library's
module=$build/libquern-tvm-ffi.so
if [ -e "$module" ] && ! nm -D "$module" | grep -q '__asan_\|__tsan_\|__ubsan_'; then
  nm -D --defined-only "$module" | awk '{ print $3 }' | sort >"$work/all"
  functions "$module" | diff - "$work/all" >"$said"; ok $? "the library's module: $(wc -l <"$work/all") functions, nothing else"
  sed -n 's/^QUERN_API quern_op \*quern_builtin_\([a-z0-9_]*\)(.*/\1/p' "$build/generated/quern/ops.h" >"$work/ops"
  expected $(cat "$work/ops") | diff - "$work/all" >"$said"; ok $? '  those of every op'
  readelf -d "$module" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libquern\.so\.0$\|^libc\.so\.\|^libpthread\.so\.\|^ld-linux' >"$said"
  [ ! -s "$said" ]; ok $? '  it needs the library and libc only'
else
  skip "the library's module" 'none in this build, or one with a sanitizer'
  module=
fi

# ---- from Python
python=${QUERN_TEST_TVM_FFI:-${QUERN_TEST_PYTHON:-python3}}
has_tvm_ffi() { "$python" -c 'import numpy, tvm_ffi' 2>"$said"; }
if ! has_tvm_ffi && [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ]; then # a virtual environment, which stays in the build folder
  peer=$build/python-peers/tvm-ffi
  if [ -x "$peer/bin/pip" ] || python3 -m venv --clear "$peer" 2>/dev/null; then
    timeout 300 "$peer/bin/pip" install -q --only-binary :all: numpy apache-tvm-ffi >"$said" 2>&1 && python=$peer/bin/python
  fi
fi
if ! has_tvm_ffi; then
  skip 'calls from Python' "$python: $(tail -1 "$said") (QUERN_TEST_TVM_FFI names a Python with NumPy and apache-tvm-ffi)"
else
  include=$("$python" -c 'import tvm_ffi; print(tvm_ffi.libinfo.find_include_path())')
  try "its headers have what Quern declares" cc -std=c11 -Wall -Wextra -Werror -fsyntax-only -I"$source/runtime" -I"$source/include" -isystem "$include" \
    -isystem "$("$python" -c 'import tvm_ffi; print(tvm_ffi.libinfo.find_dlpack_include_path())')" "$source/tests/support/exchange/tvm_ffi_headers.c"
  try 'a tree for Python' generate --single --abi tvm-ffi --prefix acme --spec "$work/mine.lua" --ops $ops --dtypes $dtypes --out "$work/python"
  try '  compiles' gcc -std=gnu11 -O1 -fPIC -shared -fvisibility=hidden -o "$work/python/acme.so" "$work/python/acme.c" -lpthread
  for library in "$work/python/acme.so" $module; do
    PYTHONPATH=$source/tests/support "$python" "$source/tests/support/exchange/tvm_ffi_calls.py" "$library" >"$said" 2>&1 && ! grep -q '^not ok' "$said"
    ok $? "calls of $(basename "$library") from Python: $(grep -c '^ok ' "$said") checks, $(grep -o 'SKIP.*' "$said")"
  done
fi

done_testing
