#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# bootstrap.sh: from a fresh Debian 12 to a running demo or a tested build.
#   ./bootstrap.sh demo        installs what is missing, builds, runs the demo
#   ./bootstrap.sh test        the same, then the tests, some of them under the sanitizers; tests/README.md says which
#   ./bootstrap.sh test full   the exhaustive tests, and everything under the sanitizers
#   ./bootstrap.sh docs        the manual as a site, build/docs/html/index.html; docs --spec FILE: with pages of one's own ops;
#                              docs --peers: with PyTorch's errors in its pictures, which installs PyTorch
# Needs root or sudo only when a Debian package is missing. What is there already is not done again.
set -eu
cd "$(dirname "$0")"

# What the library, its modules and the demo need; and what the tests need beside that.
packages='gcc g++ libc6-dev binutils make cmake ninja-build pkg-config lua5.4 liblua5.4-dev clang-19 llvm-19-dev libclang-19-dev
  python3 python3-dev python3-numpy'
test_packages='libmpfr-dev libgmp-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user perl locales python3-pip python3-venv lua-check
  libclang-rt-19-dev aspell aspell-en abigail-tools'

# What a sanitised build of plain `test` holds: every kind of kernel and every way through the runtime, not every op.
subset='negative,sqrt,exp,gelu,relu,leaky_relu,add,multiply,divide,maximum,pow,less,equal,isnan,where,clip,fma,astype,copy,full'
subset=$subset,sin,log,nonzero,compress,modf,frexp,sum,mean,max,any,softmax,cumulative_sum,sum_initial,max_initial,cummax,floor_divide
subset=$subset,cumulative_prod,cumulative_sum_backward,cumulative_prod_backward,cummax_backward

usage() {
  sed -n '4,8s/^# \{0,1\}//p' bootstrap.sh >&2
  exit 2
}

install_packages() { # install_packages PACKAGE...: those that are missing
  if ! command -v dpkg-query >/dev/null; then
    echo "bootstrap.sh: no dpkg here. The build needs, by their Debian names: $*" >&2
    return
  fi
  missing=
  for package in "$@"; do
    case $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || :) in
      ii*) ;;
      *) missing="$missing $package" ;;
    esac
  done
  [ -n "$missing" ] || return 0
  echo "bootstrap.sh: installing$missing"
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null; then
    as_root='sudo'
  else
    echo "bootstrap.sh: these Debian packages are missing, and here is neither root nor sudo:$missing" >&2
    exit 1
  fi
  apt='apt-get -q -y -o DPkg::Lock::Timeout=300'
  $as_root env DEBIAN_FRONTEND=noninteractive $apt update
  $as_root env DEBIAN_FRONTEND=noninteractive $apt install --no-install-recommends $missing
}

# The level that sanitised kernels are built for. -O1 makes no vectors: they differ in little but what tables are looked up by.
one_level() { if grep -q avx2 /proc/cpuinfo 2>/dev/null; then echo v3; else echo v2; fi; }

# The level that plain `test` compiles for by -O1: that of machines older than this one.
quick_level() { [ "$(one_level)" = v2 ] || echo v2; }

# Clang's module of the plain build, if it has one: LLVM's headers take as long to compile as a third of a sanitised build, and
# LLVM itself has no sanitizer in it.
clang_module() { ! grep -q '^build quern/quern-clang.so' build/build.ninja || echo "$PWD/build/quern/quern-clang.so"; }

# configure PRESET FOLDER [OPTION]...: when it must.
configure() {
  preset=$1 folder=$2
  shift 2
  wanted="$preset $*"
  if [ ! -f "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/.configured" ] ||
    [ "$(cat "$folder/.configured" 2>/dev/null)" != "$wanted" ]; then
    cmake --preset "$preset" "$@"
    echo "$wanted" >"$folder/.configured"
  fi
}

# build PRESET FOLDER [OPTION]...: configures when it must, then builds what changed.
build() {
  configure "$@"
  cmake --build "$2" --target all
}

# The sanitised builds of plain `test`, of its ops, of tests of one tag each.
configure_sanitised() {
  for tag in memory threads; do
    preset=$([ $tag = memory ] && echo asan-ubsan || echo tsan)
    configure $preset build-$preset -DQUERN_OPS="$subset" -DQUERN_LEVELS="$(one_level)" -DQUERN_CLANG_MODULE="$(clang_module)" \
      -DQUERN_TEST_TAG=$tag
  done
}

# docs [--peers] [--spec FILE]...: the site's tools are Python's packages, in an environment of their own; --peers: with PyTorch.
docs() {
  peers=
  if [ "${1-}" = --peers ]; then
    peers=torch
    shift
  fi
  install_packages $packages python3-venv
  build release build -DQUERN_BUILD_TESTS=OFF -DQUERN_QUICK_LEVELS=
  venv=build/docs/venv
  if ! cmp -s docs/site/requirements.txt "$venv/installed"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q -r docs/site/requirements.txt
    cp docs/site/requirements.txt "$venv/installed"
  fi
  [ -z "$peers" ] || "$venv/bin/pip" install -q $peers
  PYTHONPATH=$PWD/build/python
  export PYTHONPATH
  exec "$venv/bin/python" docs/site/make.py --out build/docs "$@"
}

case "${1-} ${2-}" in
  'docs ' | 'docs --spec' | 'docs --peers')
    shift
    docs "$@"
    ;;
  'demo ')
    install_packages $packages
    build release build -DQUERN_BUILD_TESTS=OFF -DQUERN_QUICK_LEVELS=
    echo
    echo 'The kernel that examples/demo/filmic.lua becomes (lua5.4 build.lua show qk_demo_filmic_f32_f32_2d_cc --spec examples/demo/filmic.lua):'
    echo
    lua5.4 build.lua show qk_demo_filmic_f32_f32_2d_cc --spec examples/demo/filmic.lua
    echo
    exec build/examples/demo/quern-demo examples/data build/demo
    ;;
  'test ')
    install_packages $packages $test_packages
    configure release build -DQUERN_KEEP_REMARKS=OFF -DQUERN_BUILD_TESTS=ON -DQUERN_QUICK_LEVELS="$(quick_level)"
    configure_sanitised >build/sanitised.log 2>&1 & # one core; meanwhile the plain build has both
    cmake --build build --target all
    wait $! || { cat build/sanitised.log; exit 1; }
    cmake --build build-asan-ubsan --target all
    cmake --build build-tsan --target all
    exec sh tests/run.sh build build-asan-ubsan build-tsan
    ;;
  'test full')
    install_packages $packages $test_packages
    build release build -DQUERN_KEEP_REMARKS=ON -DQUERN_BUILD_TESTS=ON -DQUERN_QUICK_LEVELS=
    build asan-ubsan build-asan-ubsan -DQUERN_OPS= -DQUERN_LEVELS='v2;v3;v4' -DQUERN_CLANG_MODULE= -DQUERN_TEST_TAG=
    build tsan build-tsan -DQUERN_OPS= -DQUERN_LEVELS='v2;v3;v4' -DQUERN_CLANG_MODULE= -DQUERN_TEST_TAG=
    QUERN_TEST_EXHAUSTIVE=1
    export QUERN_TEST_EXHAUSTIVE
    exec sh tests/run.sh build build-asan-ubsan build-tsan
    ;;
  *) usage ;;
esac
