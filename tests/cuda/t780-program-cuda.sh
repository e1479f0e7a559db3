#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t780-program-cuda.sh: quern run --device cuda against the fake driver: the bytes are those that the CPU gives, what is printed,
# and how it ends where there is no driver, no such device, no memory.
set -u
. "$(dirname "$0")/../support/tap.sh"
build=${QUERN_BUILD_DIR:-build}
program=${QUERN_PROGRAM:-$build/bin/quern}
for file in "$program" "$build/tests/fake/libcuda.so.1"; do
  if [ ! -e "$file" ]; then
    skip_all "this build has no $file"
  fi
done
if ! "$program" info 2>&1 | grep -q '^generator: ready'; then
  skip_all 'this build has no generator at run time'
fi
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
fake=$(cd "$build/tests/fake" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/quern t780.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export QUERN_CACHE_DIR="$work/cache" QUERN_CUDA_PATH="$fake"
unset QUERN_JIT QUERN_LOG FAKE_CUDA_FAIL FAKE_CUDA_DEVICES FAKE_CUDA_LOG FAKE_NVRTC_FAIL

quern() { # quern STATUS NAME ARGUMENT...: the program ends with that status; its output is in said, its complaints in why
  wanted=$1 name=$2
  shift 2
  "$program" "$@" >said 2>why
  got=$?
  [ $got = "$wanted" ]
  status=$?
  [ $status = 0 ] || echo "exit $got, wanted $wanted: $*" >>why
  ok $status "$name"
}
says() { grep -qF -- "$1" why; ok $? "  and says: $1"; }
prints() { grep -qE -- "$1" said; ok $? "  and prints: $1"; }

# ---- files
python3 - <<'PY' >said 2>why
import math, struct

LETTER = {"b1": "?", "i4": "i", "i8": "q", "f2": "e", "f4": "f", "f8": "d", "V2": "H"}

def save(path, descr, shape, values, fortran=False):
    values = [values[k % len(values)] for k in range(math.prod(shape))]
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': %r, }" % (descr, fortran, tuple(shape))
    text += " " * (-(11 + len(text)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode())
        f.write(struct.pack("<%d%s" % (len(values), LETTER[descr[1:]]), *values))

numbers = [k / 8 - 9 for k in range(150)] + [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40]
save("x.npy", "<f4", (100, 33), numbers)
save("t.npy", "<f4", (100, 33), numbers, fortran=True)
save("w.npy", "<f4", (33,), numbers)
save("c.npy", "<f4", (100, 1), numbers)
save("s.npy", "<f4", (), [0.75])
save("h.npy", "<f2", (100, 33), [v for v in numbers if v != 1e-40])
save("b.npy", "<V2", (1001,), list(range(0, 65536, 65)))
save("d.npy", "<f8", (1001,), numbers)
save("i.npy", "<i4", (1001,), [1, -2, 3, 2**31 - 1, -2**31, 0])
save("l.npy", "<i8", (1001,), [1, -2, 3, 2**63 - 1, -2**63, 0])
save("e.npy", "<f4", (0, 33), [1.0])
save("deep.npy", "<f4", (2, 3, 4, 5, 2), numbers)
save("four.npy", "<f4", (4,), [1.0, 2.0, 3.0, 4.0])
PY
ok $? 'files to work on'

# ---- the same bytes as on the CPU
same() { # same NAME EXPRESSION WORD...: outputs y, and z where the expression has it
  name=$1
  shift
  set -- "$@" y=y.npy
  case $1 in *'z ='*) set -- "$@" z=z.npy ;; esac
  rm -f y.npy z.npy y.cpu z.cpu
  "$program" run "$@" --jit off >said 2>why && for f in y z; do [ ! -e $f.npy ] || mv $f.npy $f.cpu; done
  quern 0 "$name" run "$@" --device cuda
  for f in y z; do
    [ ! -e $f.cpu ] || { cmp $f.cpu $f.npy >>why 2>&1; ok $? "  $f: the bytes are the CPU's"; }
  done
}
export FAKE_CUDA_LOG="$work/log"
same 'f32, two operands that are broadcast, two outputs' 'y = gelu(x * w + c); z = x > w' x=x.npy w=w.npy c=c.npy
[ "$(cut -d: -f1 said | tr '\n' ' ')" = 'to_device_ms kernel_ms to_host_ms ' ]; ok $? '  three times are printed'
grep -q cuLaunchKernel log && grep -q 'cuMemcpyHtoDAsync 13200' log && grep -q 'cuMemcpyDtoHAsync 13200' log
ok $? '  a kernel was launched, and arrays were moved'
[ "$(grep -c '^cuMemAlloc ' log)" = "$(grep -c '^cuMemFree' log)" ]; ok $? '  all memory was given back'
unset FAKE_CUDA_LOG
same 'an array in Fortran order' 'y = t + x' t=t.npy x=x.npy
same 'an array of no dimensions' 'y = x * s' x=x.npy s=s.npy
same 'f16 and f32' 'y = h + x' h=h.npy x=x.npy
same 'bf16' 'y = x + x' x:bf16=b.npy
same 'f64' 'y = exp(x) - 1' x=d.npy
same 'i32 and i64' 'y = i * l + i; z = i < l' i=i.npy l=l.npy
same 'sums along an axis, and what they are subtracted from' 'y = sum(x * w, axis=1); z = x - mean(x * w, axis=1, keepdims=1)' x=x.npy w=w.npy
same 'an empty array' 'y = x * 2' x=e.npy
same 'five dimensions' 'y = x * 2 + 1' x=deep.npy
quern 0 'a parameter, on the CPU' run 'param a; y = x * a' x=four.npy y=y.cpu --param a=2.5
quern 0 'a parameter' run 'param a; y = x * a' x=four.npy y=y.npy --param a=2.5 --device cuda:0
cmp y.cpu y.npy >>why 2>&1; ok $? '  the bytes are the CPU'"'"'s'
export FAKE_CUDA_LOG="$work/log1"
quern 0 'the second device' run 'y = x * 2' x=four.npy y=y.npy --device=cuda:1
grep -q '^cuDevicePrimaryCtxRetain 1' log1; ok $? '  is the one that was used'
unset FAKE_CUDA_LOG
quern 0 '--device cpu' run 'y = x * 2' x=four.npy y=y.cpu --device cpu
[ ! -s said ] && cmp y.cpu y.npy >>why 2>&1; ok $? '  is what is done without it'

# ---- explain, repeat
quern 0 '--explain and --repeat' run 'y = gelu(x * w)' x=x.npy w=w.npy y=y.npy --device cuda --explain --repeat 70
prints '^tier: nvrtc$'
for key in to_device_ms kernel_ms to_host_ms gbps; do prints "^$key: [0-9.]+$"; done
quern 0 'in another process' run 'y = gelu(x * w)' x=x.npy w=w.npy y=y.npy --device cuda --explain
prints '^tier: disk$'

# ---- info
quern 0 'info' info
prints '^cuda: ready: driver 13\.0, 2 devices, NVRTC 13\.0$'

# ---- what cannot be
rm -f no.npy
by_driver() { # by_driver NAME WORDS VARIABLE=VALUE: by the driver, as the variable has it
  name=$1 words=$2
  env "$3" "$program" run 'y = x * 2' x=four.npy y=no.npy --device cuda >said 2>why
  [ $? = 1 ]; ok $? "$name"
  says "$words"
  [ "$(wc -l <why)" = 1 ] && [ ! -e no.npy ] && ! ls -A | grep -q '^\.quern'; ok $? '  in one line, and no file is left'
}
quern 2 'an unknown device' run 'y = x * 2' x=four.npy y=no.npy --device tpu
says '--device tpu: cpu, cuda or cuda:N'
for word in cuda: cuda:-1 cuda:x cuda:99999 cudax CUDA ''; do
  quern 2 "--device '$word'" run 'y = x * 2' x=four.npy y=no.npy --device "$word"
done
quern 1 'a device that is not there' run 'y = x * 2' x=four.npy y=no.npy --device cuda:7
says 'quern: cuda:7: no such device: there are 2'
by_driver 'no device' 'quern: cuda:0: no device: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected' FAKE_CUDA_DEVICES=0
mkdir broken && echo 'not a library' >broken/libcuda.so.1
by_driver 'a driver that is none' "quern: cuda:0: no driver: $work/broken/libcuda.so.1: " "QUERN_CUDA_PATH=$work/broken"
if python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>said || [ -e /usr/local/cuda/lib64/libcuda.so.1 ]; then
  skip 'no driver' 'this machine has one'
else
  by_driver 'no driver' 'quern: cuda:0: no driver: libcuda.so.1: ' QUERN_CUDA_PATH=
fi
fails() { # fails NAME WORDS PLAN
  by_driver "$1" "$2" "FAKE_CUDA_FAIL=$3"
}
fails 'no memory on the device' 'quern: y: cuda:0 is out of memory: it has 16 bytes' cuMemAlloc:2:OUT_OF_MEMORY
fails 'a copy there that fails' 'quern: cuda:0: copying to it: CUDA_ERROR_INVALID_VALUE: ' cuMemcpyHtoDAsync:1:INVALID_VALUE
fails 'a copy back that fails' 'quern: cuda:0: copying from it: CUDA_ERROR_ILLEGAL_ADDRESS: ' cuMemcpyDtoHAsync:1:ILLEGAL_ADDRESS
fails 'a kernel that fails' 'quern: cuda:0: running: CUDA_ERROR_LAUNCH_FAILED: ' cuEventSynchronize:2:LAUNCH_FAILED
fails 'a launch that fails' 'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES' cuLaunchKernel:1:LAUNCH_OUT_OF_RESOURCES
quern 1 '--jit off' run 'y = x * 3 + 1' x=four.npy y=no.npy --device cuda --jit off
[ ! -e no.npy ]; ok $? '  writes nothing'
quern 0 'help' run --help
prints '--device cpu\|cuda\[:N\]'

done_testing
