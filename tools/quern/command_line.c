/* SPDX-License-Identifier: Apache-2.0
 *
 * command_line.c: see command_line.h. */
#include "command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

/* ---- The nearest name ---- */

enum { MOST_LETTERS = 32 };

/* How many letters are put in, left out, replaced or exchanged with their neighbour. Both have MOST_LETTERS at most. */
static int distance(const char *a, const char *b) {
  int rows[3][MOST_LETTERS + 1];
  const int n_a = (int)strlen(a), n_b = (int)strlen(b);
  for (int j = 0; j <= n_b; j++) rows[0][j] = j;
  for (int i = 1; i <= n_a; i++) {
    int *row = rows[i % 3];
    const int *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
    row[0] = i;
    for (int j = 1; j <= n_b; j++) {
      int best = before[j - 1] + (a[i - 1] != b[j - 1]);
      if (before[j] + 1 < best) best = before[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_before[j - 2] + 1 < best) best = two_before[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[n_a % 3][n_b];
}

const char *command_line_hint(const char *word, const char *const *names, int n, size_t step, char text[COMMAND_LINE_HINT_SIZE]) {
  const char *nearest = NULL;
  int best = (int)strlen(word) / 3 + 1;
  text[0] = 0;
  for (int k = 0; k < n && strlen(word) <= MOST_LETTERS; k++) {
    const char *name = *(const char *const *)(const void *)((const char *)names + (size_t)k * step);
    const int d = strlen(name) <= MOST_LETTERS ? distance(word, name) : best + 1;
    const int is_begin = word[0] && strncmp(name, word, strlen(word)) == 0; /* one cut short */
    if (d > best && !is_begin) continue;
    if (nearest && d >= best) continue;
    best = d;
    nearest = name;
  }
  if (nearest) snprintf(text, COMMAND_LINE_HINT_SIZE, ", did you mean %.40s?", nearest);
  return text;
}

/* ---- Arguments ---- */

static int refuse_option(const command_line *line, const command_option *options, const char *word, size_t length) {
  char given[MOST_LETTERS + 1] = "", hint[COMMAND_LINE_HINT_SIZE];
  int n = 0;
  while (options[n].name) n++;
  if (length <= MOST_LETTERS) memcpy(given, word, length);
  command_line_hint(given, &options[0].name, length > 2 ? n : 0, sizeof options[0], hint);
  return misuse(line->usage, "unknown option %.100s%s", word, hint), COMMAND_LINE_MISUSE;
}

int command_line_next(command_line *line, const command_option *options, const char **value) {
  if (line->at == line->argc) return COMMAND_LINE_END;
  const char *word = *value = line->argv[line->at++];
  /* One minus begins an expression: there are no short options. */
  if (line->only_words || strncmp(word, "--", 2) != 0) return COMMAND_LINE_WORD;
  if (strcmp(word, "--") == 0) {
    line->only_words = 1;
    return command_line_next(line, options, value);
  }
  const size_t length = strcspn(word, "=");
  for (int k = 0; options[k].name; k++) {
    if (strlen(options[k].name) != length || memcmp(options[k].name, word, length) != 0) continue;
    *value = word[length] ? word + length + 1 : NULL;
    if (options[k].has_value && !*value && line->at < line->argc) *value = line->argv[line->at++];
    if (options[k].has_value && !*value) return misuse(line->usage, "%s wants a value", word), COMMAND_LINE_MISUSE;
    if (!options[k].has_value && *value)
      return misuse(line->usage, "%s takes no value", options[k].name), COMMAND_LINE_MISUSE;
    return k;
  }
  return refuse_option(line, options, word, length);
}

int spec_list_add(spec_list *specs, const char *path) {
  const char **grown = realloc(specs->paths, ((size_t)specs->n + 1) * sizeof grown[0]);
  if (!grown) return complain("out of memory"), 0;
  specs->paths = grown;
  specs->paths[specs->n++] = path;
  return 1;
}

void spec_list_free(spec_list *specs) {
  free(specs->paths);
  *specs = (spec_list){NULL, 0};
}

quern_ctx *open_context(const quern_options *options, const spec_list *specs) {
  quern_ctx *ctx = NULL;
  if (quern_ctx_create(options, &ctx)) return complain_library(), NULL;
  for (int k = 0; specs && k < specs->n; k++) {
    if (quern_spec_load(ctx, specs->paths[k]) == QUERN_OK) continue;
    complain_library();
    quern_ctx_release(ctx);
    return NULL;
  }
  return ctx;
}

char *text_of_any_size(quern_status (*fill)(void *arg, char *text, size_t size), void *arg) {
  enum { FIRST = 4096, LAST = 1 << 26 };
  for (size_t size = FIRST; size <= LAST; size *= 4) {
    char *text = malloc(size);
    if (!text) return complain("out of memory"), NULL;
    const quern_status status = fill(arg, text, size);
    if (status == QUERN_OK) return text;
    free(text);
    if (status != QUERN_E_LIMIT) break;
  }
  return complain_library(), NULL;
}
