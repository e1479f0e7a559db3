/* SPDX-License-Identifier: Apache-2.0
 *
 * plain.c: the demo's work as plain loops, with libm's powf. */
#include "plain.h"

#include <math.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(b) JOIN(PLAIN, b)

void NAME(u8_to_f32)(const unsigned char *x, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i];
}
void NAME(f32_to_u8)(const float *x, unsigned char *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = (unsigned char)x[i];
}
void NAME(multiply)(const float *x, float s, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] * s;
}
void NAME(add)(const float *x, float s, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] + s;
}
void NAME(divide)(const float *x, float s, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] / s;
}
void NAME(fma)(const float *x, float s, float t, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] * s + t;
}
void NAME(pow)(const float *x, float s, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = powf(x[i], s);
}
void NAME(less)(float s, const float *x, unsigned char *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = s < x[i];
}
void NAME(where)(const unsigned char *c, const float *x, const float *y, float *z, size_t n) {
  for (size_t i = 0; i < n; i++) z[i] = c[i] ? x[i] : y[i];
}
void NAME(gain)(const float *x, const float gain[3], float *y, size_t n) {
  for (size_t i = 0; i < n; i += 3)
    for (size_t c = 0; c < 3; c++) y[i + c] = x[i + c] * gain[c];
}

static float filmic(float x, float exposure) {
  float v = exposure * x;
  v = v < 0.0f ? 0.0f : v > 100.0f ? 100.0f : v;
  const float y = v * (2.51f * v + 0.03f) / (v * (2.43f * v + 0.59f) + 0.14f);
  return y < 0.0f ? 0.0f : y > 1.0f ? 1.0f : y;
}

void NAME(filmic)(const float *x, float exposure, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = filmic(x[i], exposure);
}
void NAME(clip)(const float *x, float min, float max, float *y, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = x[i] < min ? min : x[i] > max ? max : x[i];
}

void NAME(all)(const unsigned char *x, const float gain[3], float exposure, unsigned char *y, size_t n) {
  for (size_t i = 0; i < n; i += 3)
    for (size_t c = 0; c < 3; c++) {
      float v = x[i + c] * (1.0f / 255.0f);
      v = v > 0.04045f ? powf((v + 0.055f) / 1.055f, 2.4f) : v / 12.92f;
      v = filmic(v * gain[c], exposure);
      v = v > 0.0031308f ? 1.055f * powf(v, 1.0f / 2.4f) - 0.055f : v * 12.92f;
      v = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
      y[i + c] = (unsigned char)(v * 255.0f + 0.5f);
    }
}
