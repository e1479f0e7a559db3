#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# t310-abi: the library as others meet it: exported symbols, soname, what it needs; the headers in C99 and C++17, beside
# an official DLPack header; clients in C99, C++17, static and through dlopen, compiled and run.
# QUERN_BUILD_DIR: where the libraries are; QUERN_SOURCE_DIR: the repository. Prints TAP.
LC_ALL=C
export LC_ALL
. "$(dirname "$0")/../support/tap.sh"

: "${QUERN_BUILD_DIR:?the folder of libquern.so}" "${QUERN_SOURCE_DIR:?the repository}"
library=$QUERN_BUILD_DIR/libquern.so
CC=${CC:-cc} CXX=${CXX:-c++}
work=$(mktemp -d) || bail "no temporary folder"
trap 'rm -rf "$work"' EXIT
said=$work/log
echo "TAP version 13"
[ -e "$library" ] || bail "$library is not there"
skip_sanitised "$library"
headers="-I$QUERN_SOURCE_DIR/include -I$QUERN_BUILD_DIR/generated"
strict="-Wall -Wextra -Werror -pedantic"
link="-L$QUERN_BUILD_DIR -Wl,-rpath,$QUERN_BUILD_DIR -lquern"

# ---- The file -----------------------------------------------------------------------------------------------------
nm -D --defined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | sort >"$work/exported"
grep -v '^quern_' "$work/exported" >"$said"
[ ! -s "$said" ]
ok $? "only quern_ is exported"
ok "$([ "$(wc -l <"$work/exported")" -ge 20 ]; echo $?)" "and something is: $(wc -l <"$work/exported") symbols"

# Every function that quern.h and dlpack_exchange.h declare, and nothing but these and quern_builtin_*.
sed -n 's/^QUERN_API .*[ *]\(quern_[a-z_0-9]*\)(.*/\1/p' "$QUERN_SOURCE_DIR/include/quern/quern.h" \
  "$QUERN_SOURCE_DIR/include/quern/dlpack_exchange.h" | sort >"$work/declared"
ok "$([ "$(wc -l <"$work/declared")" -ge 31 ]; echo $?)" "the headers declare $(wc -l <"$work/declared") functions"
comm -23 "$work/declared" "$work/exported" >"$said"
[ ! -s "$said" ]
ok $? "all of them are exported"
sed -n 's/^QUERN_API .*[ *]\(quern_builtin_[a-z_0-9]*\)(.*/\1/p' "$QUERN_BUILD_DIR/generated/quern/ops.h" | sort >"$work/builtin"
sort -u "$work/declared" "$work/builtin" | comm -13 - "$work/exported" >"$said"
[ ! -s "$said" ]
ok $? "nothing else is"
comm -23 "$work/builtin" "$work/exported" >"$said"
[ ! -s "$said" ] && [ "$(wc -l <"$work/builtin")" -ge 28 ]
ok $? "$(wc -l <"$work/builtin") typed functions of quern/ops.h are exported"

readelf -d "$library" >"$work/dynamic"
cp "$work/dynamic" "$said"
grep -q 'SONAME.*\[libquern\.so\.0\]' "$work/dynamic"
ok $? "soname libquern.so.0"
sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$work/dynamic" | grep -v '^libc\.so\.\|^libpthread\.so\.\|^ld-linux' >"$said"
[ ! -s "$said" ]
ok $? "it needs libc and nothing else"
cp "$work/dynamic" "$said"
! grep -q 'TEXTREL\|RPATH\|RUNPATH' "$work/dynamic"
ok $? "no text relocations, no search path of its own"
readelf -lW "$library" >"$said"
! grep 'GNU_STACK' "$said" | grep -q 'E'
ok $? "no executable stack"
readelf -lW "$library" | grep 'GNU_STACK' | grep -q 'RW '
ok $? "and it says so"
[ "$(readlink "$library")" != "" ] && [ -e "$QUERN_BUILD_DIR/libquern.so.0" ]
ok $? "libquern.so and libquern.so.0 are links to one file"
nm -D --undefined-only "$library" | awk '{print $NF}' | sed 's/@.*//' | grep -x 'printf\|puts\|exit\|_exit\|getenv\|setlocale\|signal\|sigaction\|exp\|expf\|log\|logf\|pow\|powf\|tanh\|erf\|fma\|fmaf\|sqrt\|sqrtf' >"$said"
[ ! -s "$said" ]
ok $? "no libm, no exit, no plain getenv, no printing to standard output"

