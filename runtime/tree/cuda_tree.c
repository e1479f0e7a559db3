/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_tree.c: calls on CUDA tensors in a generated tree: kernels built by nvcc are launched on the caller's stream by
 * CUDA's runtime. See core/simt/cuda.h. C, compiled if CUDA's headers are found. Knows no run-time compiler and keeps
 * no memory on a device. */
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <string.h>

#include "core/op/kind.h"
#include "core/simt/cuda.h"
#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

extern const qn_backend qn_cuda_tree; /* op_table.c's */

/* ---- Errors ---- */

static quern_status status_of(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation: return QUERN_E_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return QUERN_E_DEVICE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidPtx: return QUERN_E_COMPILER;
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureImplicit: return QUERN_E_CAPTURING;
    default: return QUERN_E_DRIVER;
  }
}

static quern_status refuse(const quern_op *op, cudaError_t error, const char *what) {
  cudaGetLastError(); /* clears the error: it is reported here, and the host must not see it */
  return qn_status_fail(status_of(error), "%s: %s: %s: %s", op->info->name, what, cudaGetErrorName(error),
                        cudaGetErrorString(error));
}

static int is_one_dtype(const qn_decision *decision, uint8_t *dtype) {
  *dtype = QN_BOOL; /* conditions and results may be that beside any other */
  for (int32_t k = decision->nest.n_positions; k < decision->n_operands; k++) {
    if (decision->dtypes[k] == QN_BOOL || decision->dtypes[k] == *dtype) continue;
    if (*dtype != QN_BOOL) return 0;
    *dtype = decision->dtypes[k];
  }
  return 1;
}

static quern_status refuse_dtypes(const quern_op *op, const qn_decision *decision) {
  const quern_op_info *info = &op->builtin->info;
  char text[256] = "";
  qn_strbuf names = {text, sizeof text, 0};
  const int32_t first = decision->nest.n_positions;
  uint8_t dtype;
  for (int32_t k = first; k < decision->n_operands; k++)
    qn_strbuf_add(&names, "%s%s", k > first ? ", " : "", qn_dtype_infos[decision->dtypes[k]].name);
  if (is_one_dtype(decision, &dtype))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: no CUDA kernels are built for %s; generate them with --dtypes %s", info->name,
                          text, qn_dtype_infos[dtype].name);
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: no CUDA kernels are built for %s; cast the operands to one dtype with astype",
                        info->name, text);
}

/* ---- Devices ---- */

/* Makes a device current; `leave` restores the caller's. */
static quern_status enter(const quern_op *op, int device, int *was) {
  cudaError_t error = cudaGetDevice(was);
  if (!error && *was != device) error = cudaSetDevice(device);
  return error ? refuse(op, error, "the device cannot be used") : QUERN_OK;
}

static void leave(int device, int was) {
  if (was != device) cudaSetDevice(was);
}

/* ---- Kernels ---- */

/* A kernel with known properties on a device: it is loaded there. */
typedef struct known_context {
  _Atomic(const qn_cuda_variant *) kernel;
  atomic_uint resident; /* resident blocks of the whole device; 0: not written yet */
  atomic_uint shared;   /* bytes of shared memory that a launch may ask for; written before */
} known_context;

#define N_DEVICES 16 /* more devices or kernels are queried at each call */
#define N_KERNELS 512
#define N_PROBES 8
static known_context known_kernels[N_DEVICES][N_KERNELS];

static known_context *find_known(const qn_cuda_variant *kernel, int device) {
  if (device < 0 || device >= N_DEVICES) return NULL;
  const uint32_t at = (uint32_t)((uintptr_t)kernel / sizeof *kernel) * 0x9e3779b1u >> 23; /* 9 bits */
  for (uint32_t probe = 0; probe < N_PROBES; probe++) {
    known_context *known = &known_kernels[device][(at + probe) % N_KERNELS];
    const qn_cuda_variant *owner = atomic_load_explicit(&known->kernel, memory_order_relaxed);
    if (owner == kernel) return known;
    if (!owner && atomic_compare_exchange_strong(&known->kernel, &owner, kernel)) return known;
    if (owner == kernel) return known;
  }
  return NULL;
}

#define SHARED_BYTES (48 << 10) /* of a block, which need no leave */

