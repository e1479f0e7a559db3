/* SPDX-License-Identifier: Apache-2.0
 *
 * plain_block.h: the extents of the example, and its four parts as plain loops. plain_block.c is compiled twice: REAL is double, and the names
 * begin with plain_f64_; it is float, and they begin with plain_f32_. */
#ifndef TRANSFORMER_PLAIN_H
#define TRANSFORMER_PLAIN_H

#include <stdint.h>

enum { TOKENS = 256, WIDTH = 512, HEADS = 8, HIDDEN = 1408, WORDS = 8192 };
#define EPS 1e-5
#define SCALE 0.125 /* 1 / sqrt(WIDTH / HEADS) */

#define DECLARE_PLAIN(PLAIN, REAL)                                                                                \
  void PLAIN(rms_norm)(const float *x, const float *attended, const float *weight, float *h, REAL *y);            \
  void PLAIN(masked_softmax)(const float *scores, const unsigned char *mask, REAL *p);                            \
  void PLAIN(swiglu)(const float *gate, const float *up, REAL *y);                                                \
  void PLAIN(cross_entropy)(const float *logits, const int64_t *target, REAL *loss);

#define PLAIN_F32(name) plain_f32_##name
#define PLAIN_F64(name) plain_f64_##name
DECLARE_PLAIN(PLAIN_F32, float)
DECLARE_PLAIN(PLAIN_F64, double)

#endif
