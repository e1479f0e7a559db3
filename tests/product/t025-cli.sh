#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t025-cli.sh: build.lua as its users meet it: what it writes, keeps and removes, exit codes, paths with blanks, locales.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t025.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# run STATUS NAME ARGUMENT...: build.lua ends with that status; its output is in said, its complaints in why
run() {
  wanted=$1 name=$2
  shift 2
  lua5.4 "$source/build.lua" "$@" >said 2>why
  got=$?
  [ $got = "$wanted" ]
  status=$?
  [ $status = 0 ] || echo "exit $got, wanted $wanted: $*" >>said
  ok $status "$name"
}
says() { grep -qF -- "$1" why; ok $? "  and says: $1"; }
json() { python3 -m json.tool "$1" >/dev/null 2>said; ok $? "$2 is JSON"; }

# ---- exit codes
run 0 'help' --help
run 0 'help of a command' generate --help
grep -q -- '--kernels-only  *no runtime' said && ! grep -q -- '--library' said; ok $? '  tells its options, not that of the build'
cp said kept.help
run 0 '  by the command help' help generate
cmp -s said kept.help; ok $? '  which is the same'
run 0 '  with the command' help
for command in generate freeze check list show new help; do
  run 0 "help $command" help $command
  grep -q "^lua5.4 build.lua $command" said; ok $? '  begins with its usage'
  grep -q "^lua5.4 build.lua $command" kept.help || { lua5.4 "$source/build.lua" help | grep -q "^lua5.4 build.lua $command"; ok $? '  and is among all'; }
done
run 2 'help of two commands' help list show
run 2 'help of what is no command' help lst
says "unknown command 'lst', did you mean 'list'?"
run 2 'no command'
says 'usage: lua5.4 build.lua COMMAND'
run 2 'an unknown command' frobnicate
says "unknown command 'frobnicate'"
run 2 'an unknown option' generate --out o --frobnicate
says 'unknown option --frobnicate'
says 'usage: lua5.4 build.lua generate [--out DIR]'
run 2 'an option with a letter too many' generate --out o --prefixx acme
says 'unknown option --prefixx, did you mean --prefix?'
run 2 'an unknown time to show progress' check --measure --progress sometimes x.lua
run 2 'an option of another command' list --out o
run 2 'an option without its value' generate --out
says '--out wants a value'
run 2 'a flag with a value' list --json=yes
run 2 'generate without --out' generate
run 2 'a target that is not there' generate --out o --target c,metal
run 2 'a word too many' generate --out o add
run 2 'show without a name' show
run 2 'check with two files' check a b
run 2 'new without a name' new
[ ! -e o ]; ok $? 'none of these has written anything'
mkfifo fifo
run 1 'a FIFO as a spec' check fifo
says 'fifo: not a regular file'
run 1 '  of generate' generate --out o --spec fifo
says 'fifo: not a regular file'
run 1 'an unknown op' generate --out o --ops ad
says "unknown op 'ad', did you mean 'add'?"
run 1 "NumPy's name of an op" generate --out o --ops arcsin
says "unknown op 'arcsin': write asin"
run 1 'an unknown dtype' generate --out o --dtypes f31
says "unknown dtype 'f31', did you mean 'f32'?"
run 1 'a dtype that is not there' generate --out o --dtypes c64
run 1 'a dtype in preview' generate --out o --dtypes f8_e4m3fn
says 'give --preview, too'
run 1 'an unknown rank' generate --out o --rank 4
run 1 'an unknown class' generate --out o --class q
run 1 'an unknown policy' generate --out o --variants fat
run 1 'an empty list of ops' generate --out o --ops ,
run 1 'a prefix with a capital' generate --out o --prefix Acme
run 1 'a prefix that leaves the folder' generate --out o --prefix ../a
run 1 'the prefix of the library' generate --out o --prefix quern
run 1 'a prefix that is a header of C' generate --out o --prefix stdint
says "the tree's header would hide <stdint.h>"
run 1 'a spec that is not there' generate --out o --spec missing.lua
says 'missing.lua'
run 1 'a folder for a spec' generate --out o --spec .
if in_part 0 3; then run 1 'a kernel that is not there' show qk_add_f33; fi # (what has to plan all ops: every third day)
run 1 'an op that is not there' show adda
says "did you mean 'add'?"
run 1 'a kernel of a tree that is not there' show acme_qk_add_f32_f32_f33_2d_ccc
says "did you mean 'acme_qk_add_f32_f32_f32_2d_ccc'?"
run 1 'a kernel of run time' show qj_0123456789abcdef
run 1 'a built-in op as a new one' new sin
says 'acme.sin'
run 1 'a name with two namespaces' new acme.a.b
says 'more than one namespace'
run 1 'a file to check that is not there' check missing.lua
: >plain
run 1 'a file where the folder should be' generate --out plain/sub --ops add --dtypes f32
run 1 'a file as the folder' generate --out plain --ops add --dtypes f32
[ ! -e o ]; ok $? 'none of these has written anything either'
printf 'unary "acme.a" { doc = "d", dtypes = floating, body = [[ u ]] }\nunary "acme.b" { doc = "d", dtypes = floating, body = [[ v ]] }\n' >two.lua
run 1 'two errors in a spec' check two.lua
[ "$(grep -c '^two\.lua:[12]:' why)" = 2 ]; ok $? '  are both told, once'
awk 'BEGIN { for (k = 1; k <= 40; k++) printf "unary \"acme.a%d\" { doc = \"d\", dtypes = { \"f32\" }, body = [[ u ]] }\n", k }' >forty.lua
run 1 'forty errors' check forty.lua
[ "$(grep -c '^forty\.lua:' why)" = 20 ]; ok $? '  stop at twenty'
says '20 more'
run 1 'nothing is written where a spec is wrong' generate --out o --spec two.lua
[ ! -e o ]; ok $? '  not even the folder'

