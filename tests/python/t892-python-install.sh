#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t892-python-install.sh: the library installed, then `pip install ./python` into a virtual environment, without a network and in
# folders with blanks: by QUERN_PREFIX, pkg-config and CMAKE_PREFIX_PATH; the wheel, the sdist, an editable install; one sentence
# where something is missing.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
[ -e "$build/python/quern/_quern.abi3.so" ] || skip_all 'this build has no Python package'
case $(nm -D "$build/libquern.so" 2>&1) in
  *__asan_* | *__tsan_*) skip_all 'a sanitizer must be the first library of a process' ;;
esac
python=${QUERN_TEST_PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
"$python" -c 'import ensurepip, venv' 2>/dev/null || skip_all "$python makes no virtual environments (Debian: python3-venv)"
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t892.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# without NAME WANTED COMMAND...: it fails, says WANTED, and shows no traceback
without() {
  name=$1 wanted=$2
  shift 2
  ! "$@" >said 2>&1 && grep -q "quern: .*$wanted" said && ! grep -q Traceback said
  ok $? "$name"
}

# Nobody's settings, no index.
unset PIP_FIND_LINKS QUERN_PREFIX CMAKE_PREFIX_PATH PKG_CONFIG_PATH PYTHONPATH VIRTUAL_ENV CC CPPFLAGS CFLAGS LDFLAGS
PKG_CONFIG_LIBDIR=$work/none PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
HOME=$work/home CFLAGS=-O0
export PKG_CONFIG_LIBDIR PIP_CONFIG_FILE PIP_NO_INDEX PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR HOME CFLAGS

try 'the library is installed' cmake --install "$build" --prefix "$work/its prefix"
prefix=$work/its\ prefix
mkdir -p "a copy/include/quern" && cp -R "$source/python" "$source/LICENSE" "a copy/"
cp "$source/include/quern/quern.h" "a copy/include/quern/" # the version
copy=$work/a\ copy/python
rm -f "$copy/quern/_quern.abi3.so" "$copy/quern/__init__.pyi" # of an editable install
listing() { (cd "$copy" && find . -type f | sort | xargs -d '\n' cksum); }
listing >before
try 'a virtual environment' "$python" -m venv environment
PATH=$work/environment/bin:$PATH
package=$(python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/quern
pip --version | sed 's/ from .*//; s/^/# /'

# A program from elsewhere, with nothing in its environment.
cat >program.py <<'PY'
import array, sys
import quern
x = array.array("f", [-1, 0, 1, 2])
y = array.array("f", bytes(16))
assert quern.relu(x, out=y) is y
assert y.tolist() == [0, 0, 1, 2], y
assert memoryview(quern.add(x, 1.0)).tolist() == [0, 1, 2, 3]
print(quern.__version__)
PY
works() { (cd / && env -i "$work/environment/bin/python" -I "$work/program.py") >said 2>&1 && [ "$(cat said)" = "$version" ]; }
version=$(sed -n 's/^#define QUERN_VERSION_[A-Z]* *//p' "$source/include/quern/quern.h" | paste -sd.)
[ -n "$version" ] && grep -q "^project(quern VERSION $version " "$source/CMakeLists.txt"
ok $? "the package's version is the library's: $version"

# ---- what is missing
without 'no library' 'the C library.* is not found.*QUERN_PREFIX' env QUERN_PREFIX="$work/nowhere" pip install "$copy"
without 'a relative prefix' 'QUERN_PREFIX is stage, expected an absolute path' env QUERN_PREFIX=stage pip install "$copy"
mkdir -p old/include/quern
printf '#define QUERN_VERSION_MAJOR 0\n#define QUERN_VERSION_MINOR 7\n' >old/include/quern/quern.h
without "a library of another version" 'old (version 0.7)' env QUERN_PREFIX="$work/old" pip install "$copy"
without 'a compiler that is not there' 'the C compiler no-such-cc' env QUERN_PREFIX="$prefix" CC=no-such-cc pip install "$copy"
pip=$(command -v pip)
without 'no compiler at all' 'there is no C compiler' env QUERN_PREFIX="$prefix" PATH=/nonexistent "$pip" install "$copy"
without 'a compiler that fails' 'the C compiler failed' env QUERN_PREFIX="$prefix" CC=false pip install "$copy"
hook() { # hook STATEMENTS: in Python, with the backend
  (cd "$copy" && QUERN_PREFIX=$prefix python -B -c "import sysconfig, build_backend as backend; $1")
}
without "no headers of Python's" 'Python.h is not in /nowhere' hook 'sysconfig.get_path = lambda name: "/nowhere"
backend.compile_module("x")'
! python -c 'import quern' >said 2>&1; ok $? 'nothing has been installed by these'

# ---- the ways to the library
try 'pip install ./python, by QUERN_PREFIX' env QUERN_PREFIX="$prefix" pip install "$copy"
works; ok $? '  a program elsewhere works, with no environment'
readelf -d "$package/_quern.abi3.so" >said
grep -qF "[$prefix/lib" said; ok $? '  its run path is where the library is'
! grep NEEDED said | grep -vE '\[(libquern\.so\.0|libc\.so\.6|libpthread\.so\.0|ld-linux.*)\]'
ok $? '  it needs the library and libc'
[ -e "$package/py.typed" ] && grep -q '^relu: _relu$' "$package/__init__.pyi"; ok $? '  with its type stub'
try '  is uninstalled' pip uninstall -y quern
[ ! -e "$package" ]; ok $? '  and leaves nothing'
if command -v pkg-config >/dev/null; then
  pc=$(find "$prefix" -name quern.pc)
  try 'pip install ./python, by pkg-config' env PKG_CONFIG_PATH="${pc%/*}" pip install "$copy"
  works; ok $? '  works'
fi
try 'pip wheel, by CMAKE_PREFIX_PATH' env CMAKE_PREFIX_PATH="/nonexistent:$prefix" pip wheel -w wheels "$copy"
listing >after
cmp before after >said 2>&1; ok $? 'none of it has left a trace in the sources'

# ---- the wheel
cat >wheel.py <<'PY'
import base64, csv, hashlib, io, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
info = "quern-%s.dist-info/" % sys.argv[2]
record = list(csv.reader(io.TextIOWrapper(archive.open(info + "RECORD"))))
assert sorted(row[0] for row in record) == sorted(archive.namelist()), "RECORD names what is there"
for name, digest, size in record:
    content = archive.read(name)
    if name != info + "RECORD":
        assert int(size) == len(content), name
        assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), name
for name in ("METADATA", "WHEEL", "licenses/LICENSE"):
    assert info + name in archive.namelist(), name
metadata = archive.read(info + "METADATA").decode()
for line in ("Name: quern", "Version: " + sys.argv[2], "Requires-Python: >=3.9", "License-Expression: Apache-2.0"):
    assert line in metadata.split("\n\n")[0].split("\n"), line
assert "Requires-Dist" not in metadata
PY
wheel=$(ls wheels)
case $wheel in quern-$version-cp39-abi3-linux_*.whl) true ;; *) false ;; esac
ok $? "the wheel is for every CPython from 3.9 on: $wheel"
try '  RECORD and metadata are right' python wheel.py "wheels/$wheel" "$version"
mkdir again
hook "backend.build_wheel('$work/again')" >said 2>&1 && cmp "wheels/$wheel" "again/$wheel" >>said 2>&1
ok $? '  the same bytes when it is built again'
try '  installs' pip install --force-reinstall "wheels/$wheel"
works; ok $? '  and works'
hook 'import tomllib
read = tomllib.load(open("pyproject.toml", "rb"))
assert read["project"] == backend.PROJECT and read["build-system"]["requires"] == []' >said 2>&1 ||
  grep -q "No module named 'tomllib'" said
ok $? 'the backend reads pyproject.toml as others do'

# ---- the sdist
hook "print(backend.build_sdist('$work'))" >said 2>&1
ok $? "an sdist: $(cat said)"
tar -tzf "quern-$version.tar.gz" | sed "s|^quern-$version/||" | sort >packed
(cd "$copy" && find . -type f | sed 's|^\./||'; printf 'LICENSE\nPKG-INFO\n') | grep -v CMakeLists.txt | sort >wanted
diff wanted packed >said; ok $? '  has all that the package is made of'
try '  is installed' env QUERN_PREFIX="$prefix" pip install --force-reinstall "quern-$version.tar.gz"
works; ok $? '  and works'

# ---- an editable install
pip uninstall -y quern >said 2>&1
try 'pip install -e ./python' env QUERN_PREFIX="$prefix" pip install -e "$copy"
works; ok $? '  works'
echo 'edited = True' >>"$copy/quern/__init__.py"
try '  and sees what is edited' python -c 'import quern; assert quern.edited'
try '  is uninstalled' pip uninstall -y quern
! (cd / && python -c 'import quern') >said 2>&1; ok $? '  and is gone'

done_testing
