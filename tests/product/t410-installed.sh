#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t410-installed.sh: what is installed works by itself: every subcommand of build.lua, and quern-gen, completions and man pages, from
# an installed prefix that was moved elsewhere, without the source tree. What it writes is what the source tree's generator writes.
# No run path of what is built or installed has an entry that is empty or relative: libraries of the working directory would be
# loaded.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
if [ ! -e "$build/libquern.so" ]; then
  skip_all 'the library is not built here'
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t410.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset QUERN_SOURCE_DIR QUERN_BUILD_DIR

try 'cmake --install with --prefix' cmake --install "$build" --prefix "$work/installed"
mv installed moved
# run_paths FOLDER: those of all programs and libraries below it, a line each: path, file. (Others' are in python-peers.)
run_paths() {
  find "$1" \( -name python-peers -o -name CMakeFiles \) -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print | while read -r file; do
    readelf -d "$file" 2>/dev/null | sed -n "s|.*R\(UN\)\{0,1\}PATH).*\[\(.*\)\]|\2 $file|p"
  done
}
is_open() { grep -E '^:|::|:( |$)|^ |(^|:)[^/$:]'; } # an empty entry, or one that is neither absolute nor of $ORIGIN
echo '/a::/b f' | is_open >said && echo '$ORIGIN/../:: f' | is_open >said && echo 'lib:/a f' | is_open >said && ! echo '$ORIGIN:/a f' | is_open >said
ok $? 'a run path that loads from the working directory is seen'
for place in "$build" moved; do
  run_paths "$place" >paths
  ! is_open <paths >said
  ok $? "none is in what is $([ $place = moved ] && echo installed || echo built): $(wc -l <paths) run paths"
done
[ ! -e "$build/libquern-tvm-ffi.so" ] || ls moved/lib*/libquern-tvm-ffi.so moved/lib/*/libquern-tvm-ffi.so 2>why | grep -q .
ok $? 'the ops for tvm-ffi are installed'
grep -q '/bin/quern$' paths && grep -q '/quern-gen.so$' paths; ok $? '  the program is among them, and the generator'
# Hardened: what is linked is bound at start-up and then read-only, stacks are guarded and never run, calls of libc with buffers are checked.
if ! grep -q '^CMAKE_BUILD_TYPE:STRING=Debug' "$build/CMakeCache.txt" && ! grep -q '^QUERN_SANITIZE:STRING=.' "$build/CMakeCache.txt"; then
  find moved \( -name 'libquern.so.0.1.0' -o -name 'quern-*.so' -o -path '*/bin/quern' \) -type f >hardened
  find "$build/python/quern" -name '_quern*.so' >>hardened
  [ "$(wc -l <hardened)" -ge 3 ]; ok $? 'binaries are found'
  while IFS= read -r file; do
    readelf -d "$file" | grep -q 'NOW' && readelf -lW "$file" | grep -q GNU_RELRO && ! readelf -lW "$file" | grep -q 'GNU_STACK.*RWE' &&
      readelf -sW --dyn-syms "$file" | grep -q __stack_chk_fail && readelf -sW --dyn-syms "$file" | grep -q '_chk@'
    ok $? "  $(basename "$file") is hardened"
  done <hardened
  # The frames of the runtime's functions: none is as large as a whole call may be (quern.h, Stack).
  find "$build/CMakeFiles" -path '*/runtime/*' -name '*.su' -exec cat {} + | awk -F'\t' '{ n++ } $2 > 8192 { print } END { print n }' >frames
  if [ "$(cat frames)" = '' ] || [ "$(tail -n 1 frames)" = 0 ]; then
    skip 'no function takes more than 8 KiB of the stack' 'the compiler does not say what they take'
  else
    [ "$(wc -l <frames)" = 1 ] && [ "$(cat frames)" -gt 500 ]; ok $? "none of $(tail -n 1 frames) functions takes more than 8 KiB of the stack"
  fi
  if [ "$(uname -m)" = x86_64 ]; then
    objdump -d --disassemble=quern_op_call "$(find moved -name libquern.so.0.1.0)" | grep -A1 '<quern_op_call>:' | grep -q endbr64
    ok $? '  and its functions are marked for indirect calls'
  fi
