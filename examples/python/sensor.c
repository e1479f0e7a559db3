/* SPDX-License-Identifier: Apache-2.0
 *
 * sensor.c: a C library of someone's, which knows neither NumPy nor Quern: it fills a buffer that it is given. */
#include <stddef.h>

static const float *last;

void sensor_read(float *frame, size_t n) {
  for (size_t i = 0; i < n; i++) frame[i] = (float)(100 + i * 37 % 101);
  last = frame;
}

/* Where it wrote. */
const float *sensor_last(void) { return last; }
