/* SPDX-License-Identifier: Apache-2.0
 *
 * quern_main.c: the program `quern`: finds the command, prints help and version. Exit status 0: done; 1: it could not
 * be done, and one sentence on standard error says why; 2: the command line is wrong. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <quern/quern.h>

#include "command_tables.h"
#include "commands.h"
#include "say.h"

/* In the order of their pages. */
static int (*const commands[])(int argc, char **argv) = {command_run,  command_ops,  command_show,   command_info,
                                                         command_cache, command_help, command_version};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const char short_usage[] = "quern run|ops|show|info|cache|help|version ..., quern --version, quern --help\n";

/* The index of a command, or -1, which is said. */
static int find_command(const char *name) {
  char hint[COMMAND_LINE_HINT_SIZE];
  for (int k = 0; k < N_COMMANDS; k++)
    if (strcmp(command_pages[k].name, name) == 0) return k;
  command_line_hint(name, &command_pages[0].name, N_COMMANDS, sizeof command_pages[0], hint);
  return misuse(short_usage, "unknown command '%.100s'%s", name, hint), -1;
}

int command_help(int argc, char **argv) {
  if (argc > 1) return misuse(help_usage, "unexpected '%.100s'", argv[1]);
  const int k = argc == 1 ? find_command(argv[0]) : 0;
  if (k < 0) return STATUS_MISUSE;
  fputs(argc == 1 ? command_pages[k].help : program_help, stdout);
  return finish_output();
}

int command_version(int argc, char **argv) {
  if (argc) return misuse(version_usage, "unexpected '%.100s'", argv[0]);
  const uint32_t v = quern_version();
  printf("quern %d.%d.%d", QUERN_VERSION_MAJOR, QUERN_VERSION_MINOR, QUERN_VERSION_PATCH);
  if (v != (QUERN_VERSION_MAJOR << 16 | QUERN_VERSION_MINOR << 8 | QUERN_VERSION_PATCH))
    printf(" with libquern %u.%u.%u", v >> 16, v >> 8 & 255, v & 255);
  puts("");
  return finish_output();
}

/* Files that are opened must not become standard output because that was closed. */
static void hold_standard_files(void) {
  int fd;
  do fd = open("/dev/null", O_RDONLY);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
  hold_standard_files();
  if (argc < 2) return misuse(short_usage, "a command is wanted");
  if (strcmp(argv[1], "--help") == 0) return command_help(0, NULL);
  if (strcmp(argv[1], "--version") == 0) return command_version(0, NULL);
  const int k = find_command(argv[1]);
  if (k < 0) return STATUS_MISUSE;
  if (argc > 2 && strcmp(argv[2], "--help") == 0) return command_help(1, argv + 1);
  return commands[k](argc - 2, argv + 2);
}