# ---- Headers alone ------------------------------------------------------------------------------------------------
useless_cast=-Wuseless-cast # GCC's
echo 'int main() { return 0; }' >"$work/try.cc"
$CXX -Werror $useless_cast -fsyntax-only "$work/try.cc" 2>/dev/null || useless_cast=
for header in quern/quern.h quern/dlpack.h quern/dlpack_exchange.h quern/ops.h; do
  printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header" >"$work/alone.c"
  cp "$work/alone.c" "$work/alone.cc"
  $CC -std=c99 $strict $headers -c "$work/alone.c" -o "$work/alone.o" >"$said" 2>&1
  ok $? "$header as C99, twice"
  $CC -std=c11 $strict -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes $headers -c "$work/alone.c" -o "$work/alone.o" >"$said" 2>&1
  ok $? "$header as C11 with more warnings"
  $CXX -std=c++17 $strict $headers -c "$work/alone.cc" -o "$work/alone.o" >"$said" 2>&1
  ok $? "$header as C++17"
  $CXX -std=c++17 $strict -Wconversion -Wshadow -Wcast-qual -Wold-style-cast $useless_cast $headers -c "$work/alone.cc" -o "$work/alone.o" >"$said" 2>&1
  ok $? "$header as C++17 with more warnings"
done

# The layouts of the public ABI, LP64, in either language.
cat >"$work/layout.c" <<'END'
#include <quern/dlpack_exchange.h>
#ifdef __cplusplus
#define CHECK(x) static_assert(x, #x)
#else
#define CHECK(x) _Static_assert(x, #x)
#endif
CHECK(sizeof(DLDevice) == 8); CHECK(sizeof(DLDataType) == 4); CHECK(sizeof(DLTensor) == 48);
CHECK(offsetof(DLTensor, data) == 0); CHECK(offsetof(DLTensor, device) == 8); CHECK(offsetof(DLTensor, ndim) == 16);
CHECK(offsetof(DLTensor, dtype) == 20); CHECK(offsetof(DLTensor, shape) == 24); CHECK(offsetof(DLTensor, strides) == 32);
CHECK(offsetof(DLTensor, byte_offset) == 40);
CHECK(sizeof(DLManagedTensor) == 64); CHECK(sizeof(struct DLManagedTensorVersioned) == 80);
CHECK(offsetof(struct DLManagedTensorVersioned, flags) == 24); CHECK(offsetof(struct DLManagedTensorVersioned, dl_tensor) == 32);
CHECK(kDLCPU == 1); CHECK(kDLCUDA == 2); CHECK(kDLCUDAHost == 3); CHECK(kDLROCM == 10); CHECK(kDLROCMHost == 11); CHECK(kDLCUDAManaged == 13);
CHECK(kDLInt == 0); CHECK(kDLUInt == 1); CHECK(kDLFloat == 2); CHECK(kDLBfloat == 4); CHECK(kDLComplex == 5); CHECK(kDLBool == 6);
CHECK(sizeof(quern_operand) == 16); CHECK(offsetof(quern_operand, of) == 8); CHECK(sizeof(quern_export) == 32);
CHECK(offsetof(quern_export, device) == 12); CHECK(offsetof(quern_export, stream) == 24);
CHECK(sizeof(quern_scalar) == 24); CHECK(sizeof(quern_call) == 56); CHECK(sizeof(quern_status) == 4);
CHECK(QUERN_E_ARGUMENT == -1); CHECK(QUERN_E_DTYPE == -2); CHECK(QUERN_E_SHAPE == -3); CHECK(QUERN_E_DEVICE == -4);
CHECK(QUERN_E_LAYOUT == -5); CHECK(QUERN_E_ALIGNMENT == -6); CHECK(QUERN_E_OVERLAP == -7); CHECK(QUERN_E_READONLY == -8);
CHECK(QUERN_E_MEMORY == -9); CHECK(QUERN_E_UNSUPPORTED == -10); CHECK(QUERN_E_SYNTAX == -11); CHECK(QUERN_E_NOTFOUND == -12);
CHECK(QUERN_E_EXISTS == -13); CHECK(QUERN_E_COMPILER == -14); CHECK(QUERN_E_DRIVER == -15); CHECK(QUERN_E_IO == -16);
CHECK(QUERN_E_VERSION == -17); CHECK(QUERN_E_LIMIT == -18); CHECK(QUERN_E_WORKSPACE == -19); CHECK(QUERN_E_CAPTURING == -20);
END
cp "$work/layout.c" "$work/layout.cc"
$CC -std=c11 $headers -c "$work/layout.c" -o "$work/layout.o" >"$said" 2>&1
ok $? "layouts and values in C"
$CXX -std=c++17 $headers -c "$work/layout.cc" -o "$work/layout.o" >"$said" 2>&1
ok $? "layouts and values in C++"

