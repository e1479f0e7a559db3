#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t755-cuda-tree.sh: a generated tree with kernels for CUDA, called on tensors of a device through its public functions: with C
# kernels, which have to give the same bits, and without. Its CUDA text and its launcher are compiled for the CPU, with a fake of
# CUDA's runtime. Where nvcc is (QUERN_CUDA_PATH, else /usr/local/cuda), it compiles and links the same tree, every third day.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t750.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
said=$work/said
strict='-Wall -Wextra -Werror'
command -v c++ >/dev/null || skip_all 'no c++ on this machine'

ops='--ops add,gelu,less,leaky_relu,where,astype,full,copy,arange,linspace,sum,softmax,logsumexp --dtypes bool,i32,f16,f32'
# A user's scans with states.
cat >"$work/scans.lua" <<'LUA'
scan "acme.first_max" { doc = "The largest element so far, and its place.", dtypes = numeric, outputs = "values, i64 indices",
  initial = { values = -INFINITY, indices = -1 }, state = "T v, i64 i", lift = "v = x; i = index;",
  combine = "take = b.v > a.v; v = take ? b.v : a.v; i = take ? b.i : a.i;", finish = "values = a.v; indices = a.i;" }
scan "acme.norm" { doc = "Norms.", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)", initial = 0.5 }
adjoint "acme.norm_backward" { doc = "The derivative.", of = "acme.norm", inputs = "grad, x", reads = "out", dtypes = floating,
  lift = "out == 0 ? 0 : grad / out", combine = "a + b", finish = "x * a" }
LUA
generate() { lua5.4 "$source/build.lua" generate --prefix mine $ops "$@"; }
files() { sed -n "s/^$2 //p" "$work/$1/sources.txt" | sed "s|^|$work/$1/|"; }
compile() { # compile TREE SUFFIX COMMAND... : the files on standard input, one by one, to objects beside them, where there are none
  tree=$1 suffix=$2
  shift 2
  while read -r file; do [ -f "$file$suffix" ] || "$@" -I"$work/$tree" -c -o "$file$suffix" "$file" || return 1; done
}
for file in tap.c cuda/fake_runtime.c; do
  try "tests/support/$file" cc -std=gnu11 -O1 $strict -I"$source/tests/support/cuda" -c -o "$work/$(basename $file).o" "$source/tests/support/$file"
done

core() { files "$1" core | compile "$1" .o "$quick_cc" -std=c11 -O0 $strict $2; }
kernels() { files "$1" kernel | compile "$1" .o "$quick_cc" -std=gnu11 -O0 $strict; }
cuda_core() { files "$1" cuda_core | compile "$1" .o "$quick_cc" -std=c11 -O0 $strict -I"$source/tests/support/cuda"; }
cuda() { # not optimised: that takes long
  files "$1" cuda | compile "$1" .o "$quick_cxx" -x c++ -std=c++17 -DQC_HOST -I"$source/tests/support/cuda" -O0 -ffp-contract=off \
    $strict -Wno-unknown-pragmas -Wno-tautological-compare -Wno-type-limits
}
check() { # check TREE FLAGS OBJECTS-OF...
  tree=$1 flags=$2
  shift 2
  try '  CUDA kernels for the CPU' cuda "$tree"
  try '  what launches them' cuda_core "$tree"
  objects=$(for kind in "$@"; do files "$tree" $kind | sed 's|$|.o|'; done)
  try '  linked' cc -std=gnu11 -O1 $strict $flags -rdynamic -I"$work/$tree" -I"$source/tests/support/cuda" -o "$work/$tree/try" \
    "$source/tests/support/cuda/tree_driver.c" "$work/tap.c.o" "$work/fake_runtime.c.o" $objects -lpthread -lstdc++ -lm
  try '  all checks pass' runs "$work/$tree/try"
}

