#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# python.sh: one test in Python, on the package of a build.
#   sh tests/support/python.sh BUILD FILE
# QUERN_TEST_PYTHON: the interpreter. Else Debian's python3, which has Debian's NumPy, or the first in PATH.
# QUERN_TEST_PACKAGE: the folder of a package for that interpreter on the build's library. Else the build's package.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
QUERN_SOURCE_DIR=$(cd "$here/../.." && pwd)
QUERN_BUILD_DIR=$(cd "$1" && pwd)
QUERN_MODULE_DIR=$QUERN_BUILD_DIR/quern
package=${QUERN_TEST_PACKAGE:-$QUERN_BUILD_DIR/python}
PYTHONPATH=$package:$here:$here/exchange # tap.py, odd_producer.py
PYTHONDONTWRITEBYTECODE=1
export QUERN_SOURCE_DIR QUERN_BUILD_DIR QUERN_MODULE_DIR PYTHONPATH PYTHONDONTWRITEBYTECODE
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}

ls "$package"/quern/_quern.*.so >/dev/null 2>&1 || skip 'this build has no Python package'
if [ -n "${QUERN_TEST_PYTHON-}" ]; then
  python=$QUERN_TEST_PYTHON
elif [ -x /usr/bin/python3 ]; then
  python=/usr/bin/python3
else
  python=python3
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is not Python 3.9 or later"

# A sanitizer's runtime must be the first library of a process.
# Nor may such a process exit while LLVM is being opened (runtime/base/files/module.c says why): whoever needs a compile waits for it.
preloaded() { env QUERN_JIT=sync LD_PRELOAD="$(cc -print-file-name="$1")" "$python" "$2"; }
case $(nm -D "$QUERN_BUILD_DIR/libquern.so" 2>&1) in
  *__tsan_*)
    # It sees the memory that the module and the library touch, and the interpreter's lock, which is made of pthread's.
    TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1}:allocator_may_return_null=1:report_thread_leaks=0:suppressions=$here/python_tsan.supp
    export TSAN_OPTIONS
    preloaded libtsan.so "$2"
    ;;
  *__asan_*)
    # The interpreter's small objects one by one, so that what is read after it is freed is seen. Of the leaks those that the
    # library or the module made themselves: the interpreter leaves much behind, but no call to malloc of theirs comes from it.
    PYTHONMALLOC=malloc
    ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=1:allocator_may_return_null=1}
    ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=${QUERN_TEST_FRAMES:-2}
    LSAN_OPTIONS=suppressions=$here/python.supp:print_suppressions=0
    export PYTHONMALLOC ASAN_OPTIONS LSAN_OPTIONS
    preloaded libasan.so "$2"
    ;;
  *) exec "$python" "$2" ;;
esac
