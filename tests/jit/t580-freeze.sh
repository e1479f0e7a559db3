#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t580-freeze.sh: kernels of expressions built ahead, from C sources (generate --scan) and from what a program was seen to want
# (QUERN_RECORD, quern_record, freeze): found by the same calls, in every mode, without a module or a compiler, with the bits
# that the interpreter gives; by sources.txt and by CMake; records that are damaged, foreign or somebody else's.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t580.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset QUERN_JIT QUERN_CC QUERN_RECORD QUERN_DUMP QUERN_LOG QUERN_ISA
QUERN_CACHE_DIR=none
export QUERN_CACHE_DIR
client=$source/tests/jit/t580-freeze.c
strict='-Wall -Wextra -Werror'

build_lua() { lua5.4 "$source/build.lua" "$@"; }
# refused_cleanly NAME WORDS COMMAND...: exit status 1, a message with those words (an extended pattern), no accident
refused_cleanly() {
  name=$1 words=$2
  shift 2
  "$@" >said 2>&1
  status=$?
  [ $status = 1 ] && grep -qE -- "$words" said && ! grep -qE 'stack traceback|bug:|\.lua:[0-9]+: ' said
  ok $? "$name"
}
# link PROGRAM OBJECT...
link() {
  program=$1
  shift
  gcc -std=c11 -D_GNU_SOURCE -O1 $strict -I"$source/include" -o "$program" "$client" "$@" -L"$build" -lquern -Wl,-rpath,"$build" -lpthread
}
# all_are TIER FILE: each call ran so, and no compiler did
all_are() {
  awk -v tier="$1" '/^maps:/ { next } { calls++ } $4 != tier || $5 != 0 { print; bad++ } END { exit bad || calls < 20 }' "$2" >said 2>&1
}
# same_bits A B: the same calls gave the same outputs
same_bits() {
  awk '!/^maps:|^register:/ { print $1, $2, $3, $6 }' "$1" >bits.a
  awk '!/^maps:|^register:/ { print $1, $2, $3, $6 }' "$2" >bits.b
  [ -s bits.a ] && diff bits.a bits.b >said
}
no_modules() { cp "$1" said && grep -q '^maps:$' "$1"; }

if [ ! -e "$build/libquern.so" ]; then
  skip_all "the shared library is not built in $build"
fi
if grep -q '^QUERN_SANITIZE:STRING=.' "$build/CMakeCache.txt" 2>/dev/null || grep -q '^QUERN_OPS:STRING=.' "$build/CMakeCache.txt" 2>/dev/null; then
  skip_all "a sanitised build, or one of some ops"
fi
second=gcc
if command -v clang-19 >/dev/null; then second=clang-19; else echo "# no clang-19 here: gcc does its work, too"; fi

# ---- as it is: the interpreter
try 'the program' link plain
./plain >plain.said 2>&1
ok $? '  runs, with nothing built ahead'
all_are interpreter plain.said; ok $? '  all of it interpreted'
no_modules plain.said; ok $? '  with no module mapped'

