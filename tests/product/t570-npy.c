/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t570: .npy files: what every header says, every header that lies, round trips in each version, order and dtype, files that
 * are cut short, changed in one bit, longer than their header says, or no files at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tools/quern/files/npy.c" /* a part of the program, which is no library */
#include "tap.h"

static char folder[256], path[320], why[WHY_SIZE];

/* ---- Files in memory ---- */

typedef struct image {
  unsigned char *bytes; /* malloc'ed to the byte, so that a sanitizer sees what reads beyond */
  size_t size;
} image;

/* A file of format version `version` with that header text, then `data_bytes` bytes that count upwards. */
static image make_image(int version, const char *text, size_t text_size, size_t data_bytes) {
  const size_t preamble = version == 1 ? 10 : 12;
  image made = {malloc(preamble + text_size + data_bytes), preamble + text_size + data_bytes};
  if (!made.bytes) bail("out of memory");
  memcpy(made.bytes, "\x93NUMPY", 6);
  made.bytes[6] = (unsigned char)version;
  made.bytes[7] = 0;
  for (size_t k = 8; k < preamble; k++) made.bytes[k] = (unsigned char)(text_size >> 8 * (k - 8));
  memcpy(made.bytes + preamble, text, text_size);
  for (size_t k = 0; k < data_bytes; k++) made.bytes[preamble + text_size + k] = (unsigned char)(k * 7 + 1);
  return made;
}

/* npy_parse on a copy that ends where the file does. */
static int parse(const unsigned char *bytes, size_t size, npy_header *header) {
  unsigned char *copy = malloc(size ? size : 1);
  if (!copy) bail("out of memory");
  memcpy(copy, bytes, size);
  why[0] = 0;
  const int good = npy_parse(copy, size, (int64_t)size, header, why);
  free(copy);
  return good;
}

/* ---- Headers ---- */

static const struct {
  const char *text, *kind;
  int item_bytes, is_fortran, ndim;
  int64_t shape[4];
} good[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "f", 4, 0, 1, {3}},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "f", 4, 0, 1, {3}},
    {"{\"descr\": \"<f8\", \"fortran_order\": True, \"shape\": (2, 3)}", "f", 8, 1, 2, {2, 3}},
    {"{'shape':(2,3,),'descr':\"<i8\",'fortran_order':False}", "i", 8, 0, 2, {2, 3}},
    {"{'fortran_order': False, 'shape': (), 'descr': '|b1'}", "b", 1, 0, 0, {0}},
    {"{'fortran_order': False, 'shape': ( ), 'descr': '<b1'}", "b", 1, 0, 0, {0}},
    {"  {\n\t'descr' :\r\n '|u1' , 'fortran_order' : False , 'shape' : ( 2 , 2 ) , } \n", "u", 1, 0, 2, {2, 2}},
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (2L, 3L)}", "i", 4, 0, 2, {2, 3}},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (0,)}", "f", 2, 0, 1, {0}},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (4, 0, 5)}", "f", 2, 0, 3, {4, 0, 5}},
    {"{'descr': '|V2', 'fortran_order': False, 'shape': (5,)}", "V", 2, 0, 1, {5}},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (5,)}", "V", 2, 0, 1, {5}},
    {"{'descr': '|i1', 'fortran_order': False, 'shape': (5,)}", "i", 1, 0, 1, {5}},
    {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 1, 1)}", "u", 2, 0, 4, {1, 1, 1, 1}},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", "i", 2, 0, 1, {2}},
    {"{'descr': '<u4', 'fortran_order': False, 'shape': (2,)}", "u", 4, 0, 1, {2}},
    {"{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}", "u", 8, 0, 1, {2}},
};

static void test_good(void) {
  for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
    int right = 0;
    for (int version = 1; version <= 3; version++) {
      npy_header header;
      size_t items = 1;
      for (int d = 0; d < good[k].ndim; d++) items *= (size_t)good[k].shape[d];
      image file = make_image(version, good[k].text, strlen(good[k].text), items * (size_t)good[k].item_bytes);
      if (!parse(file.bytes, file.size, &header)) {
        diag("version %d: %s", version, why);
      } else {
        right += header.kind == good[k].kind[0] && header.item_bytes == good[k].item_bytes &&
                 header.is_fortran == good[k].is_fortran && header.ndim == good[k].ndim &&
                 memcmp(header.shape, good[k].shape, (size_t)header.ndim * sizeof(int64_t)) == 0 &&
                 header.n_items == (int64_t)items && header.data_bytes == (int64_t)items * header.item_bytes &&
                 header.data_offset + header.data_bytes == (int64_t)file.size;
      }
      free(file.bytes);
    }
    is_int(right, 3, "taken in 3 versions: %s", good[k].text);
  }
}

