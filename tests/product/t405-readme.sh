#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t405-readme.sh: what docs/tour.md says, done: its C example against the installed library, by pkg-config and by find_package,
# shared and static; its spec checked; what `cmake --install` leaves under a DESTDIR. docs/reductions.md: its C example and its spec.
set -u
. "$(dirname "$0")/../support/tap.sh"
source=${QUERN_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${QUERN_BUILD_DIR:-$source/build}
if [ ! -e "$build/libquern.so" ]; then
  skip_all 'the library is not built here'
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t405.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1


# ---- installing
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
DESTDIR="$work/stage" cmake --install "$build" >said 2>&1
ok $? 'cmake --install with DESTDIR'
root=$work/stage$prefix
[ -d "$root" ] && [ "$(ls stage)" = "$(echo "$prefix" | cut -d/ -f2)" ]; ok $? '  stays within it'
lib=$(dirname "$(find "$root" -name 'libquern.so.0')")
for file in "$lib/libquern.so" "$lib/libquern.so.0" "$lib/libquern.so.0.1.0" "$lib/libquern.a" "$lib/pkgconfig/quern.pc" \
  "$lib/cmake/Quern/QuernConfig.cmake" "$lib/cmake/Quern/QuernConfigVersion.cmake" "$root/include/quern/quern.h" "$root/include/quern/dlpack.h" \
  "$root/include/quern/dlpack_exchange.h" "$root/include/quern/ops.h" "$root/share/quern/build.lua"; do
  [ -e "$file" ]; ok $? "  has ${file#"$root"/}"
done
readelf -d "$lib/libquern.so.0.1.0" >said
grep -q 'SONAME.*\[libquern\.so\.0\]' said; ok $? 'the soname is libquern.so.0'
! grep -qE 'RPATH|RUNPATH' said; ok $? '  there is no run path in it'
! grep NEEDED said | grep -vE '\[(libc|libpthread|ld-linux-x86-64|libm)\.so'; ok $? '  it needs libc only'
nm -D --defined-only "$lib/libquern.so" | awk '{ print $3 }' | grep -v '^quern_' >said
[ ! -s said ]; ok $? '  it exports quern_ names only'
! grep -rlF "$build/" "$root" --include='*.h' --include='*.pc' --include='*.cmake' --include='*.lua' >said
ok $? 'no path of the build is in what is installed'

# ---- the C example
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/docs/tour.md" >x.c
[ -s x.c ] && [ "$(wc -l <x.c)" -le 15 ]; ok $? 'the tour has a C example of at most 15 lines'
try 'pkg-config knows quern 0.1.0' env PKG_CONFIG_PATH="$lib/pkgconfig" pkg-config --print-errors --exact-version=0.1.0 quern
# the file finds everything from where it lies: here under a DESTDIR, which it knows nothing of
# (a path with a blank in it cannot pass through $(...), so the root is reached by a link)
link=$(mktemp -u "${TMPDIR:-/tmp}/quern-t405.XXXXXX") && ln -s "$work/stage" "$link" && trap 'rm -rf "$work" "$link"' EXIT
flags=$(PKG_CONFIG_PATH="$link/${lib#"$work/stage/"}/pkgconfig" pkg-config --cflags --libs quern 2>said)
cat >want <<'END'
-0.100211
-0.158655
-0.154269
1.39979
1.9545
2.48448
END
for compiler in gcc clang-19; do
  command -v $compiler >/dev/null || continue
  try "$compiler x.c \$(pkg-config --cflags --libs quern)" $compiler -Wall -Wextra -Werror x.c $flags -o x
  LD_LIBRARY_PATH=$lib ./x >got 2>said && diff want got >said
  ok $? '  runs, and is right'
done
command=$(grep "^cc x\\.c " "$source/docs/tour.md")
PKG_CONFIG_PATH="$link/${lib#"$work/stage/"}/pkgconfig" try "its command: $command" sh -c "$command"
./x >got 2>said && diff want got >said; ok $? '  the program finds its library'
try 'the static library' gcc -Wall -Wextra -Werror x.c -I"$root/include" "$lib/libquern.a" -pthread -o x-static
./x-static >got 2>said && diff want got >said
ok $? '  gives the same'
block() { awk -v first="^\`\`\`$1\$" '$0 ~ first { inside = 1; next } /^```$/ { inside = 0 } inside' "$source/docs/reductions.md"; }
block c >sums.c
try 'the C example of docs/reductions.md' gcc -Wall -Wextra -Werror sums.c $flags -o sums
LD_LIBRARY_PATH=$lib ./sums >got 2>said && sed -n 's/^It prints `\([^`]*\)`.*/\1/p' "$source/docs/reductions.md" >wanted && [ -s wanted ] &&
  diff wanted got >said
ok $? '  prints what the page says'
for language in 'c -std=c99' 'c -std=c11' 'c++ -std=c++17'; do
  echo '#include <quern/ops.h>' >h.c
  try "the headers as $language" gcc -x $language -pedantic-errors -Wall -Wextra -Werror -fsyntax-only -I"$root/include" h.c
done

# ---- find_package
mkdir project
cp x.c project/
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(x C)
find_package(Quern 0.1 REQUIRED)
add_executable(x x.c)
target_link_libraries(x PRIVATE Quern::quern)
add_executable(x-static x.c)
target_link_libraries(x-static PRIVATE Quern::quern-static)
execute_process(COMMAND lua5.4 ${QUERN_BUILD_LUA} list --json OUTPUT_FILE ${CMAKE_BINARY_DIR}/list.json RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the installed generator does not run")
endif()
CMAKE
try 'find_package(Quern 0.1)' cmake -S project -B project/build -G Ninja -DCMAKE_PREFIX_PATH="$root"
try '  builds' cmake --build project/build
for name in x x-static; do
  project/build/$name >got 2>said && diff want got >said
  ok $? "  $name gives the same"
done
try '  the installed generator lists the ops' python3 -m json.tool project/build/list.json
sed 's/Quern 0.1/Quern 0.2/' project/CMakeLists.txt >other && mkdir later && cp other later/CMakeLists.txt && cp x.c later/
cmake -S later -B later/build -G Ninja -DCMAKE_PREFIX_PATH="$root" >said 2>&1
[ $? != 0 ] && grep -q 'version' said; ok $? '  a later version is asked for in vain'
try 'the installed generator makes a tree' lua5.4 "$root/share/quern/build.lua" generate --prefix acme --ops add --dtypes f32 --out tree

# ---- the spec in the tour
awk '/^```lua$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/docs/tour.md" >softsign.lua
try "the tour's spec passes check" lua5.4 "$source/build.lua" check softsign.lua
grep -q 'acme.softsign takes' said; ok $? '  and defines acme.softsign'
block lua >acme.lua
try 'the spec of docs/reductions.md passes check' lua5.4 "$source/build.lua" check acme.lua
grep -q 'acme.hypot_sum takes' said && grep -q 'acme.center takes' said; ok $? '  and defines its ops'
sed -n 's/^| `\([a-z0-9_]*\)` |.*/\1/p' "$source/OPS.md" >ops
python3 -c '
import json
have = {o["name"] for o in json.load(open("project/build/list.json")) if not o["name"].endswith("_backward")}
said = set(open("ops").read().split())
assert have == said, have ^ said' >said 2>&1
ok $? 'OPS.md names every op'
python3 -c '
import json, re, sys
page = open(sys.argv[1]).read()
names = [o["name"] for o in json.load(open("project/build/list.json")) if "axes" in o["params"]]
names = [name for name in names if not re.search("_backward|_initial$|_last$", name)]
missing = [name for name in names if not re.search(r"`%s\b" % name, page)]
assert len(names) > 40 and not missing, missing' "$source/docs/reductions.md" >said 2>&1
ok $? 'docs/reductions.md names every op over axes'
for word in $(grep -ohE '`(tests|examples|include|dsl|templates|runtime|tools|gen|docs|bench|python)/[a-z0-9_./-]*`' "$source"/*.md "$source/docs/architecture.md" \
  "$source"/docs/internals/*.md | cut -d'`' -f2); do
  [ -e "$source/$word" ] || ls "$source/$word".* >/dev/null 2>&1 || echo "$word"
done >said
for link in $(grep -oE '\]\([^)#:]+' "$source"/*.md | sed "s|^$source/||; s|:](|:|"); do
  case $link in *:http*) continue ;; esac
  [ -e "$source/$(dirname "${link%%:*}")/${link#*:}" ] || echo "$link"
done >>said
[ ! -s said ]; ok $? 'every file that a document names or links to is there (links of docs/: t407)'

done_testing