# ---- from sources
try 'its source is scanned' build_lua generate --scan "$client" --dtypes f32,f16,i64 --prefix ahead --out ahead
sed -n 's/.*"name": "[a-z]*_qk_\([a-z_]*\)_\(f32\|f16\|i64\)_.*/\1/p' ahead/manifest.json | sort -u | tr '\n' ' ' >said
[ "$(cat said)" = 'bias_gelu ends four mix scaled two ' ]; ok $? '  all that it names, and nothing in comments and strings'
optimised=-O0
in_part 0 3 && optimised=-O1
try "gcc: without a warning" sh "$source/tests/support/build-tree.sh" gcc ahead ahead.gcc -std=c11 $optimised $strict -I"$source/include"
try '  linked into it' link scanned ahead.gcc/*.o
./scanned >scanned.said 2>&1
ok $? '  it runs'
all_are frozen scanned.said; ok $? '  all of it by the kernels built ahead, on every dtype and layout'
same_bits plain.said scanned.said; ok $? '  with the same bits'
no_modules scanned.said; ok $? '  with no module mapped'
for jit in sync async; do
  ./scanned --jit $jit >jit.said 2>&1 && all_are frozen jit.said && same_bits plain.said jit.said && no_modules jit.said
  ok $? "  mode $jit: so, too"
done
for isa in v3 v2 generic; do
  QUERN_ISA=$isa ./scanned >isa.said 2>&1 && all_are frozen isa.said && same_bits plain.said isa.said
  ok $? "  held to $isa: so, too"
done
try "$second: without a warning" sh "$source/tests/support/build-tree.sh" $second ahead ahead.second -std=c11 -O0 $strict -I"$source/include"
link scanned-by-second ahead.second/*.o >said 2>&1 && ./scanned-by-second >second.said 2>&1 && all_are frozen second.said && same_bits plain.said second.said
ok $? '  the same bits'

# ---- what sources may not say
source_of() { printf '#include <quern/quern.h>\n%s\n' "$1" >wrong.c; }
scan() { build_lua generate --scan wrong.c --dtypes f32 --out wrong; }
wrong() { # wrong NAME TEXT WORDS
  source_of "$2"
  refused_cleanly "$1" "$3" scan
  [ ! -e wrong ]; ok $? '  and writes nothing'
}
wrong 'an expression cut short' 'const char *k = QUERN_KERNEL(broken, y = x + );' '^wrong\.c:2:[0-9]+: '
wrong 'an expression that reduces' 'const char *k = QUERN_KERNEL(broken, y = x - max(x, axis=-1));' '^wrong\.c:2:37: broken: it reduces: record what the program compiles .QUERN_RECORD=FILE., and build that: build\.lua freeze'
wrong 'an expression that scans' 'const char *k = QUERN_KERNEL(broken, y = x - cumulative_sum(x, axis=-1));' '^wrong\.c:2:46: broken: it scans: record what the program compiles .QUERN_RECORD=FILE., and build that: build\.lua freeze'
wrong 'an axis that is none' 'const char *k = QUERN_KERNEL(broken, y = sum(x, axis=y));' "^wrong\.c:2:54: .*expected an axis, a whole number, found 'y'"
wrong 'an unknown function' 'const char *k = QUERN_KERNEL(broken, y = geluu(x));' "^wrong\.c:2:42: .*'geluu', did you mean 'gelu'"
wrong 'an expression that takes no such dtype' 'const char *k = QUERN_KERNEL(broken, y = x ^ w);' '^wrong\.c:2:'
wrong 'a // that C removes' "$(printf 'const char *k = QUERN_KERNEL(broken, y = x // twice\n;z = y);')" \
  "^wrong\.c:2:44: C removes '//' and what is behind it in the line: write floor_divide\(x, y\)"
wrong 'a // that takes the parenthesis' 'const char *k = QUERN_KERNEL(broken, y = x // 2);' "^wrong\.c:2:44: C removes '//'"
wrong 'a power of Python' 'const char *k = QUERN_KERNEL(broken, y = x ** 2);' "^wrong\.c:2:44: '\*\*' is no operator of C: write pow\(x, y\)"
wrong 'a word of Python' 'const char *k = QUERN_KERNEL(broken, y = x > 0 and x < 1);' "^wrong\.c:2:48: 'and' is no operator of C: write &&"
wrong 'no expression' 'const char *k = QUERN_KERNEL(broken);' '^wrong\.c:2:17: expected QUERN_KERNEL\(name, expression\)'
wrong 'no name' 'const char *k = QUERN_KERNEL(, y = x);' '^wrong\.c:2:17: expected QUERN_KERNEL'
wrong 'a parenthesis that is not closed' 'const char *k = QUERN_KERNEL(broken, y = (x + 1;' '^wrong\.c:2:17: expected QUERN_KERNEL'
wrong 'a name too long' "const char *k = QUERN_KERNEL($(printf 'n%064d' 0), y = x);" '^wrong\.c:2:17: a name may have 64 letters'
wrong 'two expressions of one name' 'const char *k = QUERN_KERNEL(same, y = x + 1), *l = QUERN_KERNEL(same, y = x + 2);' 'qk_same_f32_f32_1d_cc names two expressions'
wrong 'no use at all' '#define QUERN_KERNEL(name, ...) 0' 'no QUERN_KERNEL\(name, expression\) in wrong\.c'
refused_cleanly 'a source that is not there' 'nowhere\.c' build_lua generate --scan nowhere.c --out wrong
refused_cleanly 'a prefix that is none' "prefix: 'Q n'" build_lua generate --scan "$client" --prefix 'Q n' --out wrong
build_lua generate --scan "$client" --ops add --out wrong >said 2>&1
[ $? = 2 ] && grep -q -- '--ops does not go with --scan' said; ok $? 'choices of a tree do not go with it: usage'
source_of 'const char *k[] = { QUERN_KERNEL(one, y = x + 1), QUERN_KERNEL(one, y=x+1;), QUERN_KERNEL(other, z = a /* the same */ + 1) };'
try 'one expression, written in three ways under two names' scan
[ "$(grep -c '"name": ' wrong/manifest.json)" = 4 ]; ok $? '  is built once (1-d and 2-d, its operand contiguous and broadcast)'
classes_of() { sed -n 's/.*"rank": 1, "classes": "\([cb]*\)".*/\1/p' wrong/manifest.json | sort | tr '\n' ' '; }
rm -rf wrong
source_of 'const char *k = QUERN_KERNEL(three, y = a * b + c);'
try 'an expression of three inputs' scan
[ "$(classes_of)" = 'bbbc bbcc bcbc bccc cbbc cbcc ccbc cccc ' ]; ok $? '  is built for each of them broadcast or not'
rm -rf wrong
source_of 'const char *k = QUERN_KERNEL(four, y = a * b + c * d);'
try 'an expression of four' scan
[ "$(classes_of)" = 'ccccc ' ]; ok $? '  for contiguous ones only'
rm -rf wrong