# Another header of the same guard came first: ours must step aside. (A stand-in of the official text's shape.)
cat >"$work/official.h" <<'END'
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>
#include <stddef.h>
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLOpenCL = 4, kDLVulkan = 7, kDLMetal = 8, kDLVPI = 9, kDLROCM = 10, kDLROCMHost = 11,
  kDLExtDev = 12, kDLCUDAManaged = 13, kDLOneAPI = 14, kDLWebGPU = 15, kDLHexagon = 16, kDLMAIA = 17
} DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef enum { kDLInt = 0U, kDLUInt = 1U, kDLFloat = 2U, kDLOpaqueHandle = 3U, kDLBfloat = 4U, kDLComplex = 5U, kDLBool = 6U } DLDataTypeCode;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct { uint32_t major; uint32_t minor; } DLPackVersion;
typedef struct { void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape; int64_t *strides; uint64_t byte_offset; } DLTensor;
typedef struct DLManagedTensor { DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *self); } DLManagedTensor;
struct DLManagedTensorVersioned { DLPackVersion version; void *manager_ctx; void (*deleter)(struct DLManagedTensorVersioned *self); uint64_t flags; DLTensor dl_tensor; };
#endif
END
printf '#include "official.h"\n#include <quern/dlpack_exchange.h>\n#include <quern/ops.h>\n' >"$work/both.c"
printf 'int main(void) { return DLPACK_MINOR_VERSION - 1; }\n' >>"$work/both.c"
cp "$work/both.c" "$work/both.cc"
$CC -std=c99 -Wall -Wextra -Werror $headers "$work/both.c" -o "$work/both" $link >"$said" 2>&1 && "$work/both"
ok $? "after an official header, C"
$CXX -std=c++17 -Wall -Wextra -Werror $headers "$work/both.cc" -o "$work/both" $link >"$said" 2>&1 && "$work/both"
ok $? "after an official header, C++"

# ---- Clients ------------------------------------------------------------------------------------------------------
cat >"$work/client.c" <<'END'
#include <quern/quern.h>
#include <quern/ops.h>
#include <stdio.h>
#include <string.h>
int main(void) {
  float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, c[4];
  int64_t n = 4;
  DLTensor x, y, z;
  quern_op *op = NULL;
  quern_scalar slope;
  quern_call call;
  memset(&x, 0, sizeof x);
  memset(&call, 0, sizeof call);
  memset(&slope, 0, sizeof slope);
  x.data = a;
  x.device.device_type = kDLCPU;
  x.ndim = 1;
  x.dtype.code = kDLFloat;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = &n;
  y = x;
  y.data = b;
  z = x;
  z.data = c;
  if (quern_version() != ((uint32_t)QUERN_VERSION_MAJOR << 16 | QUERN_VERSION_MINOR << 8 | QUERN_VERSION_PATCH)) return 1;
  if (quern_add(&x, &y, &z, NULL) != QUERN_OK || c[3] != 44) return 2;
  if (quern_op_find(NULL, "add", &op) != QUERN_OK || strcmp(quern_op_describe(op)->name, "add") != 0) return 3;
  quern_op_release(op);
  a[0] = -8;
  call.size = sizeof call;
  call.params = &slope;
  call.n_params = 1;
  slope.kind = QUERN_F64;
  slope.v.f[0] = 0.5;
  if (quern_leaky_relu(&x, &z, &call) != QUERN_OK || c[0] != -4 || c[3] != 4) return 4;
  if (quern_full(&z, NULL) != QUERN_OK || c[0] != 0 || c[3] != 0) return 5;
  n = 3;
  if (quern_gelu(&x, NULL, NULL) != QUERN_E_ARGUMENT || !strstr(quern_last_error(), "gelu")) return 6;
  puts("fine");
  return 0;
}
END
cp "$work/client.c" "$work/client.cc"
$CC -std=c99 $strict $headers "$work/client.c" -o "$work/client99" $link >"$said" 2>&1
ok $? "a C99 client compiles and links with -lquern alone"
[ "$("$work/client99" 2>"$said")" = fine ]
ok $? "and runs"
$CXX -std=c++17 $strict $headers "$work/client.cc" -o "$work/client17" $link >"$said" 2>&1
ok $? "a C++17 client"
[ "$("$work/client17" 2>"$said")" = fine ]
ok $? "and runs"
(cd / && env -i "$work/client99" >"$said" 2>&1)
ok $? "without environment, from another folder"
if [ -e "$QUERN_BUILD_DIR/libquern.a" ]; then
  $CC -std=c99 $strict $headers "$work/client.c" "$QUERN_BUILD_DIR/libquern.a" -o "$work/static" -lpthread >"$said" 2>&1
  ok $? "the static library"
  [ "$("$work/static" 2>"$said")" = fine ]
  ok $? "and runs"
  $CC -static -std=c99 $headers "$work/client.c" "$QUERN_BUILD_DIR/libquern.a" -o "$work/all_static" -lpthread >"$said" 2>&1 && [ "$("$work/all_static" 2>"$said")" = fine ]
  ok $? "a program without any shared library"
  nm "$QUERN_BUILD_DIR/libquern.a" 2>/dev/null | awk '$2 ~ /^[A-TV-Z]$/ {print $3}' | grep -v '^quern_\|^qn_\|^qk_\|^DW\.ref\.__gcc_personality_v0$' | sort -u >"$said"
  [ ! -s "$said" ]
  ok $? "the static library defines only quern_, qn_, qk_"