# ---- what is asked for and yields nothing
run 1 'an op of none of the dtypes' generate --out o --ops add,bitwise_and --dtypes f32
says 'bitwise_and takes none of the dtypes asked for, but bool, i8'
run 1 'a dtype of none of the ops' generate --out o --ops bitwise_and --dtypes i32,f32
says '--dtypes: f32: none of the ops asked for takes it'
printf 'unary "acme.whole" { doc = "d", dtypes = { "i32" }, body = [[ x + 1 ]] }\n' >whole.lua
run 1 'an op of a spec of none of the dtypes' generate --out o --spec whole.lua --ops add --dtypes f32
says 'acme.whole takes none of the dtypes asked for, but i32'
[ ! -e o ]; ok $? 'none of these writes anything'

# ---- a spec's ops need not be named again
cat >swish.lua <<'LUA'
unary "acme.swish" { doc = "x times its logistic; quern_swish, qn_x, QUERN_SWISH.", dtypes = floating, body = [[ x / (1 + exp(-x)) ]] }
LUA
run 0 "the tour's command" generate --out own --prefix acme --ops gelu,add,clip --dtypes f16,f32 --spec swish.lua
for op in swish gelu add clip; do
  [ -f "own/kernels/acme_op_${op}_cpu.c" ]; ok $? "  has $op"
done
[ ! -e own/kernels/acme_op_swish_backward_cpu.c ] && [ ! -e own/kernels/acme_op_exp_cpu.c ]; ok $? '  and nothing else'
grep -qF 'x times its logistic; quern_swish, qn_x, QUERN_SWISH.' own/core/acme_op_table.c; ok $? '  with its own words, whatever the prefix'
if in_part 1 3; then # it makes all ops
  run 0 'a spec without --ops' generate --out all --prefix acme --dtypes f32 --spec swish.lua
  [ -f all/kernels/acme_op_swish_cpu.c ] && [ -f all/kernels/acme_op_exp_cpu.c ]; ok $? '  has all ops'
fi
rm -rf own all

