/* SPDX-License-Identifier: Apache-2.0
 *
 * command_line.h: takes a command's arguments apart into options and words, and the options that several commands
 * share. Knows no command. */
#ifndef QUERN_PROGRAM_COMMAND_LINE_H
#define QUERN_PROGRAM_COMMAND_LINE_H

#include <quern/quern.h>

/* An option of a command: "--repeat" N, --repeat=N, or without a value. */
typedef struct command_option {
  const char *name; /* "--repeat" */
  int has_value;
} command_option;

/* What is told of a command. */
typedef struct command_page {
  const char *name, *usage, *help;
} command_page;

typedef struct command_line {
  const char *usage; /* of the command, for complaints */
  int argc;          /* what follows the command's name */
  char **argv;
  int at, only_words;
} command_line;

/* ", did you mean 'x'?" of the name nearest to a word, or "": names[k], for k in [0, n), are `step` bytes apart. */
#define COMMAND_LINE_HINT_SIZE 64
const char *command_line_hint(const char *word, const char *const *names, int n, size_t step, char text[COMMAND_LINE_HINT_SIZE]);

#define COMMAND_LINE_END (-1)
#define COMMAND_LINE_WORD (-2)
#define COMMAND_LINE_MISUSE (-3) /* said already */

/* The next argument: the index of an option (options end with a NULL name) or one of the above; *value: the option's
 * value, or the word. Behind "--" all are words. */
int command_line_next(command_line *line, const command_option *options, const char **value);

/* Specs, in the order given. */
typedef struct spec_list {
  const char **paths;
  int n;
} spec_list;

/* 0: out of memory, said already. */
int spec_list_add(spec_list *specs, const char *path);
void spec_list_free(spec_list *specs);

/* A context with those specs. NULL: said already. `options` may be NULL. */
quern_ctx *open_context(const quern_options *options, const spec_list *specs);

/* Calls fill(arg, text, size) with more and more room while it returns QUERN_E_LIMIT. The text, malloc'ed; NULL: said
 * already. */
char *text_of_any_size(quern_status (*fill)(void *arg, char *text, size_t size), void *arg);

#endif