# ---- what is in a source and is no use of it
cat >wrong.c <<'C'
#include <quern/quern.h>
#ifndef QUERN_KERNEL
#error none
#endif
int a = 1'000, b = 0x1'0; const char *k = QUERN_KERNEL(behind_a_mark, y = x + 2), c = '\''; float d = .5'0e-3;
const char *l = QUERN_KERNEL(behind_marks, y = x + 3), e = L'"';
#if 0
don't QUERN_KERNEL(out_1, y = x)
#  if A
QUERN_KERNEL(out_2, y = x)
#  else
QUERN_KERNEL(out_3, y = x)
#  endif
/* one */ #  else // of them
const char *m = QUERN_KERNEL(instead, y = x + 4);
#if \
  0
QUERN_KERNEL(out_4, y = x)
#elif A
const char *n = QUERN_KERNEL(otherwise, y = x + 5);
#elif 0 /* not so */
QUERN_KERNEL(out_5, y = x)
#else
const char *o = QUERN_KERNEL(last, y = x + 6);
#endif
const char *p = QUERN_KERNEL(within, y = x + 7);
#endif
#if 1
const char *q = QUERN_KERNEL(either, y = x + 8);
#else
const char *q = QUERN_KERNEL(or, y = x + 9);
#endif
#if 0 || A
const char *r = QUERN_KERNEL(perhaps, y = x + 10);
#endif
const char *s = "#if 0", *t = R"-(QUERN_KERNEL(out_6, y = x) " )" )-", *u = QUERN_KERNEL(behind_raw, y = x + 11);
const char *v = u8R"(")" QUERN_KERNEL(behind_another, y = x + 12);
// a comment that goes on \
QUERN_KERNEL(out_7, y = @)
const char *w = QUERN_KERNEL /* a */ ( // b
  commented /* c */, y = x /* ) */ + 13); int QUERN_KERNEL;
#undef QUERN_KERNEL
C
try 'marks in numbers, raw strings, #if 0' scan
sed -n 's/.*"name": "frozen_qk_\([a-z_0-9]*\)_f32_f32_1d_cc".*/\1/p' wrong/manifest.json | sort | tr '\n' ' ' >said
[ "$(cat said)" = 'behind_a_mark behind_another behind_marks behind_raw commented either instead last or otherwise perhaps within ' ]
ok $? '  every use that counts, and no other'
rm -rf wrong

# ---- beside other kernels: nothing that is linked is in the way of anything else
cat >library.c <<'C'
#include <quern/quern.h>
const char *library_kernel(void) { return QUERN_KERNEL(add, y = a + b); }
C
build_lua generate --scan library.c --dtypes f32 --prefix frozen --out library >said 2>&1 &&
  sh "$source/tests/support/build-tree.sh" "$quick_cc" library library.o -O0 -I"$source/include" >>said 2>&1