# ---- what it writes
run 0 'a tree' generate --out tree --prefix acme --ops add,abs --dtypes f32,i32 --report
grep -q '^add ' said; ok $? '--report names the ops'
grep -Eq '^add +[1-9][0-9]* +0 +[1-9][0-9]{3,} +[1-9][0-9]{3,} +[0-9]+[.][0-9]{2}$' said; ok $? '  with bytes and seconds'
grep -q '^pack ' said && grep -q '^total .*generated in [0-9.]* s; files written' said; ok $? '  and the totals'
for file in acme.h CMakeLists.txt sources.txt manifest.json NOTICE acme.d core/acme_op_table.c kernels/acme_op_add_cpu.c kernels/acme_op_abs_cpu.c kernels/acme_conversions.c; do
  [ -f "tree/$file" ]; ok $? "tree/$file is there"
done
[ ! -e tree/kernels/acme_op_gelu_cpu.c ]; ok $? 'and no op that was not asked for'
[ -z "$(find tree -type f | sed 's#.*/##' | sort | uniq -d)" ]; ok $? 'no two files have one name'

# ---- objects of all sources of a program may be in one folder, whatever its ops are called
for op in table cuda add_cuda add_cpu; do
  printf 'unary "acme.%s" { doc = "d", dtypes = floating, body = "x" }\n' $op
done >stems.lua
for prefix in acme acme_cuda; do
  run 0 "a tree for both targets under $prefix" generate --out "flat_$prefix" --prefix $prefix --target c,cuda --ops add --dtypes f32 --spec stems.lua
  sed -n 's/^\(core\|kernel\|cuda\|cuda_core\) //p' "flat_$prefix/sources.txt" | sed 's#.*/##; s#\.[^.]*$##' >"stems_$prefix"
  [ "$(wc -l <"stems_$prefix")" -gt 30 ] && ! grep -v "^${prefix}_" "stems_$prefix"; ok $? "  the names of its sources are the tree's own"
done
[ -z "$(sort stems_acme stems_acme_cuda | uniq -d)" ]; ok $? 'no two sources of the two have one stem'
rm -r flat_*
json tree/manifest.json 'the manifest'
python3 - tree <<'PY' >said 2>&1
import json, os, sys
tree = sys.argv[1]
m = json.load(open(tree + "/manifest.json"))
assert m["schema"] >= 1 and m["numerics"] >= 1 and m["prefix"] == "acme", m
assert sorted(o["name"] for o in m["ops"]) == ["abs", "add"]
there = {os.path.relpath(os.path.join(d, f), tree) for d, _, fs in os.walk(tree) for f in fs}
listed = set(m["files"])
assert there - listed <= {"acme.d"}, there - listed
assert listed <= there, listed - there
names = [k["name"] for k in m["kernels"]]
assert len(names) == len(set(names)), "a kernel is there twice"
for k in m["kernels"]:
    assert {"name", "op", "dtypes", "rank", "classes", "isa", "file"} <= set(k), k
    text = open(os.path.join(tree, k["file"])).read()
    bare = k["name"].rsplit("_", 1)[0] if k["isa"] != "generic" else k["name"]
    assert bare + ")" in text, k["name"]
PY
ok $? 'the manifest lists the files that are there, and every kernel is in the file it names'
! grep -rlE '/(home|root|tmp|usr|work)/|20[0-9][0-9]-[01][0-9]' tree --include='*.c' --include='*.h' --include='*.txt' --include=manifest.json >said
ok $? 'no path of the machine and no date in it'
# (the checks of DLPack's structs are every tree's and the library's: whoever comes first makes them)
grep -rhE '(^|[^a-z_])(quern_|QUERN_|qn_|qk_)' tree --include='*.c' --include='*.h' --include='*.txt' | grep -vE 'QUERN_DLPACK_' >said
[ ! -s said ]
ok $? 'no name of the library is left'
bad_banner=$(find tree -name '*.[ch]' -exec sh -c 'head -3 "$1" | grep -q 0BSD && head -3 "$1" | grep -q "Do not edit" || echo "$1"' _ {} \;)
[ -z "$bad_banner" ]; ok $? 'every C file says its licence and who made it'
bad_lists=$(sed -n 's/^core //p;s/^kernel //p' tree/sources.txt | while read -r file; do [ -f "tree/$file" ] || echo "$file"; done)
[ -z "$bad_lists" ]; ok $? 'sources.txt names files that are there'
printf 'include tree/acme.d\n' >depends.mk
: >manifest.json # the depfile's target
make -q -f depends.mk manifest.json >said 2>&1
[ $? -le 1 ]; ok $? 'the depfile is one that make reads'
rm -f manifest.json

