/* SPDX-License-Identifier: Apache-2.0
 *
 * picture.c: PPM in and out, PNG out by the shortest way: one zlib stream of stored blocks. */
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int picture_read_ppm(const char *path, picture *p) {
  FILE *file = fopen(path, "rb");
  if (!file) return -1;
  int max = 0;
  p->rgb = NULL;
  if (fscanf(file, "P6 %d %d %d", &p->width, &p->height, &max) == 3 && max == 255 && fgetc(file) == '\n' && p->width > 0 &&
      p->height > 0 && p->width <= 1 << 14 && p->height <= 1 << 14) {
    const size_t n = (size_t)p->width * (size_t)p->height * 3;
    p->rgb = malloc(n);
    if (p->rgb && fread(p->rgb, 1, n, file) != n) {
      free(p->rgb);
      p->rgb = NULL;
    }
  }
  fclose(file);
  if (p->rgb) return 0;
  errno = EINVAL;
  return -1;
}

int picture_write_ppm(const char *path, const picture *p) {
  FILE *file = fopen(path, "wb");
  if (!file) return -1;
  const size_t n = (size_t)p->width * (size_t)p->height * 3;
  fprintf(file, "P6\n%d %d\n255\n", p->width, p->height);
  const int short_write = fwrite(p->rgb, 1, n, file) != n;
  return fclose(file) != 0 || short_write ? -1 : 0;
}

uint32_t picture_crc32(uint32_t crc, const unsigned char *bytes, size_t n) {
  static uint32_t table[256];
  if (table[1] == 0) {
    for (uint32_t k = 0; k < 256; k++) {
      uint32_t c = k;
      for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
      table[k] = c;
    }
  }
  crc = ~crc;
  for (size_t i = 0; i < n; i++) crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
  return ~crc;
}

static void put32(unsigned char *at, uint32_t value) {
  for (int k = 0; k < 4; k++) at[k] = (unsigned char)(value >> (24 - 8 * k));
}

/* length, type, data, CRC of type and data */
static void put_chunk(FILE *file, const char *type, const unsigned char *data, size_t n) {
  unsigned char word[4];
  put32(word, (uint32_t)n);
  fwrite(word, 1, 4, file);
  fwrite(type, 1, 4, file);
  if (n > 0) fwrite(data, 1, n, file);
  put32(word, picture_crc32(picture_crc32(0, (const unsigned char *)type, 4), data, n));
  fwrite(word, 1, 4, file);
}

int picture_write_png(const char *path, const picture *p) {
  enum { BLOCK = 65535 };
  const size_t row = (size_t)p->width * 3 + 1, n = row * (size_t)p->height; /* a filter byte before each row */
  const size_t n_blocks = (n + BLOCK - 1) / BLOCK;
  unsigned char *raw = malloc(n), *stream = malloc(n + 5 * n_blocks + 6);
  FILE *file = raw && stream ? fopen(path, "wb") : NULL;
  if (!file) {
    free(raw);
    free(stream);
    return -1;
  }
  for (size_t y = 0; y < (size_t)p->height; y++) {
    raw[y * row] = 0;
    memcpy(raw + y * row + 1, p->rgb + y * (row - 1), row - 1);
  }
  unsigned char *at = stream;
  *at++ = 0x78; /* zlib: deflate, window of 32 KB */
  *at++ = 0x01;
  for (size_t start = 0; start < n; start += BLOCK) {
    const size_t m = n - start < BLOCK ? n - start : BLOCK;
    *at++ = start + m == n; /* last block?; type 0, stored */
    *at++ = (unsigned char)m;
    *at++ = (unsigned char)(m >> 8);
    *at++ = (unsigned char)~m;
    *at++ = (unsigned char)(~m >> 8);
    memcpy(at, raw + start, m);
    at += m;
  }
  uint32_t a = 1, b = 0; /* Adler-32 */
  for (size_t i = 0; i < n; i++) {
    a = (a + raw[i]) % 65521;
    b = (b + a) % 65521;
  }
  put32(at, b << 16 | a);
  at += 4;

  unsigned char head[13] = {0};
  put32(head, (uint32_t)p->width);
  put32(head + 4, (uint32_t)p->height);
  head[8] = 8; /* bits */
  head[9] = 2; /* RGB */
  fwrite("\x89PNG\r\n\x1a\n", 1, 8, file);
  put_chunk(file, "IHDR", head, sizeof head);
  put_chunk(file, "IDAT", stream, (size_t)(at - stream));
  put_chunk(file, "IEND", NULL, 0);
  const int failed = ferror(file);
  free(raw);
  free(stream);
  return fclose(file) != 0 || failed ? -1 : 0;
}