ok $? "a library's kernel has an op's name"
if [ -e "$build/libquern.a" ]; then
  gcc -std=c11 -D_GNU_SOURCE -O1 -I"$source/include" -o static "$client" library.o/*.o "$build/libquern.a" -lpthread -ldl -lm >said 2>&1
  ok $? '  it links with the static library'
else
  skip '  it links with the static library' 'it is not built'
fi
cp library.c another.c
build_lua generate --scan another.c --dtypes f32 --prefix ahead --out another >said 2>&1 &&
  sh "$source/tests/support/build-tree.sh" "$quick_cc" another another.o -O0 -I"$source/include" >>said 2>&1 &&
  link two-of-them library.o/*.o another.o/*.o >>said 2>&1
ok $? 'two folders with one kernel in one program'

# ---- from a record
QUERN_RECORD=app.record ./plain >said 2>&1
ok $? 'QUERN_RECORD: the program runs as ever'
same_bits plain.said said; ok $? '  with the same bits'
head -1 app.record >said
[ "$(cat said)" = 'quern-record 1' ]; ok $? '  and writes a record'
# 2 inputs: flat is stepped, transposed ..., so 1d and 2d of ccc, cbc, bcc, bbc; 2-d means rows of 16 to 63 items
grep -c '^kernel qj_' app.record >said
wanted=$(./scanned | awk '/^maps:/ { next } { print $1 != "again" ? $1 : "bias_gelu", $2, $3 }' | awk '
  { rank = $3 ~ /^(rows|a-)/ ? 2 : 1
    side = $3 ~ /-for-all$/ ? "bb" : $3 ~ /-to-the-left$/ ? "bc" : $3 ~ /-to-the-right$|^a-column$/ ? "cb" : "cc"
    seen[$1, $2, rank, side] = 1 }
  END { for (k in seen) count++; print count }')
[ "$(cat said)" = "$wanted" ]; ok $? "  of each kernel once ($wanted)"
./plain --record api.record >said 2>&1
ok $? 'quern_record: the same'
{ grep -c '^v0 = gelu' api.record; grep -c ' \^ ' api.record; grep -c '^x0 \* x1 + x2\|^v0 = x0 \* x1 + x2 \* x3' api.record; grep -c PI api.record; } | tr '\n' ' ' >said
grep -qE '^[1-9][0-9]* [1-9][0-9]* [1-9][0-9]* 0 $' said
ok $? '  what was wanted before it and after it, not what comes when it was ended'
./plain --record "$work/none/api.record" >said 2>&1
grep -q '^failed: .*none/api.record.*cannot be written' said; ok $? '  an error where it cannot be written'
QUERN_RECORD=none/app.record QUERN_LOG=warning ./plain >record.said 2>record.why
cat record.why >said
[ "$(grep -c "record '.*none/app.record' cannot be written" record.why)" = 1 ] && same_bits plain.said record.said
ok $? 'QUERN_RECORD that cannot be written: one warning, and all runs'

try 'the record is frozen' build_lua freeze --record app.record --out frozen
[ "$(grep -c '"name": ' frozen/manifest.json)" = "$wanted" ]; ok $? '  all of it'
try "$second: without a warning" sh "$source/tests/support/build-tree.sh" $second frozen frozen.second -std=c11 -O0 $strict -I"$source/include"
try '  linked into the program by hand' link by-hand frozen.second/*.o
# nothing that could compile is within reach
alone() { env QUERN_MODULE_DIR=/nonexistent PATH=/nonexistent "$@"; }
for jit in off sync async; do
  alone ./by-hand --jit $jit >hand.said 2>&1 && all_are frozen hand.said && same_bits plain.said hand.said && no_modules hand.said
  ok $? "  mode $jit: all of it frozen, nothing compiled, no module"
done
mkdir project
cat >project/CMakeLists.txt <<C
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(Quern REQUIRED)
add_subdirectory(frozen)
add_executable(app $client)
target_compile_definitions(app PRIVATE _GNU_SOURCE)
target_link_libraries(app PRIVATE frozen::frozen)
C
try 'the library installs' env DESTDIR= cmake --install "$build" --prefix "$work/stage"
head -1 app.record >light.record
sed -n '/^kernel/,$p' app.record | awk 'BEGIN { RS = "end\n"; ORS = "end\n" } !/gelu|exp/ && /f32,f32|f16/ && /1d/' >>light.record
try 'some of the record' build_lua freeze --record light.record --out project/frozen
try '  configures as a part of a project' env CC="$quick_cc" cmake -S project -B project/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/stage" \
  -DCMAKE_C_FLAGS="$strict"
try '  builds' cmake --build project/build
alone project/build/app --only four --jit sync >cmake.said 2>&1
grep -q '^four f32 flat frozen 0 ' cmake.said && grep -q '^four f16 flat frozen 0 ' cmake.said; status=$?
cp cmake.said said
ok $status '  its kernels are found'
grep '^four' plain.said >four.said
same_bits four.said cmake.said; ok $? '  with the same bits'

# ---- headers
echo '#include "frozen.h"
#include "frozen.h"
int main(void) { return frozen_register(); }' >header.c
for compiler in gcc $second; do
  try "$compiler: the header as C99" $compiler -std=c99 -pedantic-errors $strict -fsyntax-only -Ifrozen header.c
done
if command -v g++ >/dev/null; then
  try 'the header as C++17' g++ -x c++ -std=c++17 -pedantic-errors $strict -fsyntax-only -Ifrozen header.c
else
  skip 'the header as C++17' 'no g++ here'
fi

# ---- written anew
touch before
sleep 0.02
try 'frozen once more' build_lua freeze --record app.record --out frozen
find frozen -newer before -type f >said
[ ! -s said ]; ok $? '  nothing changes, nothing is written'
build_lua generate --scan "$client" --dtypes f32,f16,i64 --prefix ahead --out again >said 2>&1
diff -r -x '*.d' ahead again >said; ok $? 'scanned into another folder: every byte the same'
mkdir -p mixed/core
echo mine >mixed/core/mine.c
echo mine >mixed/frozen_notes.c
build_lua generate --ops add --dtypes f32 --prefix old --out mixed >said 2>&1 && build_lua freeze --record light.record --prefix old --out mixed >said 2>&1 &&
  build_lua freeze --record light.record --prefix young --out mixed >said 2>&1
ok $? 'a folder that had other things'
build_lua freeze --record light.record --prefix young --out only >/dev/null 2>&1
diff -r -x '*.d' mixed only | sort >said
[ "$(tr '\n' ' ' <said)" = 'Only in mixed: core Only in mixed: frozen_notes.c ' ] && [ "$(ls mixed/core)" = mine.c ]
ok $? '  has them no more, but what is not ours'

# ---- kernels of other bits
mkdir other
sed 's/QUERN_KERNEL_TABLE_VERSION, [0-9]*, /QUERN_KERNEL_TABLE_VERSION, 999, /' frozen/frozen.c >other/frozen.c
! cmp -s frozen/frozen.c other/frozen.c && gcc -c -Ifrozen -I"$source/include" -o other/table.o other/frozen.c >said 2>&1 &&
  link other/app other/table.o frozen.second/kernels_*.o >said 2>&1
ok $? 'a table of another numerics version'
alone other/app --register >other.said 2>&1
cp other.said said
grep -q '^register: -17 .*numerics version 999.*freeze' said; ok $? '  is refused'
grep -v '^register' other.said >other.calls
all_are interpreter other.calls; ok $? '  and serves nothing'

# ---- a record of expressions that reduce or scan: the stages of their rows
./plain --rows >rows.said 2>&1
ok $? 'expressions that reduce or scan: interpreted'
QUERN_RECORD=rows.record ./plain --rows >said 2>&1 && same_bits rows.said said
ok $? '  recorded'
[ "$(grep -c '^rows: ' rows.record)" -ge 5 ]; ok $? '  the stages of their rows'
try '  frozen' build_lua freeze --record rows.record --out rows
try '  compiled without a warning' sh "$source/tests/support/build-tree.sh" "$quick_cc" rows rows.o -std=c11 -O0 $strict -I"$source/include"
link rows.frozen rows.o/*.o >said 2>&1 && ./rows.frozen --rows >frozen.said 2>&1
ok $? '  run'
rows_are_frozen() { awk '!/^maps:/ && $4 != "frozen" { print; bad++ } END { exit bad || NR < 20 }' "$1" >said 2>&1; }
rows_are_frozen frozen.said; ok $? '  by the kernels built ahead'
same_bits rows.said frozen.said; ok $? '  with the same bits'
no_modules frozen.said; ok $? '  with no module mapped'

# ---- records as they may come
refused_record() { # refused_record NAME WORDS: bad.record
  rm -rf wrong
  refused_cleanly "$1" "$2" build_lua freeze --record bad.record --out wrong
  [ ! -e wrong ]; ok $? '  and writes nothing'
}
block() { printf 'kernel %s\n%s\n%s\n%s\nspecs %s\nend\n' "$1" "$2" "$3" "$4" "${5--}"; }
head_of() { echo 'quern-record 1'; }
rm -f bad.record
refused_record 'no record there' 'bad\.record'
: >bad.record
refused_record 'an empty file' "^bad\.record:1:1: this is no record"
cp "$build/libquern.so" bad.record
refused_record 'a foreign file' '^bad\.record:1:1: this is no record'
echo 'quern-record 2' >bad.record
refused_record 'a record of another version' "^bad\.record:1:1: this is no record.*quern-record 1"
head_of >bad.record
refused_record 'a record of nothing' '^bad\.record: no kernels'
sed 's/$/\r/' app.record >bad.record
refused_record 'a record through a machine that ends lines otherwise' '^bad\.record:1:1: '
for text in 'rows: ' 'rows: out 0' 'rows: in 0 f32; out 1' 'rows: in 0 f32' 'rows: in 1 f32; out 0' 'rows: in 0 f99; out 0' 'rows: in x f32; out 0' \
    'rows: in 0 f64; out 0' 'rows: in 0 f32; evil 0; out 0' 'rows: in 0 f32; prim evil f32 0; out 1' 'rows: in 0 f32; prim add f32 0; out 1' \
    'rows: in 0 f32; op nope f32 0 0; out 1' 'rows: in 0 f32; op add f32 0 0; out 1' 'rows: in 0 f32; const f32 zz; out 1' \
    'rows: in 0 f32; kernel qk_nope_f32_stage1_f32_f32_2d_cc 0 0; out 1' 'rows: in 0 f32; kernel 0; out 1' 'rows: in 0 f32; param a;b f32; out 0'; do
  { head_of; block qj_1 "$text" 'f32 > f32' '2d cc'; } >bad.record
  refused_record "a stage that is none: $text" '^qj_1: '
done
{ head_of; block qj_1 'x0 + + )' 'f32 > f32' '1d cc'; } >bad.record
refused_record 'no expression' '^qj_1: .*:1:8: '
{ head_of; block qj_1 'v0 = nope.nothing ( x0 )' 'f32 > f32' '1d cc' 00112233445566778899aabbccddeeff; } >bad.record
refused_record 'an op of a spec that was not given' 'nope\.nothing'
{ head_of; block qj_1 'v0 = x0 * 2' 'f99 > f32' '1d cc'; } >bad.record
refused_record 'a dtype that is none' "^qj_1: .*dtype 'f99'"
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > i64' '1d cc'; } >bad.record
refused_record 'an output that cannot have its dtype' '^qj_1: .*f32 does not become i64'
{ head_of; block qj_1 'v0 = x0 ^ x1' 'f32,f32 > f32' '1d ccc'; } >bad.record
refused_record 'operands that it does not take' '^qj_1: .*:1:'
{ head_of; block qj_1 'v0 = x0 * x1' 'f32 > f32' '1d cc'; } >bad.record
refused_record 'fewer operands than it has' '^qj_1: .*dtypes of inputs: 1 given, expected 2'
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > f32' '1d ccc'; block qj_2 'v0 = x0 * 3' 'f32 > f32' '1d cc'; } >bad.record
refused_record 'more classes than operands' 'qj_1|not understood'
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > f32' '3d cc'; } >bad.record
refused_record 'a rank that no kernel has' 'not understood'
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > f32' '1d cb'; } >bad.record
refused_record 'an output that would be broadcast' 'qj_1|not understood'
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > f32' '1d cc'; block qj_1 'v0 = x0 * 3' 'f32 > f32' '1d cc'; } >bad.record
refused_record 'two kernels of one name' 'qj_1 names two expressions'
{ head_of; block qj_1 "v0 = $(printf '%0300d' 0 | tr 0 '(')x0$(printf '%0300d' 0 | tr 0 ')')" 'f32 > f32' '1d cc'; } >bad.record
refused_record 'an expression too deep' '^qj_1: .*(nest|deep|levels)'
{ head_of; block qj_1 'v0 = x0 * 2 // */ int evil; /*' 'f32 > f32' '1d cc'; } >bad.record
build_lua freeze --record bad.record --out wrong >said 2>&1
status=$?
[ $status = 1 ] || { [ $status = 0 ] && sh "$source/tests/support/build-tree.sh" gcc wrong wrong.o $strict -I"$source/include" >said 2>&1 && ! nm wrong.o/*.o | grep -q evil; }
ok $? 'text that would end a comment of C stays in it'
rm -rf wrong

# every way to cut a record short, and to change a byte of it, by the reader itself
{ head_of; block qj_1 'v0 = x0 * 2' 'f32 > f32' '1d cc'; block qj_2 'v0 = x0 * x1 + x2' 'f32,f32,f32 > f32' '1d ccbc'; } >small.record
cat >cuts.lua <<'LUA'
package.path = arg[1] .. "/?.lua;" .. package.path
local frozen = require "gen.products.frozen"
local model = require "gen.products.load".load(arg[1], {})
local file = assert(io.open(arg[2], "rb"))
local text = file:read "a"
file:close()
local second = text:find("kernel qj_2", 1, true)
local function key_is_whole(kernel) return kernel.key == (kernel.name == "qj_1" and
  "v0 = x0 * 2\nf32 > f32\n1d cc\nspecs -\n" or "v0 = x0 * x1 + x2\nf32,f32,f32 > f32\n1d ccbc\nspecs -\n") end
for cut = 15, #text - 1 do
  local list, errors = frozen.read_record_file(model, "r", text:sub(1, cut), {})
  local wanted = cut >= second - 1 and 1 or 0
  assert(#errors == 0, "an error at cut " .. cut .. ": " .. tostring(errors[1]))
  assert(#list == wanted, "at cut " .. cut .. ": " .. #list .. " kernels")
  for _, kernel in ipairs(list) do assert(key_is_whole(kernel), "at cut " .. cut) end
  -- the next process appends behind what was cut
  list, errors = frozen.read_record_file(model, "r", text:sub(1, cut) .. text:sub(second), {})
  assert(#errors == 0 and #list >= 1, "appended behind cut " .. cut .. ": " .. #list .. " kernels, " .. tostring(errors[1]))
  local has_second = false
  for _, kernel in ipairs(list) do
    has_second = has_second or kernel.name == "qj_2"
    assert(key_is_whole(kernel), "appended behind cut " .. cut .. ": " .. kernel.key)
  end
  assert(has_second, "appended behind cut " .. cut)
end
for at = 1, #text do
  for _, byte in ipairs { 0, 10, 32, 99, 255 } do
    local list, errors = frozen.read_record_file(model, "r", text:sub(1, at - 1) .. string.char(byte) .. text:sub(at + 1), {})
    assert(#list <= 2 and #errors <= 2)
  end
end
local both = frozen.read_record_file(model, "r", text .. text, {})
assert(#both == 2, "twice the same: " .. #both)
LUA
try 'a record cut short anywhere: whole kernels only, and no error' lua5.4 cuts.lua "$source" small.record
{ cat small.record; printf 'kernel qj_3\nv0 = x0 * 5\nf32 > f'; } >bad.record
build_lua freeze --record bad.record --out cut >said 2>&1 && [ "$(grep -c '"name": ' cut/manifest.json)" = 2 ]
ok $? 'frozen, what was cut short is left out'
cat app.record small.record >bad.record
build_lua freeze --record bad.record --out joined >said 2>&1 && [ "$(grep -c '"name": ' joined/manifest.json)" = $((wanted + 2)) ]
ok $? 'two records in one file'

# ---- many processes, one record
rm -f many.record
pids=
for i in 1 2 3 4 5 6 7 8; do
  QUERN_RECORD=many.record ./plain >"many.said.$i" 2>&1 &
  pids="$pids $!"
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
cp many.said.1 said
ok $failed '8 processes at once write one record'
mv many.record app.record
try '  it can be frozen' build_lua freeze --record app.record --out many
diff -r -x '*.d' frozen many >said; ok $? "  and makes the very sources that one process's makes"

# ---- ops of specs
cat >acme.lua <<'LUA'
unary "acme.swish" {
  doc    = "x times the logistic function of beta x.",
  params = { beta = 1.0 },
  dtypes = floating,
  body   = [[ x * sigmoid(beta * x) ]],
  examples = { { x = 0.0, y = 0.0 } },
}
reduction "acme.norm" { doc = "The root of the sum of squares.", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)" }
scan "acme.grow" { doc = "Growth.", dtypes = floating, combine = "a + b + a * b", initial = 0 }
LUA
sed 's/x \* sigmoid/2 * x * sigmoid/' acme.lua >changed.lua
if ./plain --spec acme.lua >spec.said 2>&1; then
  all_are interpreter spec.said; ok $? 'an op of a spec, interpreted'
  QUERN_RECORD=spec.record ./plain --spec acme.lua >said 2>&1
  ok $? '  recorded'
  refused_cleanly '  is not frozen without its spec' 'acme\.swish' build_lua freeze --record spec.record --out spec
  refused_cleanly '  nor with what is not its spec' 'spec' build_lua freeze --record spec.record --spec changed.lua --out spec
  rm -rf spec
  try '  is frozen with it' build_lua freeze --record spec.record --spec acme.lua --out spec
  try '  compiles' sh "$source/tests/support/build-tree.sh" "$quick_cc" spec spec.gcc -std=c11 -O0 $strict -I"$source/include"
  try '  links' link spec-app spec.gcc/*.o
  ./spec-app --spec acme.lua >frozen.said 2>&1
  all_are frozen frozen.said; ok $? '  all of it frozen'
  same_bits spec.said frozen.said; ok $? '  with the same bits'
  ./plain --rows --spec acme.lua >rows.said 2>&1
  ok $? 'an op, a reduction and a scan of a spec in an expression'
  QUERN_RECORD=rows-spec.record ./plain --rows --spec acme.lua >said 2>&1 && same_bits rows.said said
  ok $? '  recorded'
  refused_cleanly '  not frozen without its spec' 'made with other specs' build_lua freeze --record rows-spec.record --out rows-spec
  try '  frozen with it' build_lua freeze --record rows-spec.record --spec acme.lua --out rows-spec
  sh "$source/tests/support/build-tree.sh" "$quick_cc" rows-spec rows-spec.gcc -O0 -I"$source/include" >said 2>&1 && link rows-app rows-spec.gcc/*.o >said 2>&1
  ok $? '  compiled'
  ./rows-app --rows --spec acme.lua >frozen.said 2>&1
  rows_are_frozen frozen.said && same_bits rows.said frozen.said; ok $? '  all of it frozen, with the same bits'
  echo 'const char *k = QUERN_KERNEL(spec, y = acme.swish(x, 0.5) + b);' >uses.c
  build_lua generate --scan uses.c --spec acme.lua --dtypes f32,f16,i64 --prefix ahead --out uses >said 2>&1 &&
    sh "$source/tests/support/build-tree.sh" "$quick_cc" uses uses.gcc -O0 -I"$source/include" >said 2>&1 && link scan-app uses.gcc/*.o >said 2>&1
  ok $? '  scanned in a source, with its spec'
  ./scan-app --spec acme.lua >frozen.said 2>&1
  all_are frozen frozen.said; ok $? '  all of it frozen, too'
  same_bits spec.said frozen.said; ok $? '  with the same bits'
  ./plain --spec changed.lua >changed.said 2>&1
  ! same_bits spec.said changed.said; ok $? 'another spec under that name gives other results'
  ./spec-app --spec changed.lua >frozen.said 2>&1
  all_are interpreter frozen.said; ok $? '  for which the frozen kernels do not serve'
  same_bits changed.said frozen.said; ok $? '  and they stay right'
else
  skip 'ops of specs' "no specs at run time here: $(sed -n 's/^failed: //p' spec.said | head -1)"
fi

done_testing
