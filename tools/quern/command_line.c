/* SPDX-License-Identifier: Apache-2.0
 *
 * command_line.c: see command_line.h. */
#include "command_line.h"

#include <stdlib.h>
#include <string.h>

#include "say.h"

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
  return misuse(line->usage, "unknown option %.100s", word), COMMAND_LINE_MISUSE;
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