/* What launches may ask for beside the kernel's own, with leave for what the device has. The kernel is loaded. */
static unsigned allow_shared(const qn_cuda_variant *kernel, int device) {
  struct cudaFuncAttributes attributes;
  int most = 0;
  if (cudaFuncGetAttributes(&attributes, kernel->function)) return cudaGetLastError(), 0;
  const int own = (int)attributes.sharedSizeBytes, without = own < SHARED_BYTES ? SHARED_BYTES - own : 0;
  if (own == 0 || cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) || most <= SHARED_BYTES)
    return (unsigned)without;
  if (!cudaFuncSetAttribute(kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, most - own)) return (unsigned)(most - own);
  cudaGetLastError();
  return (unsigned)without;
}

/* Queries the current device, which loads the kernel. */
static cudaError_t ask_resident(const qn_cuda_variant *kernel, int device, unsigned *resident, unsigned *shared) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  int blocks = 0, processors = 0;
  cudaThreadExchangeStreamCaptureMode(&mode); /* so that the capture of another stream goes on */
  cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel->function, QN_LAUNCH_THREADS, 0);
  *shared = error ? 0 : allow_shared(kernel, device);
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (!error) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  *resident = blocks > 0 && processors > 0 ? (unsigned)blocks * (unsigned)processors : 1;
  return error;
}

static int is_capturing(cudaStream_t stream) {
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  cudaError_t error = cudaStreamIsCapturing(stream, &capture);
  if (error) cudaGetLastError();
  return error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone;
}

/* Loads a kernel at its first call on a device. */
static quern_status load(const quern_op *op, const qn_cuda_variant *kernel, int device, const quern_call *call,
                         unsigned *resident, unsigned *shared) {
  known_context *known = find_known(kernel, device);
  *resident = known ? atomic_load_explicit(&known->resident, memory_order_acquire) : 0;
  *shared = known ? atomic_load_explicit(&known->shared, memory_order_relaxed) : 0;
  if (*resident) return QUERN_OK;
  int was;
  quern_status status = enter(op, device, &was);
  if (status) return status;
  if (call && is_capturing((cudaStream_t)call->stream)) {
    status = qn_status_fail(QUERN_E_CAPTURING, "%s: its stream is being captured, and %s is not loaded yet; prepare it before",
                            op->info->name, kernel->name);
  } else {
    const cudaError_t error = ask_resident(kernel, device, resident, shared);
    if (error) status = refuse(op, error, kernel->name);
  }
  leave(device, was);
  if (!status && known) {
    atomic_store_explicit(&known->shared, *shared, memory_order_relaxed);
    atomic_store_explicit(&known->resident, *resident, memory_order_release);
  }
  return status;
}

/* The kernels of an op's row for the backend; NULL: none. */
static const qn_ahead *ahead_of(const qn_backend *backend, const qn_builtin *builtin) {
  const qn_ahead *at = builtin->ahead;
  while (at && at->backend && at->backend != backend) at++;
  return at && at->backend ? at : NULL;
}

static quern_status pick(const quern_op *op, const qn_decision *decision, const qn_cuda_variant **kernel, qn_launch_form *form) {
  const quern_op_info *info = &op->builtin->info;
  const qn_ahead *ahead = ahead_of(decision->backend, op->builtin);
  int32_t n = 0;
  const qn_cuda_variant *first =
      ahead ? qn_launch_of_dtypes(ahead->kernels, ahead->n_kernels, decision->dtypes, decision->n_operands, &n) : NULL;
  if (!n) return refuse_dtypes(op, decision);
  *kernel = qn_launcher_of(decision)->pick(decision, first, n, form);
  if (*kernel) return QUERN_OK;
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: none of its CUDA kernels takes operands that lie so (rank %d after dimensions "
                        "were merged); generate them with --rank n and --class s", info->name, decision->nest.rank);
}

/* ---- The backend ---- */

static quern_status prepare(const qn_decision *decision, const quern_call *call, qn_cuda_run *run) {
  const quern_op *op = decision->op;
  const qn_cuda_variant *kernel;
  qn_launch_form form;
  unsigned resident, shared;
  quern_status status = pick(op, decision, &kernel, &form);
  if (!status) status = load(op, kernel, decision->device.device_id, call, &resident, &shared);
  if (status) return status;
  qn_launcher_of(decision)->pack(decision, &form, &run->launch);
  run->kernel = kernel;
  run->detail = (const void *)((uintptr_t)shared << 32 | resident);
  return QUERN_OK;
}

