#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t010-kernel-primitives.sh: builds kernel_subject.c with each compiler found, at each SIMD level this machine runs and at several
# optimisation levels, also with a stranger's flags, and lets t010-kernel-primitives.c compare them all.
# QUERN_TEST_FULL=1 builds every combination; otherwise each compiler, level and -O appears in a choice of them, of which each day
# has a third: every build is held to the references by itself.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t010.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# a line: label, compiler, flags; the remarks of builds labelled `vector` are checked
speed='-std=c11 -fno-math-errno -fno-trapping-math'
{
  echo "vector gcc -O3 -march=x86-64-v3 $speed"
  echo "vector gcc -O3 -march=x86-64-v4 $speed -mprefer-vector-width=512"
  echo "vector clang-19 -O3 -march=x86-64-v3 $speed"
  echo "vector clang-19 -O3 -march=x86-64-v4 $speed -mprefer-vector-width=512"
  echo "vector clang-14 -O3 -march=x86-64-v3 $speed"
  echo "plain gcc -O3 -march=native -std=gnu11"
  echo "plain clang-19 -O3 -march=native -std=gnu11 -Wno-invalid-feature-combination"
  echo "plain gcc -O0 -march=x86-64 -std=c11"
  echo "plain gcc -O2 -march=x86-64-v2 -std=gnu11"
  echo "plain clang-19 -O0 -march=x86-64-v2 -std=c11"
  echo "plain clang-14 -O2 -march=x86-64 -std=gnu11"
  if [ -n "${QUERN_TEST_FULL:-}" ]; then
    for compiler in gcc clang-19 clang-14; do
      for level in x86-64 x86-64-v2 x86-64-v3 x86-64-v4; do
        for o in -O0 -O1 -O2 -O3; do echo "plain $compiler $o -march=$level -std=c11"; done
      done
    done
    echo "vector clang-14 -O3 -march=x86-64-v4 $speed -mprefer-vector-width=512"
    echo "plain clang-14 -O3 -march=native -std=gnu11"
  fi
} >"$work/list"

runs() { # does this machine run the level?
  case $1 in
    *-v4*) grep -q avx512vl /proc/cpuinfo && grep -q avx512dq /proc/cpuinfo && grep -q avx512bw /proc/cpuinfo ;;
    *-v3*) grep -q avx2 /proc/cpuinfo && grep -q fma /proc/cpuinfo && grep -q f16c /proc/cpuinfo ;;
  esac
}
number=0 case=0
while read -r label compiler flags; do
  case=$((case + 1))
  [ -n "${QUERN_TEST_FULL:-}" ] || in_part $case 6 >>"$work/day" || continue
  command -v "$compiler" >/dev/null || { echo "# not built, no $compiler: $flags"; continue; }
  runs "$flags" || { echo "# not built, this machine does not run it: $compiler $flags"; continue; }
  number=$((number + 1))
  level=${flags##*-march=}
  object=$work/$(printf '%02d-%s_%s_%s' $number "$compiler" "${level%% *}" "${flags%% *}")
  remarks=
  [ "$label" = vector ] && case $compiler in
    gcc) remarks='-fopt-info-vec-optimized --param max-tree-if-conversion-phi-args=64 -fno-ipa-icf' ;;
    *) remarks='-Rpass=loop-vectorize -Wno-error' ;;
  esac
  echo "$compiler $flags -Wall -Wextra -Werror $remarks -fPIC -shared -o $object.so $here/../support/references/kernel_subject.c 2>$object.$label" >>"$work/commands"
done <"$work/list"
tr '\n' '\0' <"$work/commands" | xargs -0 -n 1 -P 2 sh -c 'eval "$0" || exit 255' 2>"$work/xargs"
if [ $? -ne 0 ]; then
  echo '1..1'
  echo 'not ok 1 - kernel_subject.c compiles without warnings'
  grep -h -E 'error|warning' "$work"/*.plain "$work"/*.vector "$work/xargs" | sed 's/^/# /' | head -40
  exit 1
fi
for file in "$work"/*.vector; do [ -f "$file" ] && mv "$file" "${file%.vector}.remarks"; done
${CC:-cc} -std=c11 -O2 -Wall -Wextra -I "$here/../support" -I "$here/../support/references" -o "$work/t010" "$here/t010-kernel-primitives.c" "$here/../support/tap.c" -ldl -lm -lpthread || exit 1
"$work/t010" "$work"/*.so
status=$?
cat "$work/day" 2>/dev/null
exit $status
