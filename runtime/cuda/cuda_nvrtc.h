/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_nvrtc.h: NVRTC: a CUDA kernel's text in, an image's bytes (cuda_image.h) out. One compile at a time and, beside it, a large
 * one, each on a thread with a stack of its own. Knows no kernels.
 *
 * NVRTC is opened at first need (cuda_driver.h), and only if there is a driver; so a child of a process that had initialised
 * CUDA compiles nothing. A process that exits ends the compiles under way, waits for their ends, and starts no other.
 *
 * NVRTC of CUDA 13 asks whether to go on, while it reads and optimises a text; its compiles end within a second of the request. It
 * does not ask while it writes machine code, an older one never. Such a compile must be waited for, as NVRTC's own exit handlers
 * would destroy what it uses. So what it is given is small: the limit of a kernel's cost bounds its time. */
#ifndef QN_CUDA_NVRTC_H
#define QN_CUDA_NVRTC_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "core/base/status.h"

typedef struct qn_nvrtc_request {
  const char *source; /* self-contained; ends with a 0 */
  const char *name;   /* of the text, for messages: "qj_0123.cu" */
  int32_t capability; /* 10 major + minor of the device: 90 */
  int32_t items_per_thread; /* for the image */
  int32_t most_ms;          /* 0: a minute */
  int32_t is_large;         /* it takes long: others are compiled beside it */
  atomic_int *is_cancelled; /* 1: it is to end; NULL: it never is */
} qn_nvrtc_request;

/* 1: *image is set: a cubin for exactly that chip, or PTX if this NVRTC is older than the chip. 0: `why` holds NVRTC's messages,
 * or a sentence. Thread-safe. */
int qn_nvrtc_compile(const qn_nvrtc_request *request, qn_bytes *image, char *why, size_t why_size);

/* NVRTC's identity: version, and path, size and time of its file. 0: not known yet, or there is none. Opens nothing. */
int qn_nvrtc_identity(char *text, size_t size);

/* Opens NVRTC. 0: it cannot be used, and `why` has the reason. */
int qn_nvrtc_is_there(char *why, size_t why_size);

#endif
