/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_rows.c: see accuracy_rows.h. */
#include "accuracy_rows.h"

#include <stdio.h>
#include <string.h>

/* A cell of a row of the table, without its blanks. */
static const char *cell(const char *line, char *text, size_t size) {
  const char *end = strchr(line, '|');
  if (!end) return NULL;
  const char *first = line + strspn(line, " "), *last = end;
  while (last > first && last[-1] == ' ') last--;
  snprintf(text, size, "%.*s", (int)(last - first), first);
  return end + 1;
}

int accuracy_read(const char *file, accuracy_row rows[][REF_N_DTYPES]) {
  char line[1000], name[64], dtype[16], declared[16];
  FILE *f = fopen(file, "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    accuracy_row r = {.found = ""};
    const char *at = line;
    if (*at++ != '|' || !(at = cell(at, name, sizeof name)) || !(at = cell(at, dtype, sizeof dtype)) ||
        !(at = cell(at, declared, sizeof declared)) || !(at = cell(at, r.found, sizeof r.found)) ||
        !(at = cell(at, r.at, sizeof r.at)) || !(at = cell(at, r.points, sizeof r.points)) ||
        !cell(at, r.reference, sizeof r.reference)) {
      continue;
    }
    ref_op op = ref_op_find(name);
    for (int d = 0; d < REF_N_DTYPES && op != REF_N_OPS; d++) {
      if (strcmp(ref_dtype_name((ref_dtype)d), dtype) == 0) rows[op][d] = r;
    }
  }
  fclose(f);
  return 1;
}

/* ---- Which text a row was measured of ---- */

static const char measured[] = "tools/measure/measured.txt";

/* `op dtype digest` lines; their number. Unknown ops are passed over. */
static int read_digests(FILE *f, accuracy_programs digests) {
  char line[200], name[64], dtype[16], digest[20];
  int n = 0;
  while (fgets(line, sizeof line, f)) {
    if (sscanf(line, "%63s %15s %19s", name, dtype, digest) != 3) continue;
    const ref_op op = ref_op_find(name);
    for (int d = 0; d < REF_N_DTYPES && op != REF_N_OPS; d++)
      if (strcmp(ref_dtype_name((ref_dtype)d), dtype) == 0) memcpy(digests[op][d], digest, sizeof digest), n++;
  }
  return n;
}

int accuracy_programs_read(const char *root, accuracy_programs digests) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", root, measured);
  FILE *f = fopen(path, "r");
  const int n = f ? read_digests(f, digests) : 0;
  if (f) fclose(f);
  return n > 0;
}

int accuracy_programs_now(const char *root, accuracy_programs digests) {
  char command[4096];
  snprintf(command, sizeof command, "cd '%s' && lua5.4 tools/measure/programs.lua", root);
  FILE *f = popen(command, "r");
  const int n = f ? read_digests(f, digests) : 0;
  return f && pclose(f) == 0 && n > 0;
}

int accuracy_programs_write(const char *root, accuracy_programs digests) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", root, measured);
  FILE *f = fopen(path, "w");
  if (!f) return 0;
  fputs("Which text the rows of ACCURACY.md were measured of: op, dtype, digest (programs.lua). Written with them; t300 reads it.\n", f);
  for (int op = 0; op < REF_N_OPS; op++)
    for (int d = 0; d < REF_N_DTYPES; d++)
      if (digests[op][d][0])
        fprintf(f, "%s %s %s\n", ref_op_describe((ref_op)op)->name, ref_dtype_name((ref_dtype)d), digests[op][d]);
  return fclose(f) == 0;
}

int accuracy_read_backward(const char *file, backward_row rows[BACKWARD_MAX_ROWS][REF_N_DTYPES][BACKWARD_MAX_OUT]) {
  char line[1000], name[64], dtype[16], declared[16], expected[64];
  FILE *f = fopen(file, "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f)) {
    backward_row r = {.found = ""};
    const char *at = line;
    if (*at++ != '|' || !(at = cell(at, name, sizeof name)) || !(at = cell(at, dtype, sizeof dtype)) ||
        !(at = cell(at, r.output, sizeof r.output)) || !(at = cell(at, declared, sizeof declared)) ||
        !(at = cell(at, r.found, sizeof r.found)) || !(at = cell(at, r.at, sizeof r.at)) ||
        !cell(at, r.points, sizeof r.points)) {
      continue;
    }
    for (int k = 0; backward_op(k); k++) {
      snprintf(expected, sizeof expected, "%s_backward", backward_op(k));
      for (int d = 0; d < REF_N_DTYPES && strcmp(expected, name) == 0; d++) {
        int output = 0;
        while (output < BACKWARD_MAX_OUT - 1 && rows[k][d][output].found[0]) output++;
        if (strcmp(ref_dtype_name((ref_dtype)d), dtype) == 0) rows[k][d][output] = r;
      }
    }
  }
  fclose(f);
  return 1;
}