# ---- repeated
cp -a tree before
: >stamp
sleep 0.05
CC=false # it is not about objects' sizes
export CC
run 0 'the same again' generate --out tree --prefix acme --ops add,abs --dtypes f32,i32 --report
grep -q 'files written 0,' said; ok $? '  writes no file'
diff -r tree before >said; ok $? '  and every byte is the same'
changed=$(find tree -type f -newer stamp)
[ -z "$changed" ]; ok $? '  nor is a time of change touched'
unset CC
run 0 'into another folder, by another path' generate --prefix=acme --dtypes=i32,f32 --ops "abs add" --out "$work/./a b/c d"
rm -f before/acme.d && cp -a "a b/c d" other && rm -f other/acme.d
diff -r before other >said; ok $? '  every byte is the same (order of the lists, blanks in the path)'
mkdir elsewhere
(cd elsewhere && cp -R "$source/build.lua" "$source/gen" "$source/dsl" "$source/templates" "$source/runtime" "$source/include" . &&
  lua5.4 build.lua generate --prefix acme --dtypes f32,i32 --ops add,abs --out ../third && cd .. && rm -f third/acme.d) >said 2>&1
ok $? 'a copy of the generator elsewhere runs'
diff -r before third >said; ok $? '  and writes the same bytes'
if command -v localedef >/dev/null && [ -f /usr/share/i18n/locales/de_DE ]; then
  localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" >said 2>&1
  LOCPATH=$work lua5.4 -e 'assert(os.setlocale "de_DE.UTF-8" and string.format("%.1f", 0.5) == "0,5", "no comma")' \
    "$source/build.lua" generate --prefix acme --dtypes f32,i32 --ops add,abs --out fourth >said 2>&1
  ok $? 'under a locale with a comma as its decimal point it runs'
  rm -f fourth/acme.d
  diff -r before fourth >said; ok $? '  and writes the same bytes'
  cat >numbers.lua <<'SPEC'
unary "acme.numbers" {
  doc    = "Numbers.",
  params = { a = 0.1, b = 1e-30 },
  dtypes = { "f32", "f64" },
  body   = [[ fma(x, 0.3, 1.5e10) + 0x1.8p-3 * a + (x > .25 ? b : 2.5) ]],
  ulp    = { f32 = 1.5, f64 = 0.75 },
  domain = { -1.5, 2.5 },
  examples = { { x = 0.5, y = 0.25 } },
}
SPEC
  for l in C de_DE.UTF-8; do
    LOCPATH=$work lua5.4 -e "assert(os.setlocale '$l')" "$source/build.lua" generate --prefix acme --spec numbers.lua --ops acme.numbers --out "n $l" >said 2>&1
    ok $? "numbers of a spec, locale $l"
    rm -f "n $l/acme.d"
  done
  diff -r 'n C' 'n de_DE.UTF-8' >said; ok $? '  the same bytes'
  json 'n de_DE.UTF-8/manifest.json' 'its manifest'
else
  skip 'a comma locale' 'no localedef or no locale sources here'
fi