else
  skip "the static library" "no libquern.a in QUERN_BUILD_DIR"
fi

cat >"$work/dl.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <quern/quern.h>
/* Opened, used, closed, three times: nothing may be left behind that calls into it. */
int main(int argc, char **argv) {
  int round;
  (void)argc;
  for (round = 0; round < 3; round++) {
    static float a[300000], c[300000];
    int64_t n = 300000;
    DLTensor x, z, *in[1], *out[1];
    quern_ctx *ctx = NULL;
    quern_op *op = NULL;
    quern_options options;
    quern_status (*create)(const quern_options *, quern_ctx **);
    quern_status (*find)(quern_ctx *, const char *, quern_op **);
    quern_status (*call)(quern_op *, int32_t, DLTensor *const *, int32_t, DLTensor *const *, const quern_call *);
    void (*release_op)(quern_op *);
    void (*release_ctx)(quern_ctx *);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return puts(dlerror()), 1;
    *(void **)&create = dlsym(library, "quern_ctx_create");
    *(void **)&find = dlsym(library, "quern_op_find");
    *(void **)&call = dlsym(library, "quern_op_call");
    *(void **)&release_op = dlsym(library, "quern_op_release");
    *(void **)&release_ctx = dlsym(library, "quern_ctx_release");
    memset(&x, 0, sizeof x);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.threads = 3;
    x.data = a;
    x.device.device_type = kDLCPU;
    x.ndim = 1;
    x.dtype.code = kDLFloat;
    x.dtype.bits = 32;
    x.dtype.lanes = 1;
    x.shape = &n;
    z = x;
    z.data = c;
    in[0] = &x;
    out[0] = &z;
    if (create(&options, &ctx) || find(ctx, "exp", &op) || call(op, 1, in, 1, out, NULL) || c[299999] != 1) return 2;
    release_op(op);
    release_ctx(ctx);
    if (find(NULL, "exp", &op) || call(op, 1, in, 1, out, NULL)) return 3;
    release_op(op);
    dlclose(library);
  }
  puts("fine");
  return 0;
}
END
$CC -std=gnu99 -Wall -Wextra $headers "$work/dl.c" -o "$work/dl" -ldl >"$said" 2>&1
ok $? "a dlopen client"
[ "$("$work/dl" "$(readlink -f "$library")" 2>&1 | tee "$said")" = fine ]
ok $? "opens, uses and closes it three times"

# A client that was built by a stranger's flags.
$CC -O3 -march=native -std=gnu11 -ffast-math $headers "$work/client.c" -o "$work/fast" $link >"$said" 2>&1 && [ "$("$work/fast" 2>"$said")" = fine ]
ok $? "a client linked with -ffast-math"

done_testing
