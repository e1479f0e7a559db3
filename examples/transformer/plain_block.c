/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_block.c: the four parts as plain loops that compute in REAL. As f64 they are what the results are checked against, as f32 what
 * they are timed beside. */
#include "plain_block.h"

#include <stddef.h>
#include <tgmath.h>

void PLAIN(rms_norm)(const float *x, const float *attended, const float *weight, float *h, REAL *y) {
  for (int row = 0; row < TOKENS; row++) {
    REAL squares = 0;
    for (int k = 0; k < WIDTH; k++) {
      const int at = row * WIDTH + k;
      h[at] = x[at] + attended[at];
      squares += (REAL)h[at] * (REAL)h[at];
    }
    const REAL scale = 1 / sqrt(squares / WIDTH + (REAL)EPS);
    for (int k = 0; k < WIDTH; k++) y[row * WIDTH + k] = (REAL)h[row * WIDTH + k] * scale * (REAL)weight[k];
  }
}

void PLAIN(masked_softmax)(const float *scores, const unsigned char *mask, REAL *p) {
  for (int row = 0; row < HEADS * TOKENS; row++) {
    const float *s = scores + (size_t)row * TOKENS;
    const unsigned char *seen = mask + (row % TOKENS) * TOKENS;
    REAL *out = p + (size_t)row * TOKENS;
    REAL most = -(REAL)INFINITY, total = 0;
    for (int k = 0; k < TOKENS; k++) {
      out[k] = seen[k] ? (REAL)s[k] * (REAL)SCALE : -(REAL)INFINITY;
      if (out[k] > most) most = out[k];
    }
    for (int k = 0; k < TOKENS; k++) {
      out[k] = exp(out[k] - most);
      total += out[k];
    }
    for (int k = 0; k < TOKENS; k++) out[k] /= total;
  }
}

void PLAIN(swiglu)(const float *gate, const float *up, REAL *y) {
  for (int k = 0; k < TOKENS * HIDDEN; k++) y[k] = (REAL)gate[k] / (1 + exp(-(REAL)gate[k])) * (REAL)up[k];
}

void PLAIN(cross_entropy)(const float *logits, const int64_t *target, REAL *loss) {
  for (int row = 0; row < TOKENS; row++) {
    const float *x = logits + (size_t)row * WORDS;
    REAL most = (REAL)x[0], total = 0;
    for (int k = 1; k < WORDS; k++)
      if ((REAL)x[k] > most) most = (REAL)x[k];
    for (int k = 0; k < WORDS; k++) total += exp((REAL)x[k] - most);
    loss[row] = log(total) + most - (REAL)x[target[row]];
  }
}
