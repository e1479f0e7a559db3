/* SPDX-License-Identifier: Apache-2.0
 *
 * quern_main.c: the program `quern`: finds the command, prints help and version. Exit status 0: done; 1: it could not
 * be done, and one sentence on standard error says why; 2: the command line is wrong. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <quern/quern.h>

#include "commands.h"
#include "say.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *usage, *about;
} commands[] = {
    {"run", command_run, run_usage,
     "computes an expression of .npy files into .npy files, such as\n"
     "    quern run \"y = gelu(x * w + b)\" x=x.npy w=w.npy b=b.npy y=out.npy\n"
     "  An output without a file is printed if it has at most 100 elements: quern run \"s = sum(x * y)\" x=x.npy y=y.npy\n"
     "  x:bf16=FILE says what the 16-bit words of an input are; y:f16=FILE asks for a dtype of an output.\n"
     "  --spec FILE      ops of a spec file are known too\n"
     "  --param a=0.5    the value of a parameter: the expression has `param a;`\n"
     "  --jit off        only what is built and the interpreter; sync: compiles first; async: compiles meanwhile\n"
     "  --threads N      at most N threads\n"
     "  --device cuda:N  moves the arrays to a CUDA device (cuda: the first), computes there and moves the results back;\n"
     "                   prints what each of the three took\n"
     "  --repeat N       computes N times and prints the median time\n"
     "  --explain        prints how it was computed\n"},
    {"ops", command_ops, ops_usage, "lists the ops, or tells all of one\n"},
    {"show", command_show, show_usage,
     "prints the C text that an expression of such operands becomes, such as\n"
     "    quern show \"y = gelu(x * w + b)\" x:f32[1000,256] w:f32[256] b:f32[256]\n"},
    {"info", command_info, info_usage, "prints what this library has and can do on this machine\n"},
    {"cache", command_cache, cache_usage, "lists what the disk cache holds, or removes it all\n"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static const char short_usage[] = "quern run|ops|show|info|cache ..., quern --version, quern --help\n";

static int print_help(void) {
  puts("quern: tensor kernels of one expression\n");
  for (int k = 0; k < N_COMMANDS; k++) printf("%s  %s\n", commands[k].usage, commands[k].about);
  puts("Files are NumPy's, versions 1.0 to 3.0, little-endian. f16 is '<f2'; bf16, which NumPy has not, is '<V2', as\n"
       "ml_dtypes writes it: np.load(FILE).view(ml_dtypes.bfloat16).\n"
       "Exit status: 0 done, 1 it could not be done, 2 the command line is wrong.");
  return finish_output();
}

static int print_version(void) {
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
  if (strcmp(argv[1], "--help") == 0) return print_help();
  if (strcmp(argv[1], "--version") == 0) return print_version();
  for (int k = 0; k < N_COMMANDS; k++) {
    if (strcmp(argv[1], commands[k].name) != 0) continue;
    if (argc > 2 && strcmp(argv[2], "--help") == 0) {
      printf("%s  %s", commands[k].usage, commands[k].about);
      return finish_output();
    }
    return commands[k].run(argc - 2, argv + 2);
  }
  return misuse(short_usage, "unknown command '%.100s'", argv[1]);
}