abi() { files "$1" abi | compile "$1" .o cc -std=c11 -O0 $strict; }
plain=$ops
ops=$(echo "$ops" | sed 's/logsumexp/&,acme.first_max,acme.norm,acme.norm_backward/')
try 'a tree with C and CUDA kernels, of scans with states, too, and functions for tvm-ffi' generate --spec "$work/scans.lua" --target c,cuda --abi tvm-ffi --out "$work/both"
ops=$plain
try '  the core' core both -DMINE_QN_ONE_LEVEL
try '  C kernels' kernels both
try '  the functions' abi both
check both '-DWITH_TVM_FFI -DWITH_SCANS' core kernel cuda cuda_core abi
ops=$(echo "$ops" | sed 's/logsumexp/&,acme.first_max,acme.norm,acme.norm_backward/')
try 'a tree with CUDA kernels alone' generate --spec "$work/scans.lua" --target cuda --out "$work/alone"
ops=$plain
[ -z "$(files alone kernel)" ] && ! ls "$work"/alone/kernels/*.c "$work"/alone/kernels/*.h >"$said" 2>&1
ok $? '  has no C kernels'
! files alone core | grep '_cpu\.c$\|_job\.c$\|_engine\.c$' >"$said"; ok $? '  nothing that runs them either'
try '  the core' core alone ''
same_cuda() { # of one text one object
  files alone cuda | while read -r file; do
    cmp "$file" "$work/both/${file#"$work/alone/"}" && cp "$work/both/${file#"$work/alone/"}.o" "$file.o" || return 1
  done
}
try '  its CUDA kernels are those of the tree with both' same_cuda
check alone '-DONLY_CUDA -DWITH_SCANS' core cuda cuda_core
try 'a tree with one scan for CUDA alone' lua5.4 "$source/build.lua" generate --prefix mine --ops cumulative_sum --dtypes f32 --target cuda --out "$work/sums"
cat >"$work/sums.c" <<'C'
#include "mine.h"
int main(void) {
  static float ones[1000], sums[1000];
  int64_t n = 1000;
  DLTensor x = {ones, {kDLCUDA, 0}, 1, {kDLFloat, 32, 1}, &n, NULL, 0}, y = x;
  y.data = sums;
  for (int i = 0; i < 1000; i++) ones[i] = 1;
  if (mine_cumulative_sum(&x, &y, NULL)) return 1;
  for (int i = 0; i < 1000; i++)
    if (sums[i] != (float)(i + 1)) return 2;
  x.device = y.device = (DLDevice){kDLCPU, 0};
  return mine_cumulative_sum(&x, &y, NULL) != MINE_E_DEVICE;
}
C
try '  the core' core sums ''
try '  CUDA kernels for the CPU' cuda sums
try '  what launches them' cuda_core sums
objects=$({ files sums core; files sums cuda; files sums cuda_core; } | sed 's|$|.o|')
try '  linked' cc -std=gnu11 -O1 $strict -rdynamic -I"$work/sums" -o "$work/sums/try" "$work/sums.c" "$work/fake_runtime.c.o" "$work/tap.c.o" $objects \
  -lpthread -lstdc++ -lm
try '  sums on a device, refuses on the CPU' "$work/sums/try"
try 'a tree without CUDA' generate --target c --out "$work/c"
! grep -rq 'cuda_tree\|mine_qc_' "$work/c"; ok $? '  has nothing of it'

nvcc=
for folder in "${QUERN_CUDA_PATH-}" /usr/local/cuda; do
  [ -n "$nvcc" ] || [ ! -x "$folder/bin/nvcc" ] || nvcc=$folder/bin/nvcc
done
if [ -z "$nvcc" ]; then
  skip 'nvcc' 'no nvcc on this machine (QUERN_CUDA_PATH says where CUDA is)'
elif ! in_part 1 3; then
  skip 'nvcc' 'of another day'
else
  try 'a small tree' generate --target c,cuda --ops add,where --dtypes bool,f32 --out "$work/small"
  built() { { files small cuda; files small cuda_core; } | compile small .nv.o "$nvcc"; }
  try '  nvcc compiles its CUDA part' built
  try '  and its core' core small -DMINE_QN_ONE_LEVEL
  try '  and its kernels' kernels small
  printf '%s\n' '#include "mine.h"' 'int main(void) { mine_op *op; return mine_op_find(0, "add", &op); }' >"$work/main.c"
  objects=$({ files small core; files small kernel; } | sed 's|$|.o|')
  objects="$objects $({ files small cuda; files small cuda_core; } | sed 's|$|.nv.o|')"
  try '  and links them into a program' "$nvcc" -I"$work/small" -o "$work/program" "$work/main.c" $objects
  try '  that runs' "$work/program"
fi

done_testing