/* Most lies are told of a file with 8 bytes of data. */
static const struct {
  const char *text, *says;
} bad[] = {
    {"", "ends too early"},
    {"{", "ends too early"},
    {"x", "is not a dict"},
    {"[]", "is not a dict"},
    {"('descr', '<f4')", "is not a dict"},
    {"{}", "has no key 'descr'"},
    {"{'descr': '<f4'}", "has no key 'fortran_order'"},
    {"{'descr': '<f4', 'fortran_order': False}", "has no key 'shape'"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "ends too early"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "more in it than a dict"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}{}", "more in it than a dict"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", "a comma is missing"},
    {"{'descr': '<f4',, 'fortran_order': False, 'shape': (2,)}", "is not a string"},
    {"{,'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "is not a string"},
    {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", "no colon behind 'descr'"},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "the key 'descr' twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}", "the key 'shape' twice"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'extra': 1}", "an unknown key 'extra'"},
    {"{descr: '<f4', 'fortran_order': False, 'shape': (2,)}", "a key is not a string"},
    {"{'des\\x63r': '<f4', 'fortran_order': False, 'shape': (2,)}", "a character it cannot have"},
    {"{'descr': '<f4\n', 'fortran_order': False, 'shape': (2,)}", "a character it cannot have"},
    {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "a comma is missing"},
    {"{'descr': '<f4", "ends too early"},
    {"{'descr': 4, 'fortran_order': False, 'shape': (2,)}", "descr is not a string"},
    {"{'descr': b'<f4', 'fortran_order': False, 'shape': (2,)}", "descr is not a string"},
    {"{'descr': None, 'fortran_order': False, 'shape': (2,)}", "descr is not a string"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "neither True nor False"},
    {"{'descr': '<f4', 'fortran_order': 'False', 'shape': (2,)}", "neither True nor False"},
    {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2,)}", "a comma is missing"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "not a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [2]}", "not a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", "a number, not a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,,1)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 1)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0x2,)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ((2,),)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (+2,)}", "not a tuple of integers"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (02,)}", "begins with 0"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", "ends too early"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "a negative extent"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -2)}", "a negative extent"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "an extent of more than 2^63 - 1"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999999,)}", "an extent of more than 2^63 - 1"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "more than 2^62 bytes"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,)}", "more than 2^62 bytes"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904,)}", "truncated"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "more than 2^62 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "more than 2^62 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}", "more than 2^62 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2)}",
     "more than 32 dimensions"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "truncated: its header says 12 bytes of data, there are 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000)}", "truncated"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "too long: its header says 4 bytes of data, there are 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", "too long"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "byte-swapped ('>f4'); save it as little-endian: a.astype('<f4')"},
    {"{'descr': '>u2', 'fortran_order': False, 'shape': (4,)}", "byte-swapped"},
    {"{'descr': '=f4', 'fortran_order': False, 'shape': (2,)}", "does not say its byte order"},
    {"{'descr': '|f4', 'fortran_order': False, 'shape': (2,)}", "does not say its byte order"},
    {"{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", "does not say its byte order"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects ('|O')"},
    {"{'descr': 'O8', 'fortran_order': False, 'shape': (1,)}", "Python objects"},
    {"{'descr': '|S8', 'fortran_order': False, 'shape': (1,)}", "strings ('|S8')"},
    {"{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}", "strings"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", "times ('<M8[ns]')"},
    {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "complex numbers ('<c8')"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "floats of 16 bytes ('<f16')"},
    {"{'descr': '|V8', 'fortran_order': False, 'shape': (1,)}", "8 bytes of no type ('|V8')"},
    {"{'descr': '|V0', 'fortran_order': False, 'shape': (1,)}", "is not known"},
    {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "dtype '<f3' is not known"},
    {"{'descr': '<f04', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<f-4', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<f', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<f4x', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<<f4', 'fortran_order': False, 'shape': (2,)}", "is not known"},
    {"{'descr': '<b8', 'fortran_order': False, 'shape': (1,)}", "is not known"},
    {"{'descr': '<i16', 'fortran_order': False, 'shape': (1,)}", "is not known"},
    {"{'descr': '<f99999999999999999999', 'fortran_order': False, 'shape': (1,)}", "floats of"},
    {"{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'fortran_order': False}", "too long"},
    {"{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"},
    {"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (1,)}", "records"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} # end", "more in it than a dict"},
};

static void test_bad(void) {
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    int refused = 0, said = 0;
    for (int version = 1; version <= 3; version++) {
      npy_header header;
      image file = make_image(version, bad[k].text, strlen(bad[k].text), 8);
      refused += !parse(file.bytes, file.size, &header);
      said += strstr(why, bad[k].says) != NULL && !strchr(why, '\n');
      free(file.bytes);
    }
    if (!ok(refused == 3 && said == 3, "refused: %s", bad[k].text)) diag("said: %s\nwanted: %s", why, bad[k].says);
  }
  npy_header header;
  image file = make_image(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\0 ", 57, 8);
  ok(!parse(file.bytes, file.size, &header), "refused: a zero byte in the padding");
  free(file.bytes);
  file = make_image(1, "{'descr': '<f\xff', 'fortran_order': False, 'shape': (2,)}", 55, 8);
  ok(!parse(file.bytes, file.size, &header), "refused: a byte that is not ASCII");
  free(file.bytes);
}

/* ---- Preambles ---- */

static void refused_bytes(const void *bytes, size_t size, const char *says, const char *name) {
  npy_header header;
  if (!ok(!parse(bytes, size, &header) && strstr(why, says), "refused: %s", name)) diag("said: %s", why);
}

static void test_preamble(void) {
  npy_header header;
  refused_bytes("", 0, "the file is empty", "no bytes");
  refused_bytes("\x93NUM", 4, "truncated", "half of the magic");
  refused_bytes("\x93NUMPX\1\0\2\0{}", 12, "not an .npy file", "another magic");
  refused_bytes("P5 3 3 255", 10, "not an .npy file", "a picture");
  refused_bytes("PK\3\4 and so on", 14, ".npz archive", "an archive");
  refused_bytes("\x93NUMPY\1\0\2", 9, "truncated", "half of a length");
  refused_bytes("\x93NUMPY\2\0\2\0\0", 11, "truncated", "half of a length of version 2");
  refused_bytes("\x93NUMPY\0\0\2\0{}", 12, "version 0.0", "version 0.0");
  refused_bytes("\x93NUMPY\1\1\2\0{}", 12, "version 1.1", "version 1.1");
  refused_bytes("\x93NUMPY\4\0\2\0\0\0{}", 14, "version 4.0", "version 4.0");
  refused_bytes("\x93NUMPY\1\0\xff\xff{}", 12, "truncated: its header ends at byte 65545", "a header longer than the file");
  refused_bytes("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "truncated: its header ends at byte 4294967307", "a header of 4 GB");
  refused_bytes("\x93NUMPY\3\0\xff\xff\xff\x7f{}", 14, "truncated", "a header of 2 GB");

  const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}";
  char *padded = malloc(NPY_MAX_HEADER + 1);
  memset(padded, ' ', NPY_MAX_HEADER + 1);
  memcpy(padded, text, strlen(text));
  image file = make_image(2, padded, 100000, 8);
  ok(parse(file.bytes, file.size, &header) && header.data_offset == 100012, "taken: a header of 100,000 bytes");
  free(file.bytes);
  file = make_image(2, padded, NPY_MAX_HEADER, 8);
  refused_bytes(file.bytes, file.size, "no array needs that many", "one of more than a megabyte");
  free(file.bytes);
  free(padded);
}

/* ---- Files ---- */

static void write_file(const unsigned char *bytes, size_t size) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) bail("%s cannot be written", path);
  close(fd);
}