# ---- files of dropped ops, and nothing else, go away
echo 'mine' >tree/kernels/mine.c
echo '/* Generated by Quern, said someone */' >tree/kernels/other.c
CC=false
export CC
run 0 'one op fewer' generate --out tree --prefix acme --ops add --dtypes f32,i32 --report
grep -q 'removed 1$' said; ok $? '  removes one file'
[ ! -e tree/kernels/acme_op_abs_cpu.c ] && [ -f tree/kernels/acme_op_add_cpu.c ]; ok $? '  that of the op'
[ -f tree/kernels/mine.c ] && [ -f tree/kernels/other.c ]; ok $? '  and none that it did not write'
echo 'no longer generated' >tree/kernels/acme_op_add_cpu.c
unset CC
run 0 'an op with a file that its user has changed is dropped' generate --out tree --prefix acme --ops abs --dtypes f32,i32
[ -f tree/kernels/acme_op_add_cpu.c ]; ok $? '  that file stays'

mkdir outside hostile hostile/core
for file in outside/a outside/b hostile/kept hostile/mine.c; do echo '/* Generated by Quern */' >"$file"; done
echo 'not marked' >hostile/unmarked.c
ln -s ../outside hostile/link
ln -s ../outside/b hostile/b.c
cat >hostile/manifest.json <<JSON
{ "files": [
  "../outside/a", "$work/outside/a", "core/../../outside/a", "./../outside/a", "link/a", "b.c", "unmarked.c", "core", ".", "..", "",
  "a b; rm -rf outside", "\$(rm -rf outside)", "core/..//../outside/a", "link/../outside/a"
] }
JSON
run 0 'a manifest that names files outside' generate --out hostile --prefix acme --ops add --dtypes f32
[ -f outside/a ] && [ -f outside/b ]; ok $? '  removes none of them, not through a link either'
[ -f hostile/unmarked.c ] && [ -f hostile/kept ] && [ -f hostile/mine.c ] && [ -d hostile/core ]; ok $? '  nor what it does not list or did not write'
json hostile/manifest.json 'the manifest afterwards'
mkdir garbage
head -c 4096 /dev/urandom >garbage/manifest.json
run 0 'a manifest of garbage' generate --out garbage --prefix acme --ops add --dtypes f32
mkdir -p mine/kernels
for file in CMakeLists.txt kernels/kernel.h acme.h; do
  echo 'mine' >mine/$file
  run 1 "a folder with a $file of somebody's" generate --out mine --prefix acme --ops add --dtypes f32
  says "mine/$file is there already, and is not generated"
  [ "$(find mine -type f)" = "mine/$file" ] && [ "$(cat mine/$file)" = mine ]; ok $? '  and is left as it was'
  rm mine/$file
done
: >mine/acme.h
run 0 'empty files may be replaced' generate --out mine --prefix acme --ops add --dtypes f32
mkdir leading
run 0 'a folder with a minus as the first letter of its name' generate --out=-o --prefix acme --ops add --dtypes f32
[ -f ./-o/acme.h ]; ok $? '  is one'
run 0 'a folder with quotes and blanks in its name' generate --out "q'u \"o \$te" --prefix acme --ops add --dtypes f32
[ -f "q'u \"o \$te/acme.h" ]; ok $? '  is one'
echo 'unary "acme.same" { doc = "x.", dtypes = floating, body = "x" }' >same.lua
run 0 '  is taken again with other inputs' generate --out "$PWD/q'u \"o \$te" --prefix acme --ops add --dtypes f32 --spec same.lua
mkdir -p held/acme.h
run 1 'a folder in the place of a file' generate --out held --prefix acme --ops add --dtypes f32
says 'held/acme.h: Is a directory'

# ---- the choices
run 0 '--dtypes' generate --out choice --prefix acme --ops add --dtypes f64
grep -q '_f64_' choice/kernels/acme_op_add_cpu.c && ! grep -q '_f32_' choice/kernels/acme_op_add_cpu.c; ok $? '  leaves the others out'
run 0 '--variants full' generate --out full --prefix acme --ops add --dtypes f32 --variants full
run 0 '--rank and --class' generate --out some --prefix acme --ops add --dtypes f32 --variants full --rank 2 --class contiguous,strided
grep -q '_2d_css' some/kernels/acme_op_add_cpu.c && ! grep -q '_3d_' some/kernels/acme_op_add_cpu.c && ! grep -q '_2d_cb' some/kernels/acme_op_add_cpu.c
ok $? '  give what was asked for'
[ "$(grep -c Q_NAME full/kernels/acme_op_add_cpu.c)" -gt "$(grep -c Q_NAME some/kernels/acme_op_add_cpu.c)" ]; ok $? '  which is less than all'
run 0 '--single' generate --out single --prefix acme --ops add --dtypes f32 --single
[ "$(ls single | tr '\n' ' ')" = 'NOTICE acme.c acme.d acme.h manifest.json ' ]; ok $? '  gives one .c and one .h'
json single/manifest.json 'its manifest'

