/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_nvrtc.h: NVRTC: a CUDA kernel's text in, an image's bytes (cuda_image.h) out. One compile at a time, on a thread with a
 * stack of its own. Knows no kernels.
 *
 * NVRTC is opened at first need (cuda_driver.h), and only if there is a driver; so a child of a process that had initialised
 * CUDA compiles nothing. A process that exits waits for the compile under way, and starts no other. */
#ifndef QN_CUDA_NVRTC_H
#define QN_CUDA_NVRTC_H

#include "base/bytes.h"
#include "core/base/status.h"

typedef struct qn_nvrtc_request {
  const char *source; /* self-contained; ends with a 0 */
  const char *name;   /* of the text, for messages: "qj_0123.cu" */
  int32_t capability; /* 10 major + minor of the device: 90 */
  int32_t items_per_thread; /* for the image */
} qn_nvrtc_request;

/* 1: *image is set: a cubin for exactly that chip, or PTX if this NVRTC is older than the chip. 0: `why` holds NVRTC's messages,
 * or a sentence. Thread-safe. */
int qn_nvrtc_compile(const qn_nvrtc_request *request, qn_bytes *image, char *why, size_t why_size);

/* NVRTC's identity: version, and path, size and time of its file. 0: not known yet, or there is none. Opens nothing. */
int qn_nvrtc_identity(char *text, size_t size);

/* Opens NVRTC. 0: it cannot be used, and `why` has the reason. */
int qn_nvrtc_is_there(char *why, size_t why_size);

#endif