/* Pinned memory may have another address on the device. */
static cudaError_t translate_pinned(const qn_decision *decision, const qn_ref *ref, uint64_t *args) {
  for (int32_t k = 0; k < decision->n_operands; k++) {
    void *address;
    if (!qn_cuda_is_pinned(decision, k)) continue;
    const cudaError_t error = cudaHostGetDevicePointer(&address, qn_ref_address(ref[k]), 0);
    if (error) return error;
    args[k] = (uint64_t)(uintptr_t)address;
  }
  return cudaSuccess;
}

static cudaError_t launch_all(const qn_decision *decision, const qn_cuda_run *run, const quern_call *call, uint64_t *args) {
  const qn_cuda_variant *kernel = run->kernel;
  const qn_launch *launch = &run->launch;
  int64_t at[QUERN_MAX_NDIM] = {0};
  void *list[1] = {args};
  qn_cuda_pieces pieces;
  uint32_t x, y;
  qn_launch_block(launch, &x, &y);
  const uint32_t resident = (uint32_t)(uintptr_t)run->detail;
  qn_cuda_cut(decision, launch, kernel->items_per_thread, (uint32_t)((uintptr_t)run->detail >> 32), call, &pieces);
  const dim3 block = {x, y, 1};
  cudaError_t error = cudaSuccess;
  do {
    for (int32_t i = 0; i < pieces.n_launches && !error; i++) {
      const uint64_t n_items = qn_cuda_piece(&pieces, i, call, launch, args);
      const uint32_t blocks = qn_launch_grid_of(launch, n_items, kernel->items_per_thread, resident);
      const dim3 grid = {blocks, 1, 1};
      error = cudaLaunchKernel(kernel->function, grid, block, list, pieces.shared_bytes, call ? (cudaStream_t)call->stream : NULL);
    }
  } while (!error && qn_cuda_next(decision, launch, at, args));
  return error;
}

static quern_status launch(const qn_decision *decision, const qn_cuda_run *run, const qn_ref *ref, const qn_params *params,
                           const quern_call *call) {
  const quern_op *op = decision->op;
  const int device = decision->device.device_id;
  uint64_t args[QN_LAUNCH_ARGS];
  int was;
  quern_status status = qn_cuda_check_addresses(decision, ref);
  if (status || (status = enter(op, device, &was))) return status;
  qn_cuda_arguments(decision, run, ref, params, args);
  cudaError_t error = translate_pinned(decision, ref, args);
  if (!error) error = launch_all(decision, run, call, args);
  leave(device, was);
  return error ? refuse(op, error, ((const qn_cuda_variant *)run->kernel)->name) : QUERN_OK;
}

static quern_status call_once(const qn_decision *decision, const quern_call *call) {
  qn_cuda_run run;
  quern_status status = prepare(decision, call, &run);
  return status ? status : launch(decision, &run, decision->nest.ref, &decision->params, call);
}

static quern_status keep(const qn_decision *decision, const quern_call *call, qn_run **run) {
  return qn_cuda_keep(prepare, decision, call, run);
}

static quern_status launch_kept(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                                const quern_call *call) {
  return launch(decision, (const qn_cuda_run *)run, ref, params, call);
}

/* What rows cut into pieces take; of other calls none. The call is checked. */
static quern_status workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                              size_t *bytes) {
  const qn_cuda_variant *kernel;
  qn_sentence kept;
  qn_decision decision;
  qn_launch_form form;
  quern_status status = qn_cuda_decide(op, in, out, call, &decision);
  if (status || decision.nest.n_elements == 0) return status;
  qn_status_keep(&kept);
  if (pick(decision.op, &decision, &kernel, &form))
    qn_status_restore(&kept); /* the call reports it */
  else
    *bytes = qn_cuda_workspace(&decision, &form);
  return QUERN_OK;
}

static quern_status explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const quern_op *op = decision->op;
  const qn_cuda_variant *kernel;
  char device[QN_DEVICE_CHARS];
  qn_launch_form form;
  (void)call;
  if (decision->nest.n_elements == 0) {
    qn_cuda_explain_empty(decision, buf);
    return QUERN_OK;
  }
  quern_status status = pick(op, decision, &kernel, &form);
  if (status) return status;
  qn_strbuf_add(buf, "tier: built\nreason: a kernel built ahead takes the operands as they lie\nvariant: %s\ndevice: %s\n",
                kernel->name, qn_device_text(decision->device, device));
  return QUERN_OK;
}

const qn_backend qn_cuda_tree = {.device_name = "a CUDA device", .device_type = kDLCUDA, .call = call_once, .prepare = keep,
                                 .launch = launch_kept, .workspace = workspace, .explain = explain};