# ---- list, show, new, check
run 0 'list' list
grep -q '^gelu ' said && grep -q '^add ' said; ok $? '  names the ops'
run 0 'list --json' list --json
cp said list.json
json list.json 'the list'
python3 -c '
import json
rows = json.load(open("list.json"))
names = [r["name"] for r in rows]
assert names == sorted(names) and "gelu" in names, names
add = rows[names.index("add")]
assert {"f16", "bf16", "f32", "f64", "i32", "i64", "u8"} <= set(add["dtypes"]) and add["inputs"] == ["x", "y"], add' >said 2>&1
ok $? '  holds what it should'
run 0 'show of an op' show add
grep -q 'qk_add_f32_f32_f32_2d_ccc' said; ok $? '  shows its kernels'
run 0 'show of a kernel' show qk_add_f32_f32_f32_2d_ccc
grep -q 'x + y' said; ok $? '  with the formula above it'
run 0 'show of a kernel at a level' show qk_add_f32_f32_f32_2d_ccc_v3
run 0 'show of a kernel of the full matrix' show qk_add_f32_f32_f32_3d_csc
run 0 'show of a kernel that converts' show qk_pack_convert_f16_f32_1d_cc
run 0 'new' new acme.swishy
[ -f acme_swishy.lua ]; ok $? '  writes a spec'
grep -q 'then: lua5.4 build.lua check' said && grep -q '^--   lua5.4 build.lua show acme.swishy' acme_swishy.lua; ok $? '  says what to do next'
(QUERN_GEN_NAME=quern-gen && export QUERN_GEN_NAME && lua5.4 "$source/build.lua" new acme.other) >said 2>&1
grep -q 'then: quern-gen check' said && grep -q '^--   quern-gen show' acme_other.lua; ok $? '  by the name that the generator is called by'
run 0 'its spec passes check' check acme_swishy.lua
grep -q 'acme.swishy takes' said; ok $? '  which says what the op takes'
run 0 'and generates' generate --out swishy --prefix acme --spec acme_swishy.lua --ops acme.swishy --dtypes f32
grep -q 'quern_status acme_swishy(\|acme_status acme_swishy(' swishy/acme.h; ok $? '  a typed function'
cp acme_swishy.lua kept.lua
run 1 'new does not overwrite' new acme.swishy
cmp -s acme_swishy.lua kept.lua; ok $? '  the file is as it was'
for name in 'Acme' 'a.b.c' '../a' 'a b' '' 'int' 'acme.class'; do
  run 1 "new refuses '$name'" new "$name"
done
run 0 'new without a namespace' new plainop
run 0 'its spec passes too' check plainop.lua
run 0 'show of a spec of ones own' show acme.swishy --spec acme_swishy.lua
run 0 'list with it' list --spec acme_swishy.lua --json
grep -q '"acme.swishy"' said; ok $? '  names it'
mkdir 'sp ec'
cp acme_swishy.lua 'sp ec/my $spec.lua'
run 0 'a spec with blanks in its path' generate --out 'out put' --prefix acme --spec 'sp ec/my $spec.lua' --ops acme.swishy --dtypes f32
printf 'include out\\ put/acme.d\n' >depends.mk
make -n -f depends.mk >said 2>&1; ! grep -q 'multiple target\|missing separator' said; ok $? '  its depfile is one'