static const struct {
  const char *descr, *kind;
  int item_bytes;
} dtypes[] = {{"|b1", "b", 1}, {"|i1", "i", 1}, {"<i2", "i", 2}, {"<i4", "i", 4}, {"<i8", "i", 8}, {"|u1", "u", 1}, {"<u2", "u", 2},
              {"<u4", "u", 4}, {"<u8", "u", 8}, {"<f2", "f", 2}, {"<f4", "f", 4}, {"<f8", "f", 8}, {"<V2", "V", 2}};

static void test_round_trips(void) {
  static const struct {
    int ndim;
    int64_t shape[5];
    const char *text;
  } shapes[] = {{0, {0}, "()"},       {1, {7}, "(7,)"},       {1, {0}, "(0,)"},           {2, {5, 3}, "(5, 3)"},
                {3, {2, 1, 4}, "(2, 1, 4)"}, {3, {2, 0, 4}, "(2, 0, 4)"}, {5, {1, 2, 3, 4, 5}, "(1, 2, 3, 4, 5)"}};
  group_begin("files of every dtype, version, order and of several shapes");
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      for (int way = 0; way < 6; way++) {
        const int version = 1 + way / 2, is_fortran = way % 2;
        char text[256];
        size_t items = 1;
        for (int k = 0; k < shapes[s].ndim; k++) items *= (size_t)shapes[s].shape[k];
        const size_t bytes = items * (size_t)dtypes[d].item_bytes;
        const int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", dtypes[d].descr,
                               is_fortran ? "True" : "False", shapes[s].text);
        image file = make_image(version, text, (size_t)n, bytes);
        write_file(file.bytes, file.size);
        npy_file opened;
        unsigned char *data = malloc(bytes + 1);
        const npy_header *h = &opened.header;
        group_count(1);
        if (!npy_open(path, &opened, why)) group_fail("%s: %s", text, why);
        else if (h->kind != dtypes[d].kind[0] || h->item_bytes != dtypes[d].item_bytes || h->is_fortran != is_fortran ||
                 h->ndim != shapes[s].ndim || memcmp(h->shape, shapes[s].shape, (size_t)h->ndim * 8) != 0 ||
                 h->data_bytes != (int64_t)bytes)
          group_fail("%s: something else was read", text);
        else if (!npy_read(&opened, 0, data, bytes, why) || memcmp(data, file.bytes + file.size - bytes, bytes) != 0)
          group_fail("%s: other data were read", text);
        npy_close(&opened);
        free(data);
        free(file.bytes);
      }
    }
  }
  group_end();

  group_begin("headers that are written are read, and are padded");
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      char text[NPY_FORMAT_SIZE];
      npy_header h;
      const size_t size = npy_format(dtypes[d].kind[0], dtypes[d].item_bytes, shapes[s].ndim, shapes[s].shape, text);
      int64_t items = 1;
      for (int k = 0; k < shapes[s].ndim; k++) items *= shapes[s].shape[k];
      group_count(1);
      if (size % NPY_ALIGNMENT || text[size - 1] != '\n') group_fail("%s: %zu bytes", shapes[s].text, size);
      if (!npy_parse(text, size, (int64_t)size + items * dtypes[d].item_bytes, &h, why))
        group_fail("%s %s: %s", dtypes[d].descr, shapes[s].text, why);
      else if (h.kind != dtypes[d].kind[0] || strcmp(h.descr, dtypes[d].descr) != 0 || h.is_fortran || h.ndim != shapes[s].ndim ||
               memcmp(h.shape, shapes[s].shape, (size_t)h.ndim * 8) != 0)
        group_fail("%s %s: something else was read", dtypes[d].descr, shapes[s].text);
    }
  }
  group_end();

  char text[NPY_FORMAT_SIZE], longest[NPY_FORMAT_SIZE];
  int64_t shape[NPY_MAX_NDIM] = {100, 3};
  const size_t size = npy_format('f', 4, 2, shape, text);
  /* what numpy.save(numpy.zeros((100, 3), 'f4')) writes */
  static const char begins[] = "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (100, 3), }";
  char wanted[128];
  memset(wanted, ' ', sizeof wanted);
  memcpy(wanted, begins, sizeof begins - 1);
  wanted[127] = '\n';
  ok(size == 128 && memcmp(text, wanted, 128) == 0, "the header is NumPy's to the byte");
  for (int k = 0; k < NPY_MAX_NDIM; k++) shape[k] = INT64_MAX;
  ok(npy_format('f', 8, NPY_MAX_NDIM, shape, longest) <= sizeof longest, "the longest header has room");
}

