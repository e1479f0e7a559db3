#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tags: long
#
# t700-cuda-primitives.sh: builds tests/support/cuda/primitives.cu for the CPU with each C++ compiler found, and kernel_subject.c, its C
# twin, and gives the former to NVRTC for four architectures; t700-cuda-primitives.c compares the builds and reads the PTX.
# Needs neither CUDA nor a GPU. Each day has two of the compilers and, where NVRTC is, one architecture.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/tap.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/quern-t700.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
header=$here/../../templates/cuda/kernel_cuda.h support=$here/../support; subject=$support/cuda/primitives.cu
failed() {
  printf '1..1\nnot ok 1 - %s\n' "$1"
  sed 's/^/# /' "$work/log" | head -40
  exit 1
}

warnings='-Wall -Wextra -Werror'
host="-x c++ -ffp-contract=off $warnings -DQC_HOST -I $support/cuda -I $support -I $support/references -I $here/../../templates/cuda -fPIC -shared"
number=0 case=0
while read -r compiler flags; do
  case=$((case + 1))
  in_part $case 2 >>"$work/day" || continue
  command -v "$compiler" >/dev/null || { echo "# not built, no $compiler"; continue; }
  number=$((number + 1))
  # shellcheck disable=SC2086
  "$compiler" $flags $host -o "$work/$number-cuda-$compiler.so" "$subject" 2>"$work/log" ||
    failed "primitives.cu compiles: $compiler $flags"
done <<END
g++ -std=c++17 -O2
clang++-19 -std=c++17 -O1
clang++-14 -std=c++14 -O0
g++ -std=c++17 -O1 -D__CUDA_ARCH__=750
END
[ $number -gt 0 ] || { echo '1..0 # SKIP no C++ compiler'; exit 0; }
# shellcheck disable=SC2086
{
  ${CC:-cc} -std=c11 -O2 $warnings -fPIC -shared -o "$work/c.so" "$support/references/kernel_subject.c" &&
    ${CC:-cc} -std=c11 -O1 $warnings -o "$work/nvrtc_driver" "$support/cuda/nvrtc_driver.c" -ldl &&
    ${CC:-cc} -std=c11 -O2 $warnings -D_GNU_SOURCE -I "$support" -I "$support/references" -I "$support/fixtures" -I "$here/../../tools/measure" -I "$here/../../include" -c -o "$work/device.o" \
      "$support/cuda/primitives_device.c" &&
    ${CC:-cc} -std=c11 -O2 -ffp-contract=off $warnings -I "$support" -I "$support/references" -o "$work/t700" "$here/t700-cuda-primitives.c" "$work/device.o" \
      "$support/tap.c" -ldl -lm -lpthread
} 2>"$work/log" || failed 'the C side compiles'

# sm_NN.ptx and sm_NN.log where NVRTC takes it, sm_NN.error where it does not; refused-OPTION where the header refuses an
# option, as it should; absent: why there is no NVRTC
nvrtc() { "$work/nvrtc_driver" -O --minimal -h kernel_cuda.h="$header" -h kernel_subject.def="$support/references/kernel_subject.def" "$@" "$subject"; }
for arch in sm_75 sm_80 sm_90 sm_100; do
  case=$((case + 1))
  in_part $case 4 >>"$work/day" || { echo 'of another day' >"$work/$arch.other"; continue; }
  nvrtc -O --gpu-architecture=$arch -p "$work/$arch.ptx" -c "$work/$arch.cubin" >"$work/reason" 2>"$work/$arch.log"
  case $? in
    0) ;;
    77) mv "$work/reason" "$work/absent"; break ;;
    *) mv "$work/$arch.log" "$work/$arch.error" ;;
  esac
done
if [ ! -f "$work/absent" ]; then
  for option in -use_fast_math -ftz=true; do
    nvrtc -O "$option" >/dev/null 2>"$work/refused$option"
    if [ $? -ne 1 ] || ! grep -q "error: #error directive: \"\{0,1\}quern" "$work/refused$option"; then rm "$work/refused$option"; fi
  done
fi
"$work/t700" "$work"
status=$?
cat "$work/day"
exit $status
