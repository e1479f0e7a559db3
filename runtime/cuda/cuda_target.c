/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_target.c: see cuda_target.h. */
#include "cuda/cuda_target.h"

#include <stdio.h>

#include "cuda/cuda_built.h"
#include "cuda/cuda_driver.h"
#include "cuda/cuda_image.h"
#include "cuda/cuda_nvrtc.h"

static int nvrtc_identity(const char *cc, char *text, size_t size) { return (void)cc, qn_nvrtc_identity(text, size); }

static int nvrtc_compile(const char *cc, const qn_target_kernel *kernel, const qn_bytes *source, qn_bytes *object, char *why,
                         size_t why_size) {
  char file[64];
  (void)cc;
  snprintf(file, sizeof file, "%s.cu", kernel->symbol);
  const qn_nvrtc_request request = {.source = source->data, .name = file, .capability = kernel->capability,
                                    .items_per_thread = kernel->items_per_thread, .most_ms = kernel->most_ms,
                                    .is_large = kernel->is_large, .is_cancelled = kernel->is_cancelled};
  return qn_nvrtc_compile(&request, object, why, why_size);
}

static const qn_compiler nvrtc = {"nvrtc", 0, nvrtc_identity, qn_nvrtc_is_there, nvrtc_compile};

static void key_line(const qn_target_kernel *kernel, char text[QN_TARGET_KEY_LINE]) {
  snprintf(text, QN_TARGET_KEY_LINE, "cuda sm_%d%s\n", (int)kernel->capability, kernel->is_wide ? " i64" : "");
}

/* Code on disk is for one driver version: a driver runs code of no later NVRTC, and PTX is not kept across drivers. The device's
 * capability is in the kernel's key. */
static int machine(char *text, size_t size) {
  quern_status status;
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  if (driver) snprintf(text, size, "driver %d.%d", driver->version / 1000, driver->version % 1000 / 10);
  return driver != NULL;
}

static int load(const qn_target_kernel *kernel, const qn_bytes *object, qn_target_code *code, char *why, size_t why_size) {
  qn_cuda_image *image = qn_cuda_image_make(object->data, object->size, kernel->symbol, why, why_size);
  if (image) *code = (qn_target_code){.handle = image, .bytes = qn_cuda_image_size(image)};
  return image != NULL;
}

static void unload(void *handle) { qn_cuda_image_free(handle); }

static void describe(const char *cc, qn_strbuf *buf) {
  char built[1024];
  (void)cc;
  qn_cuda_describe(buf);
  qn_cuda_built_state(built, sizeof built);
  qn_strbuf_add(buf, "cuda_built: %s\n", built);
}

const qn_target qn_cuda_target = {.name = "cuda", .suffix = ".cu", .key_line = key_line, .machine = machine, .compilers = &nvrtc,
                                  .n_compilers = 1, .load = load, .unload = unload, .describe = describe};

qn_code *qn_cuda_code_of(const quern_op *op, const qn_specialised *specialised, const qn_launch_form *form, int32_t capability,
                         int may_ask) {
  const qn_layout_request layout = {.target = &qn_cuda_target, .classes = form->classes, .rank = form->rank,
                                    .is_wide = form->is_wide, .capability = capability};
  return qn_layouts_code(op, specialised, &layout, may_ask);
}