/* ---- Damage ---- */

static image sound_file(void) {
  const char text[] = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }          \n";
  return make_image(1, text, strlen(text), 24);
}

static void test_damage(void) {
  image file = sound_file();
  npy_header header;
  npy_file opened;
  ok(parse(file.bytes, file.size, &header), "the file is sound");
  group_begin("every truncation is refused, in memory and as a file");
  for (size_t size = 0; size < file.size; size++) {
    group_count(1);
    if (parse(file.bytes, size, &header)) group_fail("%zu bytes were taken", size);
    write_file(file.bytes, size);
    if (npy_open(path, &opened, why)) group_fail("a file of %zu bytes was taken", size);
    if (!why[0] || strchr(why, '\n')) group_fail("%zu bytes: said '%s'", size, why);
  }
  group_end();

  group_begin("every changed bit of the header is refused, or means what it says");
  for (size_t bit = 0; bit < 8 * (file.size - 24); bit++) {
    file.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    group_count(1);
    if (parse(file.bytes, file.size, &header)) {
      int64_t bytes = header.item_bytes;
      for (int k = 0; k < header.ndim; k++) bytes *= header.shape[k];
      if (bytes != header.data_bytes || header.data_offset + bytes != (int64_t)file.size || !memchr("biufV", header.kind, 5))
        group_fail("bit %zu: %s, %lld bytes", bit, header.descr, (long long)bytes);
    } else if (!why[0] || strchr(why, '\n')) {
      group_fail("bit %zu: said '%s'", bit, why);
    }
    file.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  group_end();

  group_begin("random damage");
  rng r;
  rng_seed(&r, 570);
  for (int i = 0; i < 20000; i++) {
    unsigned char damaged[128];
    static const char pieces[] = "{}()[]'\",:LTF0123456789-<>|=fiubVO \n\\\xff";
    memcpy(damaged, file.bytes, file.size);
    for (uint64_t n = 1 + rng_below(&r, 4); n > 0; n--)
      damaged[6 + rng_below(&r, file.size - 30)] = (unsigned char)pieces[rng_below(&r, sizeof pieces)];
    group_count(1);
    if (parse(damaged, file.size, &header) && header.data_offset + header.data_bytes != (int64_t)file.size)
      group_fail("case %d does not add up", i);
  }
  group_end();
  free(file.bytes);
}

/* ---- What is no file ---- */

static void refused_path(const char *name, const char *says, const char *what) {
  npy_file opened;
  why[0] = 0;
  if (!ok(!npy_open(name, &opened, why) && strstr(why, says), "refused: %s", what)) diag("said: %s", why);
  is_int(opened.fd, -1, "  and nothing is left open");
}

static void test_files(void) {
  npy_file opened;
  char data[4];
  unlink(path);
  refused_path(path, "there is no such file", "a file that is not there");
  refused_path(folder, "this is a folder", "a folder");
  refused_path("/dev/zero", "not a regular file", "a device");
  if (mkfifo(path, 0600) != 0) bail("no FIFO in %s", folder);
  refused_path(path, "not a regular file", "a FIFO, without waiting for a writer");
  unlink(path);
  image file = sound_file();
  write_file(file.bytes, file.size);
  if (geteuid() == 0) {
    skip(2, "root reads every file");
  } else {
    chmod(path, 0);
    refused_path(path, strerror(EACCES), "a file that may not be read");
    chmod(path, 0600);
  }

  ok(npy_open(path, &opened, why), "a file is opened");
  if (truncate(path, (off_t)file.size - 1) != 0) bail("truncate");
  ok(npy_read(&opened, 0, data, 4, why), "  its first bytes are read");
  ok(!npy_read(&opened, 20, data, 4, why) && strstr(why, "while it was being read"), "  those that were cut off meanwhile are not");
  npy_close(&opened);
  free(file.bytes);

  /* More than any signed 32-bit number of bytes; the file has holes for them. */
  const char text[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2500000000), }\n";
  file = make_image(1, text, strlen(text), 0);
  write_file(file.bytes, file.size);
  const int fd = open(path, O_WRONLY);
  const off_t size = (off_t)file.size + 5000000000;
  if (fd < 0 || ftruncate(fd, size) != 0 || pwrite(fd, "last", 4, size - 4) != 4) {
    skip(2, "no file of 5 GB can be made: %s", strerror(errno));
  } else {
    ok(npy_open(path, &opened, why) && opened.header.data_bytes == 5000000000, "a file of 5 GB is opened");
    ok(npy_read(&opened, 4999999996, data, 4, why) && memcmp(data, "last", 4) == 0, "  and its end is read");
    npy_close(&opened);
  }
  close(fd);
  free(file.bytes);
}

int main(void) {
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%.200s/quern-t570.XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(folder)) bail("no folder for files");
  snprintf(path, sizeof path, "%s/a.npy", folder);
  test_good();
  test_bad();
  test_preamble();
  test_round_trips();
  test_damage();
  test_files();
  unlink(path);
  rmdir(folder);
  return done_testing();
}
