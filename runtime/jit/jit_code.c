/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_code.c: keys; see jit_code.h. */
#include "jit/jit_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qn_code_class_letters(const qn_code_request *request, char *letters) {
  const int32_t n = request->n_in + request->n_out;
  for (int32_t k = 0; k < n; k++) letters[k] = "cbst"[request->classes[k]]; /* ORDER qn_class */
  letters[n] = 0;
}

static char *put_dtypes(char *at, const uint8_t *dtypes, int32_t n) {
  for (int32_t k = 0; k < n; k++) {
    const char *name = qn_dtype_infos[dtypes[k]].name;
    if (k) *at++ = ',';
    memcpy(at, name, strlen(name));
    at += strlen(name);
  }
  return at;
}

char *qn_code_key(const qn_code_request *request) {
  const int32_t n = request->n_in + request->n_out;
  const size_t length = strlen(request->canonical);
  char target_line[QN_TARGET_KEY_LINE] = "";
  const qn_target_kernel kernel = {.capability = request->capability, .is_wide = request->is_wide};
  if (request->target->key_line) request->target->key_line(&kernel, target_line);
  size_t size = length + (size_t)n + sizeof "\n > \n2d \nspecs \n" + 32 + sizeof target_line;
  for (int32_t k = 0; k < n; k++) size += strlen(qn_dtype_infos[request->dtypes[k]].name) + 1;
  char *key = malloc(size), *at = key;
  if (!key) return NULL;
  memcpy(at, request->canonical, length);
  at += length;
  *at++ = '\n';
  at = put_dtypes(at, request->dtypes, request->n_in);
  memcpy(at, " > ", 3);
  at = put_dtypes(at + 3, request->dtypes + request->n_in, request->n_out);
  *at++ = '\n';
  *at++ = request->rank ? (char)('0' + request->rank) : 'n';
  *at++ = 'd';
  *at++ = ' ';
  qn_code_class_letters(request, at);
  at += n;
  const unsigned long long high = request->specs.high, low = request->specs.low;
  const size_t left = size - (size_t)(at - key);
  if (high || low)
    snprintf(at, left, "\nspecs %016llx%016llx\n%s", high, low, target_line);
  else
    snprintf(at, left, "\nspecs -\n%s", target_line);
  return key;
}