# ---- a reduction of three lines, and one of the library's with states of two parts
cat >sums.lua <<'END'
reduction "acme.hypot_sum" {
  doc = "The root of the sum of squares.", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)",
}
END
run 0 'a reduction passes check' check sums.lua
run 0 'and generates' generate --single --out sums --prefix acme --spec sums.lua --ops argmax --dtypes f32
bad() { printf '%s\n' "$1" >bad.lua; run 1 "$2" check bad.lua; says "$3"; }
bad 'reduction "acme.r" { doc = "x", dtypes = floating, combine = "a > b" }' 'a combine of another dtype' \
  'bad.lua:1:63: acme.r: combine gives bool, expected f32'
bad 'reduction "acme.r" { doc = "x", dtypes = numeric, combine = "a + b", empty = -INFINITY }' 'an empty that is no integer' \
  'empty is -inf, which is no i8'
bad 'reduction "acme.r" { doc = "x", dtypes = floating, combine = { f32 = "a + b" } }' 'no combine for f64' \
  'bad.lua:1:1: acme.r: combine is missing for f64'
bad 'row "acme.r" { doc = "x", dtypes = floating, body = "x + sum(a)", inputs = "x, axes" }' 'an input called axes' \
  "'axes' is a parameter of every op that reduces or scans"
cat >sums.c <<'END'
#include <stdio.h>
#include "acme.h"
int main(void) {
  float x[6] = {3, 4, 0, 5, 12, 0}, sums[2];
  int64_t places[2], shape[2] = {2, 3}, n = 2;
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
  DLTensor out = {.data = sums, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n};
  DLTensor at = {.data = places, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLInt, 64, 1}, .shape = &n};
  acme_scalar last = {.kind = ACME_I64, .v = {.i = 2}};
  acme_call call = {.size = sizeof call, .params = &last, .n_params = 1};
  if (acme_hypot_sum(&in, &out, &call) || acme_argmax(&in, &at, &call)) return puts(acme_last_error());
  return printf("%g %g %d %d\n", sums[0], sums[1], (int)places[0], (int)places[1]) < 0;
}
END
cat >last.lua <<'END'
scan "acme.last" {
  doc = "The last that is not 0.", dtypes = numeric, combine = "b != 0 ? b : a", initial = 0,
  examples = { { x = { 0, 2, 0 }, out = { 0, 2, 2 } } },
}
END
run 0 'a scan passes check' check last.lua
bad 'scan "acme.s" { doc = "x", dtypes = floating, combine = "a - b", initial = 0 }' 'a scan that is not associative' \
  'acme.s: combine is not associative in f32'
bad 'scan "acme.s" { doc = "x", dtypes = floating, combine = "a ! b", initial = 0 }' 'a scan with an error in combine' \
  "bad.lua:1:60: acme.s: expected ';' after the expression, found '!'"
run 0 'a scan generates' generate --single --out last --prefix acme --spec last.lua --ops acme.last --dtypes f32
cat >last.c <<'END'
#include <stdio.h>
#include "acme.h"
int main(void) {
  float x[6] = {0, 4, 0, 5, 0, 0}, y[6];
  int64_t shape[2] = {2, 3};
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape}, out = in;
  acme_scalar along = {.kind = ACME_I64, .v = {.i = 2}};
  acme_call call = {.size = sizeof call, .params = &along, .n_params = 1};
  out.data = y;
  if (acme_last(&in, &out, &call)) return puts(acme_last_error());
  return printf("%g %g %g %g %g %g\n", y[0], y[1], y[2], y[3], y[4], y[5]) < 0;
}
END
"$quick_cc" -std=gnu11 -O0 -Ilast last.c last/acme.c -o last/run -lpthread >said 2>&1; ok $? '  compiles as one file'
[ "$(./last/run)" = '0 4 4 5 5 5' ]; ok $? '  and scans'
"$quick_cc" -std=gnu11 -O0 -Isums sums.c sums/acme.c -o sums/run -lpthread >said 2>&1; ok $? '  compiles as one file'
[ "$(./sums/run)" = '5 13 1 1' ]; ok $? '  and gives 5 and 13, at places 1 and 1'

done_testing
