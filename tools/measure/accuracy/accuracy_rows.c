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

static int find(const accuracy_programs *programs, const char *name, const char *dtype) {
  int k = 0;
  while (k < programs->n && (strcmp(programs->rows[k].name, name) != 0 || strcmp(programs->rows[k].dtype, dtype) != 0)) k++;
  return k;
}

const char *accuracy_program(const accuracy_programs *programs, const char *name, const char *dtype) {
  const int k = find(programs, name, dtype);
  return k < programs->n ? programs->rows[k].digest : "";
}

void accuracy_program_set(accuracy_programs *programs, const char *name, const char *dtype, const char *digest) {
  const int k = find(programs, name, dtype);
  if (k == (int)(sizeof programs->rows / sizeof programs->rows[0])) return; /* full: as changed */
  snprintf(programs->rows[k].name, sizeof programs->rows[k].name, "%s", name);
  snprintf(programs->rows[k].dtype, sizeof programs->rows[k].dtype, "%s", dtype);
  snprintf(programs->rows[k].digest, sizeof programs->rows[k].digest, "%s", digest);
  programs->n += k == programs->n;
}

/* `op dtype digest` lines. */
static int read_digests(FILE *f, accuracy_programs *programs) {
  char line[200], name[64], dtype[16], digest[20];
  while (fgets(line, sizeof line, f))
    if (line[0] != '#' && sscanf(line, "%63s %15s %19s", name, dtype, digest) == 3)
      accuracy_program_set(programs, name, dtype, digest);
  return programs->n > 0;
}

int accuracy_programs_read(const char *root, accuracy_programs *programs) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", root, measured);
  FILE *f = fopen(path, "r");
  const int is_there = f && read_digests(f, programs);
  if (f) fclose(f);
  return is_there;
}

int accuracy_programs_now(const char *root, accuracy_programs *programs) {
  char command[4096];
  snprintf(command, sizeof command, "cd '%s' && lua5.4 tools/measure/programs.lua", root);
  FILE *f = popen(command, "r");
  const int is_there = f && read_digests(f, programs);
  return f && pclose(f) == 0 && is_there;
}

int accuracy_programs_write(const char *root, const accuracy_programs *programs) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", root, measured);
  FILE *f = fopen(path, "w");
  if (!f) return 0;
  fputs("# The text that the rows of ACCURACY.md were measured of: op, dtype, digest (programs.lua). Written with them; t300 and t306\n"
        "# measure what has changed since.\n", f);
  for (int k = 0; k < programs->n; k++)
    fprintf(f, "%s %s %s\n", programs->rows[k].name, programs->rows[k].dtype, programs->rows[k].digest);
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
