#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t575-program.sh: the program quern as its users meet it: what it computes and prints, exit statuses and messages, outputs that
# are there whole or not at all. QUERN_PROGRAM: another one than that of the build.
set -u
. "$(dirname "$0")/../support/tap.sh"
program=${QUERN_PROGRAM:-${QUERN_BUILD_DIR:-build}/bin/quern}
if [ ! -x "$program" ]; then
  skip_all "this build has no program: $program"
fi
case $program in
  /*) ;;
  *) program=$PWD/$program ;;
esac
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t575.XXXXXX") || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work" || exit 1
QUERN_CACHE_DIR=$work/cache
export QUERN_CACHE_DIR
unset QUERN_JIT QUERN_LOG

# quern STATUS NAME ARGUMENT...: the program ends with that status; its output is in said, its complaints in why
quern() {
  wanted=$1 name=$2
  shift 2
  "$program" "$@" >said 2>why
  got=$?
  [ $got = "$wanted" ]
  status=$?
  [ $status = 0 ] || echo "exit $got, wanted $wanted: $*" >>why
  ok $status "$name"
}
says() { grep -qF -- "$1" why; ok $? "  and says: $1"; }
prints() { grep -qE -- "$1" said; ok $? "  and prints: $1"; }
silent() { [ ! -s why ]; ok $? "  and complains of nothing"; }
clean() { ! ls -A | grep -q '^\.quern'; ok $? "  no temporary file is left"; }

# ---- files, without NumPy: save and load .npy by Python's own struct
cat >npyfile.py <<'PY'
import itertools, math, struct, sys

LETTER = {"b1": "?", "u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q", "f2": "e", "f4": "f",
          "f8": "d", "V2": "H"}

def save(path, descr, shape, values, version=1, fortran=False, text=None, more=b""):
    n = math.prod(shape)
    values = [v for v, _ in zip(itertools.cycle(values), range(n))]
    if fortran:
        flat, values = values, []
        strides = [math.prod(shape[k + 1:]) for k in range(len(shape))]
        for index in itertools.product(*[range(s) for s in reversed(shape)]):
            values.append(flat[sum(i * s for i, s in zip(reversed(index), strides))])
    text = text or "{'descr': '%s', 'fortran_order': %s, 'shape': %r, }" % (descr, fortran, tuple(shape))
    size = 10 if version == 1 else 12
    text += " " * (-(size + len(text) + 1) % 64) + "\n"
    data = struct.pack("<%d%s" % (n, LETTER[descr[1:]]), *values)
    head = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()
    open(path, "wb").write(head + data + more)

def load(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\1\0", data[:8]
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0 and data[9 + size] == 10
    head = eval(data[10:10 + size])
    assert not head["fortran_order"] and sorted(head) == ["descr", "fortran_order", "shape"], head
    n = math.prod(head["shape"])
    return head["descr"], head["shape"], list(struct.unpack("<%d%s" % (n, LETTER[head["descr"][1:]]), data[10 + size:]))

def expect(path, descr, shape, values):
    got = load(path)
    assert got[:2] == (descr, tuple(shape)), got[:2]
    assert got[2] == list(values), (got[2][:8], list(values)[:8])
PY
python() { python3 -c "import sys; sys.path.insert(0, '.'); sys.dont_write_bytecode = True
from npyfile import *
$1" >said 2>why; }
python '
save("x.npy", "<f4", (100, 3), [k / 4 - 20 for k in range(300)])
save("w.npy", "<f4", (3,), [1, 2, -3])
save("b.npy", "<f4", (), [0.5])
save("i.npy", "<i4", (4,), [1, -2, 3, 2147483647])
save("four.npy", "<f4", (4,), [1, 2, 3, 4])
save("f16.npy", "<f2", (4,), [1, -2, 0.5, 65504])
save("big.npy", "<f8", (1 << 20,), [1.5])
'
ok $? 'files to work on'

# ---- help, versions, misuse
quern 0 '--version' --version
prints '^quern [0-9]+\.[0-9]+\.[0-9]+$'
silent
quern 0 '--help' --help
prints '^quern run EXPRESSION'
prints '^quern cache'
silent
quern 0 'help of a command' run --help
prints '^quern run EXPRESSION'
cp said run.help
quern 0 'help by the command help' help run
cmp -s said run.help; ok $? '  which is the same'
quern 0 'help without a name' help
prints '^Exit status: 0: done. 1: '
quern 0 'version' version
prints '^quern [0-9]+\.[0-9]+\.[0-9]+$'
for command in run ops show info cache help version; do
  "$program" help $command | grep -o '^  --[a-z]*' | tr -d ' ' >options
  "$program" $command --help >said 2>why && grep -q "^quern $command" said; ok $? "$command --help"
  [ -z "$(sed 's/^/x/' options | while read -r o; do o=${o#x}; "$program" $command "$o=?" 2>&1 | grep -F "unknown option $o"; done)" ]
  ok $? '  names no option that is not known'
done
quern 2 'help of what is no command' help rum
says "unknown command 'rum', did you mean run?"
quern 2 'a command cut short' ver
says 'did you mean version?'
quern 2 'no command'
says 'a command is wanted'
says 'usage: quern'
quern 2 'an unknown command' grind
says "unknown command 'grind'"
quern 2 'an option for a command' --json
quern 2 'run without an expression' run
says 'an expression is wanted'
says 'usage: quern run'
quern 2 'an unknown option' run 'y = x' x=x.npy y=y.npy --fast
says 'unknown option --fast'
quern 2 'an option with a letter too few' run 'y = x' x=x.npy y=y.npy --treads 3
says 'unknown option --treads, did you mean --threads?'
quern 2 'an unknown time to show progress' run 'y = x' x=x.npy y=y.npy --progress sometimes
quern 2 'an option cut short' run 'y = x' x=x.npy y=y.npy --rep 3
quern 2 'an option without its value' run 'y = x' x=x.npy y=y.npy --repeat
says '--repeat wants a value'
quern 2 'a flag with a value' run 'y = x' x=x.npy y=y.npy --explain=1
for value in 0 -1 x 1.5 '' 10000000 99999999999; do quern 2 "--repeat '$value'" run 'y = x' x=x.npy y=y.npy --repeat "$value"; done
for value in 0 -1 many 10000; do quern 2 "--threads $value" run 'y = x' x=x.npy y=y.npy --threads $value; done
quern 2 'an unknown mode' run 'y = x' x=x.npy y=y.npy --jit never
says 'off, sync or async'
for word in x x= =x.npy x:=x.npy x:f31=x.npy x:f32 '1x=x.npy' 'x[3]=x.npy' 'x y=x.npy' 'é=x.npy'; do
  quern 2 "the word '$word'" run 'y = x' "$word" y=y.npy
done
quern 2 'a name twice' run 'y = x' x=x.npy x=w.npy y=y.npy
says 'x is given twice'
for value in a a= =1 a=1x a=0x a=1e a=1,5 a=- a=1e999 a=99999999999999999999 a=-9223372036854775809 'a= 1' a=infinite a=0b1 a=1_0; do
  quern 2 "--param '$value'" run 'param a; y = x * a' x=x.npy y=y.npy --param "$value"
done
quern 2 'a parameter twice' run 'param a; y = x * a' x=x.npy y=y.npy --param a=1 --param a=2
quern 2 'ops with two names' ops add abs
quern 2 'info with a word' info all
quern 2 'an unknown action on the cache' cache burn
quern 2 'show without an expression' show
for word in x=x.npy x x:f31[3] 'x:f32[3' 'x:f32[3]]' 'x:f32[-3]' 'x:f32[3,]' 'x:f32[,3]' 'x:f32[3.5]' 'x:f32 [3]' 'x:f32[99999999999999999999]'; do
  quern 2 "show of '$word'" show 'y = x' "$word"
done
[ ! -e y.npy ]; ok $? 'none of these has written anything'

# ---- ops, info, cache
quern 0 'ops' ops
prints '^add\(x, y\) '
prints '^leaky_relu\(x, slope=0\.01\) '
silent
quern 0 'ops of one' ops leaky_relu
prints '^op: leaky_relu\(x, slope=0\.01\)$'
prints '^input x: .*f32'
prints '^param slope: 0\.01$'
quern 1 'ops of an unknown one' ops gelo
says 'quern: there is no op gelo; the nearest name is gelu'
quern 1 "ops of NumPy's name of one" ops arcsin
says 'quern: there is no op arcsin: write asin'
quern 1 'run of a misspelt op' run glu x=x.npy
says "unknown function 'glu', did you mean"
quern 1 'run of NumPy'"'"'s name of an op' run arcsin x=x.npy
says 'write asin'
quern 1 'show of a misspelt op' show Geluu
says "did you mean 'gelu'"
quern 1 'show of one with two letters exchanged' show gleu
says "did you mean 'gelu'"
quern 0 'ops --json' ops --json
cp said ops.json
python3 -c '
import json
ops = json.load(open("said"))
names = [op["name"] for op in ops]
assert names == sorted(names) and "gelu" in names, names
add, clip = ops[names.index("add")], ops[names.index("clip")]
assert [a["name"] for a in add["inputs"]] == ["x", "y"] and "f32" in add["inputs"][0]["dtypes"], add
assert [p["name"] for p in clip["params"]] == ["min", "max"] and clip["params"][0]["default"] == "-inf", clip
assert all(op["doc"] and len(op["outputs"]) >= 1 for op in ops)' 2>why
ok $? '  is JSON, and holds what it should'
quern 0 'ops of one as JSON' ops gelu --json
python3 -m json.tool said >/dev/null 2>why; ok $? '  is JSON'
quern 1 'a spec that is not there' ops --spec missing.lua
says 'missing.lua'
quern 0 'info' info
for key in version isa threads generator clang cc cuda jit cache; do prints "^$key: ."; done
silent
cp said info
quern 0 'ops with a filter' ops --filter HYPERBOLIC
prints '^tanh\(x\)'
! grep -q '^add(' said; ok $? '  not others'
quern 1 '  that none has' ops --filter 'no such text'
quern 0 'ops, names alone' ops --names
[ "$(grep -c . said)" = "$(python3 -c 'import json; print(len(json.load(open("ops.json"))))')" ]; ok $? '  all of them'
quern 0 'ops' ops
sed -n '/^backward ops/,$p' said >backward
grep -q '^gelu_backward(grad, x)' backward && ! grep -q '^gelu(' backward && ! sed '/^backward ops/,$d' said | grep -q '^[a-z0-9_]*_backward'
ok $? '  lists backward ops apart'
quern 0 'cache list' cache list
prints '[0-9]+ entries'
quern 0 'cache clear' cache clear
prints '[0-9]+ entries removed'
quern 0 'cache' cache
if [ -c /dev/full ]; then
  "$program" ops >/dev/full 2>why
  [ $? = 1 ]; ok $? 'output that cannot be printed is a failure'
  says 'standard output: '
else
  skip 'output that cannot be printed' 'there is no /dev/full'
fi

# ---- run: an op by its name
quern 0 'an op by its name' run gelu x=x.npy y=g.npy
quern 0 '  as an expression' run 'gelu(x)' x=x.npy out=out.npy
cmp g.npy out.npy >said 2>&1; ok $? '  gives the same bits'
quern 0 'an op of two inputs' run divide x=four.npy y=four.npy out=out.npy
python 'expect("out.npy", "<f4", (4,), [1, 1, 1, 1])'; ok $? '  has them by name'
quern 0 'an op over axes' run sum x=x.npy axis=-1 out=out.npy
quern 0 '  as an expression' run 'sum(x, axis=-1)' x=x.npy out=g.npy
cmp g.npy out.npy >said 2>&1; ok $? '  gives the same bits'
quern 0 '  that keeps them' run sum x=four.npy axis=0 keepdims=1
[ "$(cat said)" = '[10]' ]; ok $? '  as its parameter says'
quern 1 '  an axis too many' run sum x=x.npy axis=2
says 'axis=2: the input has 2 dimensions'
quern 1 '  an axis that is none' run sum x=x.npy axis=rows
quern 0 'a scan' run cumulative_sum x=four.npy axis=0 include_initial=1
[ "$(cat said)" = '[0, 1, 3, 6, 10]' ]; ok $? '  that cannot be prepared'
quern 0 'a parameter of an op' run leaky_relu x=four.npy slope=2 out=out.npy
quern 1 '  that is no number' run leaky_relu x=four.npy slope=x.npy
says "slope is a parameter, a number: slope=0.5; 'x.npy' is none"
quern 0 'a parameter as a word' run 'param a; y = x * a' x=four.npy a=2
[ "$(cat said)" = '[2, 4, 6, 8]' ]; ok $? '  is that of --param'
quern 1 '  and by --param' run 'param a; y = x * a' x=four.npy a=2 --param a=3
says 'parameter a is given twice'
quern 1 'a number for an input' run 'y = x * w' x=four.npy w=2
says 'w is an input, for which a file is wanted, and there is none called 2'
quern 0 'an op without inputs' run arange out:i32[4]=out.npy start=3
python 'expect("out.npy", "<i4", (4,), [3, 4, 5, 6])'; ok $? '  has its output'"'"'s dtype and shape'
quern 1 '  needs them' run arange out=no.npy
says "its output's dtype and shape are wanted, as in out:f32[10]=FILE"
quern 1 'a shape where inputs give it' run gelu x=x.npy out:f32[100,3]=no.npy
quern 1 'an op with a name too many' run gelu x=x.npy y=no.npy z=no.npy
says "unknown names: y, z; the op's inputs are x, its outputs out"
quern 0 'an operand that is called as an op' run 'exp' exp=four.npy
[ "$(cat said)" = '[1, 2, 3, 4]' ]; ok $? '  is one'

# ---- run: standard input and output
"$program" run 'y = x * 2' x=- y=- <four.npy 2>why >out.npy
ok $? 'from standard input to standard output'
silent
python 'expect("out.npy", "<f4", (4,), [2, 4, 6, 8])'; ok $? '  is the array'
cat four.npy | "$program" run gelu x=- 2>why >said; ok $? 'from a pipe'
"$program" run 'y = x * 2; z = x + 1' x=four.npy y=- --explain 2>why | cat >out.npy
python 'expect("out.npy", "<f4", (4,), [2, 4, 6, 8])'; ok $? 'what is printed besides goes to standard error'
"$program" run 'y = x * 2; z = x + 1' x=four.npy y=- 2>why >out.npy
grep -q '^z: \[2, 3, 4, 5\]$' why || grep -q '^\[2, 3, 4, 5\]$' why; ok $? '  such as another output'
for size in 0 5 40 100 140; do
  head -c $size four.npy | "$program" run 'y = x * 2' x=- >said 2>why
  [ $? = 1 ] && grep -q '^quern: -: ' why; ok $? "an input that ends after $size bytes is refused"
done
cat four.npy four.npy | "$program" run 'y = x * 2' x=- >said 2>why
[ $? = 1 ]; ok $? 'one that goes on behind its array, too'
says 'something comes behind its array'
quern 1 'standard input twice' run 'y = x * w' x=- w=- y=no.npy <four.npy
says 'standard input is one input only'
quern 1 'standard output twice' run 'y = x; z = x' x=four.npy y=- z=-
says 'standard output is one output only'

# ---- run: archives
cat >npz.py <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED if sys.argv[2] == "packed" else zipfile.ZIP_STORED) as z:
    for word in sys.argv[3:]:
        name, path = word.split("=")
        with z.open(name + ".npy", "w", force_zip64=True) as to: # as numpy.savez does
            to.write(open(path, "rb").read())
PY
python3 npz.py plain.npz plain x=x.npy w=w.npy
python3 npz.py packed.npz packed x=x.npy w=w.npy
python3 npz.py one.npz plain a=four.npy
quern 0 'an expression of files' run 'y = x * w' x=x.npy w=w.npy y=out.npy
quern 0 'of an archive' run 'y = x * w' x=plain.npz w=plain.npz y=g.npy
cmp g.npy out.npy >said 2>&1; ok $? '  gives the same bits'
quern 0 'an array by its name' run 'y = a * 1' a=plain.npz:w
[ "$(cat said)" = '[1, 2, -3]' ]; ok $? '  is that'
quern 0 'an archive of one array' run 'y = q * 1' q=one.npz
quern 1 'an array that is not there' run 'y = q * 1' q=plain.npz
says 'quern: plain.npz: this archive has no array q; it has x, w'
quern 0 'outputs into one archive' run 'y = x * w; z = w + 1' x=x.npy w=w.npy y=both.npz z=both.npz:zed
python3 -c '
import zipfile
z = zipfile.ZipFile("both.npz")
assert z.testzip() is None and z.namelist() == ["y.npy", "zed.npy"], z.namelist()
assert z.read("y.npy") == open("out.npy", "rb").read()' >said 2>why
ok $? '  that Python reads'
quern 0 '  and the program' run copy x=both.npz:y out=g.npy
cmp g.npy out.npy >said 2>&1; ok $? '  with the same bytes'
quern 1 'two outputs of one name' run 'y = x * w; z = w + 1' x=x.npy w=w.npy y=no.npz:a z=no.npz:a
[ ! -e no.npz ]; ok $? '  are not written'
clean
"$program" run copy x=packed.npz out=g.npy >said 2>why
if grep -q 'built without zlib' why; then
  skip 'packed archives' 'this program is built without zlib'
else
  quern 0 'a packed archive' run 'y = x * w' x=packed.npz w=packed.npz y=g.npy
  cmp g.npy out.npy >said 2>&1; ok $? '  gives the same bits'
  quern 0 '--compress' run 'y = x * 2; z = x + 1' x=big.npy y=both.npz z=both.npz --compress
  [ "$(wc -c <both.npz)" -lt 100000 ]; ok $? '  packs'
  quern 0 '  one of these alone' run 'z = x + 1' x=big.npy z=out.npy
  python3 -c '
import zipfile
z = zipfile.ZipFile("both.npz")
assert z.testzip() is None and z.read("z.npy") == open("out.npy", "rb").read()' >said 2>why
  ok $? '  so that Python reads it'
fi
part=; for k in 0 1 2 3; do if in_part $k 4 >day; then part="$part$k"; fi; [ $k != 0 ] || cat day; done # a fourth, others each day
python3 - "$program" "$part" >said 2>why <<'PY'
import subprocess, sys
for name in ("plain.npz", "packed.npz"):
    good = open(name, "rb").read()
    cut = [good[:n] for n in range(0, len(good), max(1, len(good) // 40))]
    changed = [good[:k] + bytes([good[k] ^ 0x55]) + good[k + 1:] for k in range(3, len(good), max(1, len(good) // 120))]
    for k, bad in enumerate(cut + changed):
        if str(k % 4) not in sys.argv[2]:
            continue
        open("bad.npz", "wb").write(bad)
        got = subprocess.run([sys.argv[1], "run", "y = x + 1", "x=bad.npz:x", "y=no.npy"], capture_output=True, text=True)
        if k < len(cut):
            assert got.returncode == 1, (name, k)
        assert got.returncode in (0, 1) and (got.returncode == 0 or got.stderr.startswith("quern: bad.npz:x: ")), (name, k, got)
PY
ok $? 'archives that are cut short or changed are refused, or the array is whole'
rm -f no.npy

# ---- run: values
quern 0 'an expression' run 'y = x * w + b' x=x.npy w=w.npy b=b.npy y=out.npy
silent
[ ! -s said ]; ok $? '  and prints nothing'
python 'expect("out.npy", "<f4", (100, 3), [(k / 4 - 20) * [1, 2, -3][k % 3] + 0.5 for k in range(300)])'
ok $? '  with the right values'
clean
quern 0 'without an assignment the output is out' run 'x * w' x=x.npy w=w.npy out=out.npy
quern 0 'an op with an output as large as values say' run nonzero x=x.npy out=out.npy --explain
prints '^variant: qk_nonzero_'
quern 1 '  in an expression' run 'y = nonzero(x)' x=x.npy y=no.npy
says 'call it by itself'
quern 1 '  of another dtype' run nonzero x=x.npy out:f32=no.npy
quern 1 '  on a device' run nonzero x=x.npy out=no.npy --device cuda
says 'runs on the cpu only'
[ ! -e no.npy ]; ok $? '  nothing is written'
quern 0 'two outputs' run 'y = x + w; z = y * w' x=x.npy w=w.npy y=out.npy z=z.npy
python '
x = [k / 4 - 20 for k in range(300)]; w = [1, 2, -3] * 100
expect("out.npy", "<f4", (100, 3), [a + b for a, b in zip(x, w)])
expect("z.npy", "<f4", (100, 3), [(a + b) * b for a, b in zip(x, w)])'
ok $? '  with the right values'
quern 0 'an expression that begins with a minus' run '-x' x=four.npy out=out.npy
quern 0 '  behind two' run -- '-x' x=four.npy out=out.npy
quern 0 'options and names in any order' run --repeat 2 'y = gelu(x * w)' y=out.npy --jit=off w=w.npy x=x.npy
cp out.npy off.npy
for mode in sync async; do
  quern 0 "--jit $mode" run 'y = gelu(x * w)' x=x.npy w=w.npy y=out.npy --jit $mode --threads 2
  cmp out.npy off.npy >said 2>&1; ok $? '  gives the same bits'
done
quern 0 'an output of another dtype' run 'y = x * 2' x=f16.npy y:f32=out.npy
python 'expect("out.npy", "<f4", (4,), [2, -4, 1, 131008])'; ok $? '  holds the unrounded values'
quern 0 'one of bf16' run 'y = x + 0' x=four.npy y:bf16=out.npy
python 'expect("out.npy", "<V2", (4,), [0x3f80, 0x4000, 0x4040, 0x4080])'; ok $? "  is written as '<V2'"
quern 0 '  which is read again' run 'y = x * 2' x:bf16=out.npy y:f32=out.npy
python 'expect("out.npy", "<f4", (4,), [2, 4, 6, 8])'; ok $? '  as what it was'
quern 1 'an output of a kind that does not hold the result' run 'y = x * 2' x=four.npy y:i32=no.npy
says 'dtype i32'
[ ! -e no.npy ]; ok $? '  is not written'

# ---- dtypes, orders, versions
python '
import itertools
values = {"b1": [True, False, True], "u1": [0, 255, 7], "i1": [-128, 127, -1], "u2": [0, 65535, 258], "i2": [-32768, 5, 32767],
          "u4": [0, 2**32 - 1, 65537], "u8": [0, 2**64 - 1, 2**53 + 1], "i4": [-2**31, 5, 2**31 - 1], "i8": [-2**63, 3, 2**63 - 1],
          "f2": [1.5, -0.0, 65504.0], "f4": [0.1, float("inf"), -2.0], "f8": [0.1, 5e-324, -1e300]}
for (dtype, v), version, fortran in itertools.product(values.items(), (1, 2, 3), (False, True)):
    v = list(struct.unpack("<3" + LETTER[dtype], struct.pack("<3" + LETTER[dtype], *v)))
    order = "|" if dtype[1:] == "1" else "<"
    save("in_%s_%d%d.npy" % (dtype, version, fortran), order + dtype, (2, 3, 2), v, version, fortran)
    save("ref_%s_%d%d.npy" % (dtype, version, fortran), order + dtype, (2, 3, 2), v)'
ok $? 'files of every dtype, version and order'
for file in in_*.npy; do
  "$program" run 'y = copy(x)' x=$file y=out.npy >said 2>why
  status=$?
  python "a, b = load('out.npy'), load('ref${file#in}'); assert repr(a) == repr(b), (a, b)" || status=1
  ok $status "$file, read and written"
done
python '
save("u2.npy", "<u2", (3,), [0x3f80, 0xc000, 0x7fc0]); save("v2.npy", "<V2", (3,), [0x3f80, 0xc000, 0x7fc0])
save("i2.npy", "<i2", (3,), [0x3f80, -0x4000, 0x7fc0]); save("half.npy", "<f2", (3,), [1, -2, 0.5])
save("bits.npy", "|V2", (3,), [0x3c00, 0xc000, 0x3800])'
for file in u2 v2 i2; do
  quern 0 "16-bit words of $file as bf16" run 'y = x * 1' x:bf16=$file.npy y:f32=out.npy
  python 'a = load("out.npy"); assert a[2][:2] == [1, -2] and math.isnan(a[2][2]), a'; ok $? '  have its values'
done
quern 0 'words of no type as f16' run 'y = x * 1' x:f16=bits.npy y:f32=out.npy
python 'expect("out.npy", "<f4", (3,), [1, -2, 0.5])'; ok $? '  have its values'
quern 0 'a dtype that is the file'"'"'s own' run 'y = x * 1' x:f16=half.npy y:f32=out.npy
quern 1 'a dtype that is not' run 'y = x * 1' x:f64=x.npy y=no.npy
says "quern: x.npy: it holds f32 ('<f4'), not f64"
quern 1 'words of no type without a dtype' run 'y = x * 1' x=bits.npy y=no.npy
says 'say x:bf16=FILE or x:f16=FILE'
quern 0 'an integer of 16 bits as itself' run 'y = x - 0x3f81' x=u2.npy y=out.npy
python 'expect("out.npy", "<u2", (3,), [0xffff, 0x807f, 0x403f])'; ok $? '  wraps'
python '
save("empty.npy", "<f4", (0, 3), []); save("scalar.npy", "<f8", (), [2.5])
save("deep.npy", "<f4", (1,) * 31 + (2,), [1, 2])
save("deeper.npy", "<f4", (1,) * 33, [1])'
quern 0 'an empty array' run 'y = x * w' x=empty.npy w=w.npy y=out.npy
python 'expect("out.npy", "<f4", (0, 3), [])'; ok $? '  gives an empty one'
quern 0 'arrays of no dimensions' run 'y = x * x' x=scalar.npy y=out.npy
python 'expect("out.npy", "<f8", (), [6.25])'; ok $? '  give one'
quern 0 '32 dimensions' run 'y = x * 2' x=deep.npy y=out.npy
quern 1 '33 dimensions' run 'y = x * 2' x=deeper.npy y=no.npy
says 'more than 32 dimensions'

# ---- parameters
for pair in 3:3 -2:-2 0x10:16 -0x8:-8 2.5:2.5 .5:0.5 2.:2 1e1:10 0x1.8p1:3 +4:4 0:0 18446744073709551615:18446744073709551615; do
  quern 0 "--param a=${pair%:*}" run 'param a; y = x * a' x=four.npy y=out.npy --param "a=${pair%:*}"
  python "f = lambda v: struct.unpack('<f', struct.pack('<f', v))[0]
expect('out.npy', '<f4', (4,), [f(k * f(${pair#*:})) for k in (1, 2, 3, 4)])"; ok $? '  is that number'
done
quern 0 '--param a=inf' run 'param a; y = x * a' x=four.npy y=out.npy --param a=-inf
python 'expect("out.npy", "<f4", (4,), [float("-inf")] * 4)'; ok $? '  is infinite'
quern 0 '--param a=nan' run 'param a; y = x * a' x=four.npy y=out.npy --param=a=nan
python 'assert all(math.isnan(v) for v in load("out.npy")[2])'; ok $? '  is no number'
quern 1 'a parameter without a value' run 'param a; y = x * a' x=four.npy y=no.npy
says 'missing names: parameter a has no value: --param a=NUMBER'
quern 1 'a value without a parameter' run 'param a; y = x * a' x=four.npy y=no.npy --param a=1 --param b=1
says 'unknown names: --param b'

# ---- names
quern 1 'a name too few' run 'y = x * w' x=x.npy y=no.npy
says 'quern: missing names: w; '
quern 1 'no output file, and too many elements to print' run 'y = x * w' x=x.npy w=w.npy
says 'missing names: y has 300 elements, and 100 are printed at most; give it a file: y=FILE'
quern 0 'no output file for a number' run 's = sum(x * x)' x=four.npy
[ "$(cat said)" = 30 ]; ok $? '  prints it alone'
quern 0 'none for rows' run 's = max(x + 0.1, axis=-1); t = x > 3; (f64)sum(x, axis=-1) / 4' x=four.npy
printf 's: 4.1\nt: [false, false, false, true]\nout: 2.5\n' >wanted
cmp -s said wanted; ok $? '  prints each by its name'
quern 0 'a file for one of two' run 's = sum(x, axis=0, keepdims=1); y = x - s' x=four.npy y=out.npy
[ "$(cat said)" = '[10]' ]; ok $? '  prints the other one'
quern 0 '--explain without a file' run 's = mean((i8)x)' x=four.npy --explain
grep -qx 's: 2.5' said && grep -q '^tier: ' said; ok $? '  prints both'
quern 1 'a name too many' run 'y = x * 2' x=x.npy q=w.npy y=no.npy
says 'quern: unknown names: q; '
quern 1 'an op for an operand' run 'gelu + 1' x=x.npy y=no.npy
says 'gelu is an op too: it is called as in gelu(x)'
quern 1 '  of two inputs' run 'divide + 1' x=x.npy y=w.npy out=no.npy
says 'divide is an op too: it is called as in divide(x, y)'
quern 1 '  of several outputs' run 'modf + 1' x=x.npy fraction=no.npy
says 'modf is an op too: it is called as in modf.fraction(x)'
quern 1 '  that is no part of one' run full out=no.npy
! grep -q 'is an op too' why; ok $? '  is not said to be called'
quern 1 'an expression that is none' run 'y = x +' x=x.npy y=no.npy
says 'quern: '
quern 1 'an op that is not there' run 'y = gelo(x)' x=x.npy y=no.npy
quern 1 'shapes that do not broadcast' run 'y = x * f' x=x.npy f=four.npy y=no.npy
says '[100, 3]'
[ ! -e no.npy ]; ok $? 'none of these has written anything'

# ---- files that lie
python '
save("swapped.npy", "<f4", (4,), [1], text="{\"descr\": \">f4\", \"fortran_order\": False, \"shape\": (4,)}")
save("object.npy", "<f4", (4,), [1], text="{\"descr\": \"|O\", \"fortran_order\": False, \"shape\": (4,)}")
save("records.npy", "<f4", (4,), [1], text="{\"descr\": [(\"a\", \"<f4\")], \"fortran_order\": False, \"shape\": (4,)}")
save("negative.npy", "<f4", (4,), [1], text="{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (-4,)}")
save("overflow.npy", "<f4", (4,), [1], text="{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (4611686018427387904, 16)}")
save("huge.npy", "<f4", (4,), [1], text="{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1000000000000,)}")
save("longer.npy", "<f4", (4,), [1], more=b"x")
save("strings.npy", "<f4", (4,), [1], text="{\"descr\": \"<U1\", \"fortran_order\": False, \"shape\": (4,)}")
save("complex.npy", "<f4", (4,), [1], text="{\"descr\": \"<c8\", \"fortran_order\": False, \"shape\": (2,)}")
data = open("four.npy", "rb").read()
open("short.npy", "wb").write(data[:-1]); open("head.npy", "wb").write(data[:40]); open("nothing.npy", "wb").write(b"")
open("picture.npy", "wb").write(b"P6\n1 1 255\n..."); open("folder.npy", "wb").close()'
rm folder.npy && mkdir folder.npy
lies() { # lies FILE WORDS
  quern 1 "$1" run 'y = x * 2' x=$1 y=no.npy
  says "quern: $1: "
  says "$2"
  [ "$(wc -l <why)" = 1 ]; ok $? '  in one line'
}
lies missing.npy 'there is no such file'
lies folder.npy 'this is a folder'
lies nothing.npy 'the file is empty'
lies picture.npy 'this is not an .npy file'
lies head.npy 'truncated'
lies short.npy 'truncated: its header says 16 bytes of data, there are 15'
lies longer.npy 'too long'
lies huge.npy 'truncated'
lies overflow.npy 'more than 2^62 bytes'
lies negative.npy 'a negative extent'
lies swapped.npy "byte-swapped ('>f4')"
lies object.npy 'Python objects'
lies records.npy 'records'
lies strings.npy 'strings'
lies complex.npy 'complex numbers'
[ ! -e no.npy ]; ok $? 'none of these has written anything'
clean

# ---- outputs: whole or not at all
quern 0 'an output in the place of an input' run 'y = x * 2' x=four.npy y=four.npy
python 'expect("four.npy", "<f4", (4,), [2, 4, 6, 8])'; ok $? '  holds the result'
python 'save("one.npy", "<f4", (3,), [1, 2, 3]); save("two.npy", "<f4", (3,), [4, 5, 6])'
quern 0 'two that change places' run 'y = b + 0; z = a + 0' a=one.npy b=two.npy y=one.npy z=two.npy
python 'expect("one.npy", "<f4", (3,), [4, 5, 6]); expect("two.npy", "<f4", (3,), [1, 2, 3])'; ok $? '  have changed places'
chmod 640 out.npy
quern 0 'an output that exists' run 'y = x * 2' x=four.npy y=out.npy
[ "$(stat -c %a out.npy)" = 640 ]; ok $? '  keeps its mode'
rm -f new.npy
(umask 027 && "$program" run 'y = x * 2' x=four.npy y=new.npy)
[ "$(stat -c %a new.npy)" = 640 ]; ok $? 'a new one has the mode that the user wants'
mkdir -p elsewhere
ln -sf elsewhere/real.npy link.npy
quern 1 'a link to nothing' run 'y = x * 2' x=four.npy y=link.npy
cp out.npy elsewhere/real.npy
quern 0 'a link' run 'y = x * 3' x=four.npy y=link.npy
[ -L link.npy ] && python 'expect("elsewhere/real.npy", "<f4", (4,), [6, 12, 18, 24])'; ok $? '  stays one, and its file is written'
cp four.npy first.npy
cp four.npy kept.npy
kept() { # kept NAME WORDS ARGUMENT...: exits with 1 and first.npy stays as it is
  what=$1 words=$2
  shift 2
  quern 1 "$what" run 'y = x * 2; z = x * 3' x=four.npy y=first.npy "$@"
  says "$words"
  cmp first.npy kept.npy >said 2>&1; ok $? '  the other output is as it was'
  clean
}
kept 'a folder that is not there' 'nowhere/z.npy: there is no such folder' z=nowhere/z.npy
kept 'a folder for a file' 'folder.npy: this is a folder' z=folder.npy
kept 'a name that ends with a slash' 'z/: there is no such folder' z=z/
kept 'a device' 'not a regular file' z=/dev/null
kept 'a file as a folder' 'Not a directory' z=four.npy/z.npy
kept 'a folder that takes no files' '/proc/z.npy: ' z=/proc/z.npy
kept 'both in one file' 'y and z would be written to one file' z=./first.npy
if [ "$(id -u)" = 0 ]; then
  skip 'a folder that may not be written' 'root writes everywhere'
  skip 'a file that may not be written' 'root writes everywhere'
else
  mkdir readonly && chmod 555 readonly
  kept 'a folder that may not be written' 'Permission denied' z=readonly/z.npy
  cp four.npy fixed.npy && chmod 444 fixed.npy
  kept 'a file that may not be written' 'Permission denied' z=fixed.npy
fi
python 'save("wide.npy", "<f4", (100000,), [1])'
rm -f z.npy
(ulimit -f 400 && exec "$program" run 'y = x > 0; z = x * 3' x=wide.npy y=first.npy z:f64=z.npy) >said 2>why
[ $? = 1 ]; ok $? 'a second output that finds no room'
says 'quern: z.npy: '
says 'File too large'
cmp first.npy kept.npy >said 2>&1 && [ ! -e z.npy ]; ok $? '  leaves both as they were'
clean

# A run that does not end by itself, and a signal once its temporary file is there. Whoever started this test may ignore
# SIGHUP, as nohup does, and so would the program, rightly.
heeding='import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])'
for number in 15 1 9; do # SIGTERM, SIGHUP, SIGKILL
  cp kept.npy first.npy
  python3 -c "$heeding" "$program" run 'y = gelu(x)' x=big.npy y=first.npy --repeat 1000000 >said 2>why &
  child=$!
  tries=0
  until ls -A | grep -q '^\.quern' || [ $tries = 200 ]; do
    sleep 0.05
    tries=$((tries + 1))
  done
  kill -$number $child
  (sleep 20; kill -9 $child) >/dev/null 2>&1 & # so that this test ends
  watch=$!
  wait $child 2>/dev/null
  status=$?
  kill $watch
  [ $tries -lt 200 ] && [ $status = $((128 + number)) ] && cmp first.npy kept.npy >said 2>&1
  ok $? "signal $number: the output is as it was"
  [ $number = 9 ] && rm -f .quern-*.tmp
  clean
done

# ---- standard files that are closed
"$program" run 'y = x * 2' x=four.npy y=out.npy --explain >&- 2>why
[ $? = 1 ]; ok $? 'a closed standard output is a failure'
python 'expect("out.npy", "<f4", (4,), [4, 8, 12, 16])'; ok $? '  and does not get into the file'
"$program" run 'y = x * 2' x=four.npy y=out.npy <&- >said 2>&-
ok $? 'a closed standard input and error are none'

# ---- explain, repeat
quern 0 '--explain' run 'y = gelu(x * 2)' x=big.npy y=out.npy --explain --repeat 3 --jit off --threads 1
for key in tier reason variant isa threads nodes compile_ms run_ms gbps; do prints "^$key: "; done
! grep -vE '^[a-z_0-9() ]+: ' said >why; ok $? '  one key: value a line'
python3 -c '
facts = dict(line.rstrip("\n").split(": ", 1) for line in open("said"))
ms, gbps = float(facts["run_ms"]), float(facts["gbps"])
assert ms > 0 and abs(gbps - 2 * 8 * 2**20 / ms / 1e6) <= 0.01 * gbps + 0.001, facts
assert facts["threads"] == "1", facts' 2>why
ok $? '  that add up'
quern 0 '--repeat alone' run 'y = x * 2' x=four.npy y=out.npy --repeat 5
[ "$(cat said | cut -d: -f1)" = run_ms ]; ok $? '  prints the median time'

# ---- show, and a spec
cat >spec.lua <<'SPEC'
unary "acme.twice" {
  doc      = "Two x.",
  dtypes   = floating,
  body     = [[ x + x ]],
  ulp      = { f32 = 0.5, f64 = 0.5 },
  examples = { { x = 1.0, y = 2.0 } },
}
SPEC
if grep -q '^generator: ready' info; then
  quern 0 'show of an op' show gelu
  prints 'Q_KERNELS_END'
  quern 0 '  of integers' show bitwise_and
  quern 0 '  with its operands' show add 'x:f64[3]' 'y:f64[3]'
  prints 'f64'
  quern 0 'show' show 'y = gelu(x * w + b)' 'x:f32[100,3]' 'w:f32[3]' b:f32
  prints 'kernel\.h'
  silent
  quern 0 'show of an expression that reduces' show 's = sum(exp(x - max(x)))' 'x:f32[100]'
  prints 'qj_kernel_pass2'
  quern 0 'show of an output of another dtype' show 'y = x * 2' 'x:f16[100]' y:f32
  quern 0 'run with a spec' run 'y = acme.twice(x) * 2' x=four.npy y=out.npy --spec spec.lua
  python 'expect("out.npy", "<f4", (4,), [8, 16, 24, 32])'; ok $? '  computes its op'
  printf 'reduction "acme.hypot_sum" {\n  doc = "The norm.", dtypes = floating, lift = "x * x", combine = "a + b", finish = "sqrt(a)",\n}\n' >norm.lua
  for jit in off sync; do
    quern 0 "run with a reduction of three lines, --jit $jit" run 'y = acme.hypot_sum(x > 4 ? x * 0.5 : 0, keepdims=1)' x=four.npy y=out.npy --spec norm.lua --jit $jit
    python 'expect("out.npy", "<f4", (1,), [5])'; ok $? '  computes it'
  done
  cat >named.lua <<'SPEC'
unary "acme.named" {
  doc = "Names of parameters say nothing.", dtypes = floating, params = { axes = -1, keepdims = 0, initial = 0.5, exclusive = 0 },
  body = [[ x * axes + keepdims + initial + exclusive ]],
}
SPEC
  quern 0 'an op with parameters called like those of a reduction' run acme.named x=four.npy axes=2.5 keepdims=0.25 out=out.npy --spec named.lua
  python 'expect("out.npy", "<f4", (4,), [5.75, 10.75, 15.75, 20.75])'; ok $? '  computes with them as numbers'
  quern 1 '  and has no axis' run acme.named x=four.npy axis=0 out=out.npy --spec named.lua
  says 'axis'
  quern 0 'ops with a spec' ops acme.twice --spec spec.lua
else
  skip 'show, and a spec' "$(sed -n 's/^generator: //p' info)"
fi
quern 1 'show without a shape' show 'y = x * w' 'x:f32[3]'
says 'missing names: w'
quern 1 'show of shapes that do not broadcast' show 'y = x * w' 'x:f32[3]' 'w:f32[4]'
quern 1 'show of a shape that is too large' show 'y = x * 2' 'x:f32[4294967296,4294967296]'

if grep -q '^clang: ready' info; then
  quern 0 'cache clear' cache clear
  quern 0 'an expression that is compiled' run 'y = x * x + 3' x=four.npy y=out.npy --jit sync --explain
  prints '^tier: clang$'
  quern 0 'cache list' cache list
  prints '^[1-9][0-9]* entries, [1-9][0-9]* bytes$'
  quern 0 'in another process' run 'y = x * x + 3' x=four.npy y=out.npy --jit sync --explain
  prints '^tier: disk$'
  quern 0 'cache clear' cache clear
  prints '^[1-9][0-9]* entries removed$'
  quern 0 'cache list' cache list
  prints '^0 entries, 0 bytes$'
else
  skip 'compiled code in the cache' "$(sed -n 's/^clang: //p' info)"
fi

# ---- progress
cat >terminal.py <<'PY'
import os, pty, select, signal, subprocess, sys, time
main, other = pty.openpty()
started, seconds = time.monotonic(), float(sys.argv[1])
child = subprocess.Popen(sys.argv[2:], stderr=other, stdout=subprocess.DEVNULL)
os.close(other)
text = b""
while time.monotonic() - started < seconds and b"computing" not in text:
    if select.select([main], [], [], 0.1)[0]:
        try:
            text += os.read(main, 4096)
        except OSError:
            break
    elif child.poll() is not None:
        break
after = time.monotonic() - started
child.terminate()
child.wait()
print(repr(text), after)
sys.exit(0 if b"computing" in text and after >= 1.9 else 3 if text else 4)
PY
python3 terminal.py 20 "$program" run 'y = gelu(x)' x=big.npy y=out.npy --repeat 1000000 --threads 1 >said 2>why
[ $? = 0 ]; ok $? 'long work shows progress on a terminal, after two seconds'
python3 terminal.py 20 "$program" run 'y = x * 2' x=four.npy y=out.npy >said 2>why
[ $? = 4 ]; ok $? 'short work shows none'
quern 0 '--progress always, not on a terminal' run 'y = x * 2' x=four.npy y=out.npy --progress always
grep -q '^quern: reading four.npy' why && grep -q '^quern: writing out.npy' why; ok $? '  tells each step in a line'
python3 terminal.py 2.5 "$program" run 'y = gelu(x)' x=big.npy y=out.npy --repeat 1000000 --threads 1 --progress never >said 2>why
[ $? = 4 ]; ok $? '--progress never shows none'
clean

# ---- profile
QUERN_PROFILE=profile.csv "$program" run 'y = x * 2 + 1' x=four.npy y=out.npy >said 2>why
ok $? 'QUERN_PROFILE=FILE'
silent
python3 -c '
import csv
rows = list(csv.reader(open("profile.csv")))
call, total = [r for r in rows if r[1] == "run"], [r for r in rows if r[1] == "total"]
assert len(call) == 1 and call[0][3:5] == ["expression", "cpu"] and call[0][8:10] == ["f32 > f32", "4 > 4"] and call[0][11] == "y = x * 2 + 1", rows
assert len(total) == 1 and total[0][4] == "1" and total[0][5] == call[0][7], rows' >said 2>why
ok $? '  has a line, and a total, that are CSV'
QUERN_PROFILE=1 "$program" run gelu x=four.npy y=out.npy >said 2>why
grep -q '^quern_profile,run,[0-9]*,gelu,cpu,built,' why; ok $? 'QUERN_PROFILE=1: on standard error'

# ---- completions and man pages
made=$(dirname "$(dirname "$program")")/commands
if [ -f "$made/quern.bash" ]; then
  for name in quern quern-gen; do
    bash -n "$made/$name.bash" >said 2>why; ok $? "$name.bash is bash"
    if command -v zsh >/dev/null; then zsh -n "$made/_$name" >said 2>why; ok $? "_$name is zsh"; else skip "_$name" 'no zsh here'; fi
    if command -v fish >/dev/null; then fish -n "$made/$name.fish" >said 2>why; ok $? "$name.fish is fish"; else skip "$name.fish" 'no fish here'; fi
    if command -v man >/dev/null; then
      LC_ALL=C.UTF-8 MANROFFSEQ= MANWIDTH=80 man --warnings -E UTF-8 -l "$made/$name.1" >said 2>why
      [ $? = 0 ] && [ ! -s why ] && grep -q -- '--spec' said; ok $? "$name.1 is a man page without warnings"
    else
      skip "$name.1" 'no man here'
    fi
  done
  complete() { # the words that bash would offer behind these
    PATH=$(dirname "$program"):$PATH bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quern; echo "${COMPREPLY[@]}"' bash "$made/quern.bash" "$@" >said 2>why
  }
  complete quern sh && [ "$(cat said)" = show ]; ok $? 'bash completes a command'
  complete quern run --th && [ "$(cat said)" = --threads ]; ok $? '  an option'
  complete quern run x --jit a && [ "$(cat said)" = async ]; ok $? '  its value'
  complete quern ops leaky && grep -q '^leaky_relu ' said; ok $? '  an op'
  complete quern run y x=fou && grep -qx 'four.npy' said; ok $? '  a file behind a name'
else
  skip 'completions and man pages' 'this program is not of a build'
fi

# ---- NumPy, where there is one
if python3 -c 'import numpy' 2>/dev/null; then
  cat >with_numpy.py <<'PY'
import os, subprocess, sys
import numpy as np

def run(*words):
    return subprocess.run([sys.argv[1], "run", *words], capture_output=True, text=True)

rng = np.random.default_rng(575)
for dtype in ["?", "u1", "i4", "i8", "f2", "f4", "f8"]:
    for shape in [(), (0,), (7,), (5, 3), (2, 1, 4), (3, 4, 5, 2)]:
        for order in "CF":
            x = np.asarray(rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype), order=order)
            np.save("n.npy", x)
            got = run("y = copy(x)", "x=n.npy", "y=m.npy")
            assert got.returncode == 0, got.stderr
            y = np.load("m.npy")
            assert y.dtype == x.dtype and y.shape == x.shape and y.flags.c_contiguous and np.array_equal(x, y), (dtype, shape, order)
            np.save("n.npy", np.ascontiguousarray(x).reshape(shape))
            assert open("n.npy", "rb").read() == open("m.npy", "rb").read(), (dtype, shape, "is not what NumPy writes")
x, w = rng.standard_normal((200, 30)).astype("f4"), rng.standard_normal(30).astype("f4")
np.save("n.npy", x), np.save("w.npy", w)
assert run("y = x * w - x / w; z = x < w", "x=n.npy", "w=w.npy", "y=m.npy", "z=z.npy").returncode == 0
assert np.array_equal(np.load("m.npy"), x * w - x / w) and np.array_equal(np.load("z.npy"), x < w)
for name, a in {"swapped": x.astype(">f4"), "records": np.zeros(3, [("a", "f4")]), "strings": np.array(["a"]), "complex": x.astype("c8"),
                "objects": np.array([None]), "long double": x.astype("g"), "times": np.zeros(2, "M8[s]"), "i1": np.zeros(2, "i1"),
                "u4": np.zeros(2, "u4"), "u8": np.zeros(2, "u8"), "void": np.zeros(2, "V8")}.items():
    np.save("n.npy", a, allow_pickle=True)
    got = run("y = x * 2", "x=n.npy", "y=no.npy")
    assert got.returncode == 1 and got.stderr.startswith("quern: n.npy: ") and got.stderr.count("\n") == 1, (name, got)
    assert not os.path.exists("no.npy")
for version in [(1, 0), (2, 0), (3, 0)]:
    with open("n.npy", "wb") as f:
        np.lib.format.write_array(f, x, version)
    assert run("y = x * 2", "x=n.npy", "y=m.npy").returncode == 0 and np.array_equal(np.load("m.npy"), x * 2), version
np.savez("n.npz", x)
assert "archive" in run("y = x * 2", "x=n.npz", "y=m.npy").stderr
PY
  python3 with_numpy.py "$program" >said 2>why
  ok $? 'files that NumPy writes and reads'
else
  skip 'files that NumPy writes and reads' 'python3 here has no NumPy'
fi

done_testing
