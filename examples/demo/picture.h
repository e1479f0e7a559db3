/* SPDX-License-Identifier: Apache-2.0
 *
 * picture.h: 8-bit RGB pictures from and to files. Knows nothing of Quern. */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include <stddef.h>
#include <stdint.h>

typedef struct picture {
  int width, height;
  unsigned char *rgb; /* [height][width][3] */
} picture;

/* All return 0, or -1 with errno set. */
int picture_read_ppm(const char *path, picture *p);
int picture_write_ppm(const char *path, const picture *p);
int picture_write_png(const char *path, const picture *p); /* without compression */

uint32_t picture_crc32(uint32_t crc, const unsigned char *bytes, size_t n); /* crc: 0 to begin with */

#endif
