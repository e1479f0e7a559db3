/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.h: the demo's work as loops that one writes without Quern. plain.c is compiled twice: plain_* with -O3, native_*
 * with -O3 -march=native. */
#ifndef DEMO_PLAIN_H
#define DEMO_PLAIN_H

#include <stddef.h>

/* One loop per op. */
#define PLAIN_FUNCTIONS(name)                                                                                             \
  void name##_u8_to_f32(const unsigned char *x, float *y, size_t n);                                                      \
  void name##_f32_to_u8(const float *x, unsigned char *y, size_t n);                                                      \
  void name##_multiply(const float *x, float s, float *y, size_t n);                                                      \
  void name##_add(const float *x, float s, float *y, size_t n);                                                           \
  void name##_divide(const float *x, float s, float *y, size_t n);                                                        \
  void name##_fma(const float *x, float s, float t, float *y, size_t n);                                                  \
  void name##_pow(const float *x, float s, float *y, size_t n);                                                           \
  void name##_less(float s, const float *x, unsigned char *y, size_t n);                                                  \
  void name##_where(const unsigned char *c, const float *x, const float *y, float *z, size_t n);                          \
  void name##_gain(const float *x, const float gain[3], float *y, size_t n);                                              \
  void name##_filmic(const float *x, float exposure, float *y, size_t n);                                                 \
  void name##_clip(const float *x, float min, float max, float *y, size_t n);                                             \
  /* All of it in one loop. */                                                                                            \
  void name##_all(const unsigned char *x, const float gain[3], float exposure, unsigned char *y, size_t n);

PLAIN_FUNCTIONS(plain)
PLAIN_FUNCTIONS(native)

#endif
