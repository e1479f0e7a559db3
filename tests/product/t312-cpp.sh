#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t312-cpp.sh: quern.hpp and the C++ header of a tree: clients (cpp/) without a warning in C++17 to C++23, by GCC and Clang, and run. Each day has C++17 by both,
# C++20 by one of them and C++23 by the other.
. "$(dirname "$0")/../support/tap.sh"

: "${QUERN_BUILD_DIR:?the folder of libquern.so}" "${QUERN_SOURCE_DIR:?the repository}"
work=$(mktemp -d) || bail "no temporary folder"
trap 'rm -rf "$work"' EXIT
said=$work/log
echo "TAP version 13"
skip_sanitised "$QUERN_BUILD_DIR/libquern.so"
headers="-I$QUERN_SOURCE_DIR/include -I$QUERN_BUILD_DIR/generated"
strict="-Wall -Wextra -Wpedantic -Wold-style-cast -Wshadow -Wconversion -Wsign-conversion -Werror"
link="-L$QUERN_BUILD_DIR -Wl,-rpath,$QUERN_BUILD_DIR -lquern"
clients=$QUERN_SOURCE_DIR/tests/product/cpp

# ---- A tree
cat >"$work/acme.lua" <<'END'
op "minus" { doc = "x - y.", inputs = "x, y", dtypes = floating, body = "x - y" }
END
cd "$work" || bail "no $work"
try "a tree" lua5.4 "$QUERN_SOURCE_DIR/build.lua" generate --prefix acme --ops clip,sum --spec acme.lua --dtypes f32 --out tree
try "is configured" env CC="$quick_cc" CXX="$quick_cxx" cmake -S tree -B built -DCMAKE_BUILD_TYPE=Debug
try "and built" cmake --build built
archive=$(find built -name '*.a')
! grep -n 'quern' tree/acme.hpp >"$said"
ok $? "its C++ header does not name the library"

# ---- Clients
turn=1 # g++ 20: 2, 23: 3; clang++ 20: 4, 23: 5
for compiler in g++ clang++-19; do
  if ! command -v $compiler >/dev/null; then
    skip "$compiler" "it is not installed"
    continue
  fi
  for standard in 17 20 23; do
    if [ $standard != 17 ]; then
      turn=$((turn + 1))
      in_part $(((turn + 1) % 4 / 2)) 2 || continue # 2 and 5, 3 and 4
    fi
    checked= # of the header: numbers of others must not overflow there
    [ $compiler$standard != g++17 ] || checked='-fsanitize=undefined -fno-sanitize-recover=undefined'
    try "$compiler, C++$standard: a client of the library" $compiler -std=c++$standard $strict $checked $headers "$clients/client.cc" -o client $link
    [ "$(./client 2>&1 | tee "$said")" = "done" ]
    ok $? "and runs"
    try "$compiler, C++$standard: a client of a tree" $compiler -std=c++$standard $strict -Itree "$clients/tree.cc" -o tree_client "$archive" -lpthread
    [ "$(./tree_client 2>&1 | tee "$said")" = "done" ]
    ok $? "and runs"
  done
  printf '#include <quern/ops.hpp>\nvoid twice(float (&x)[2]) { quern::multiply(x, 2.0f, x); }\n' >number.cc
  ! $compiler -std=c++17 $headers -fsyntax-only number.cc 2>"$said"
  ok $? "$compiler: a number without a name is refused"
  grep -q 'a number is an operand as a variable of its dtype' "$said"; ok $? "and what to write is said"
  echo '#include <quern/ops.hpp>' >plain.cc
  try "$compiler: without exceptions and RTTI" $compiler -std=c++17 $strict $headers -fno-exceptions -fno-rtti -c plain.cc -o plain.o
done
done_testing
