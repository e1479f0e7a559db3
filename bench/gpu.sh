#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# gpu.sh: times Quern's CUDA kernels on this machine's first device: beside a copy, and beside PyTorch, CuPy and Triton where
# they are installed. In under 8 minutes.
#   sh bench/gpu.sh [--build BUILD] [--out FILE.md] [--small] [--no-peers] [FILTER]     what gpu.py has
# A build that was made elsewhere serves: libquern.so and the folder quern of BUILD are all that is used. Lua's library
# (liblua5.4.so.0), where it is not installed, may lie in BUILD/quern. PYTHON: another python3.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$here/../build
previous=
for word in "$@"; do
  case $word in
    --build=*) build=${word#--build=} ;;
  esac
  [ "$previous" != --build ] || build=$word
  previous=$word
done
if [ ! -e "$build/libquern.so" ]; then
  echo "gpu.sh: $build/libquern.so is not there: --build BUILD" >&2
  exit 1
fi
build=$(cd "$build" && pwd)
LD_LIBRARY_PATH=$build/quern${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "${PYTHON:-python3}" -B "$here/gpu.py" "$@" --build "$build"