fi
[ -n "$(find moved -path '*doc*' -name LICENSE)" ]; ok $? 'the licence is installed'
generator=moved/share/quern
[ -e "$generator/build.lua" ]; ok $? 'the generator is there'
! grep -rlF "$source" "$generator" >said; ok $? '  without a path of the source tree'
ours() { lua5.4 "$work/$generator/build.lua" "$@"; }
theirs() { lua5.4 "$source/build.lua" "$@"; }
# same NAME ARGUMENT...: both write the same into a folder
same() {
  name=$1
  shift
  rm -rf one two
  ours "$@" --out one >said 2>why && theirs "$@" --out two >said 2>why
  ok $? "$name"
  rm -f one/*.d two/*.d
  [ -e one/manifest.json ] && diff -r one two >said 2>&1
  ok $? '  as from the source tree'
}

cat >mine.lua <<'END'
unary "acme.swish" { doc = "x times its logistic.", dtypes = floating, body = [[ x / (1 + exp(-x)) ]] }
END
cat >app.c <<'END'
QUERN_KERNEL(bias_relu, y = maximum(x + b, 0))
END
printf 'quern-record 1\nkernel qj_1\nx0 + x1\nf32,f32 > f32\n1d ccc\nspecs -\nend\n' >record

same 'generate, with a spec' generate --prefix acme --ops add,nonzero --dtypes f32 --spec mine.lua
[ -e one/kernels/acme_op_swish_cpu.c ]; ok $? "  has the spec's op"
try '  compiles' sh "$source/tests/support/build-tree.sh" "$quick_cc" one objects -std=c11 -O0
same 'generate --variants full' generate --variants full --rank 2 --prefix acme --ops negative --dtypes f32
same 'generate --single' generate --single --prefix acme --ops add --dtypes f32
same 'generate --no-threads --no-environment' generate --no-threads --no-environment --prefix acme --ops add --dtypes f32
same 'generate --abi tvm-ffi' generate --abi tvm-ffi --prefix acme --ops add --dtypes f32
same 'generate --kernels-only' generate --kernels-only --prefix acme --ops add,gelu --dtypes f16,f32
same 'generate --target cuda' generate --target cuda --prefix acme --ops add --dtypes f32
same 'generate --target c,cuda' generate --target c,cuda --prefix acme --ops add,gelu --dtypes f32
[ -e one/core/acme_cuda_tree.c ]; ok $? '  has what launches its kernels'
same 'generate --library' generate --library --target c,cuda --ops add --dtypes f32
same 'generate --scan' generate --scan app.c --dtypes f32
same 'freeze' freeze --record record --prefix frozen
try 'generate --report' ours generate --out reported --ops negative --dtypes f32 --report
grep -q '^negative ' said; ok $? '  reports'
try 'check' ours check mine.lua
echo 'unary "acme.sq" { doc = "x squared.", dtypes = { "f32" }, body = [[ x * x ]] }' >exact.lua
try 'check --measure' ours check --measure exact.lua
grep -q '^acme.sq f32: ok: ' said; ok $? '  measures'
for arguments in 'list' 'list --json' 'list --markdown' 'show negative' 'show qk_add_f32_f32_f32_2d_ccc' 'show qc_add_f32_f32_f32_2d_ccc'; do
  # (the words are split on purpose)
  ours $arguments >one.txt 2>why && theirs $arguments >two.txt 2>why && cmp one.txt two.txt >said 2>&1
  ok $? "$arguments"
done
try 'new' ours new acme.thing
[ -s acme_thing.lua ]; ok $? '  writes a spec'
try '  that passes check' ours check acme_thing.lua
commands=$(sed -n 's/^function commands\.\([a-z]*\)().*/\1/p' "$source/build.lua" | sort | tr '\n' ' ')
[ "$commands" = 'check freeze generate help list new show ' ]; ok $? 'these are all commands'

# ---- the programs by their names, with what shells and man know of them
if [ -x moved/bin/quern ]; then
  try 'quern-gen' moved/bin/quern-gen list
  ours list >one.txt; cmp one.txt said; ok $? '  is the generator'
  ln -s "$work/moved/bin/quern-gen" linked
  try '  by a link' ./linked help generate
  grep -q '^quern-gen generate' said; ok $? '  says its own name'
  try 'quern' moved/bin/quern version
  for name in quern quern-gen; do
    for file in man/man1/$name.1 bash-completion/completions/$name zsh/site-functions/_$name fish/vendor_completions.d/$name.fish; do
      [ -s moved/share/$file ]; ok $? "share/$file is installed"
    done
    if command -v bash >/dev/null; then
      bash -c '. "$1"; complete -p "$2"' bash moved/share/bash-completion/completions/$name $name >said 2>why
      ok $? "  bash has completions of $name"
    fi
  done
else
  skip 'the programs' 'the build has no program quern'
fi

done_testing
