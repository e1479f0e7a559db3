/* SPDX-License-Identifier: Apache-2.0
 *
 * nvrtc_driver.c: owns the tests' way to NVRTC: compiles one CUDA text, without include paths, and says what came of it.
 * nvrtc_driver [-O OPTION]... [-h NAME=FILE]... [-p PTX] [-c CUBIN] [-t] SOURCE -O hands on an option
 * (--gpu-architecture=sm_90), -h gives the text of FILE to #include "NAME", -p and -c write what was made, -t prints the
 * milliseconds taken. The log, warnings included, goes to standard error. Status: 0 compiled, 1 refused, 77 no NVRTC here (the
 * reason is printed), 2 anything else. libnvrtc is found by its soname, in $QUERN_CUDA_PATH/lib64 only where that is set, else
 * also in /usr/local/cuda/lib64. No header of CUDA is used. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct nvrtc_program *program;
static int (*create)(program *, const char *text, const char *name, int n, const char *const *headers, const char *const *names);
static int (*compile)(program, int n, const char *const *options);
static int (*log_size)(program, size_t *), (*get_log)(program, char *);
static int (*ptx_size)(program, size_t *), (*get_ptx)(program, char *);
static int (*cubin_size)(program, size_t *), (*get_cubin)(program, char *);
static const char *(*error_string)(int);

static void die(const char *what, const char *which) {
  fprintf(stderr, "nvrtc_driver: %s %s\n", what, which);
  exit(2);
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) die("cannot read", path);
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *text = malloc((size_t)size + 1);
  if (!text || fread(text, 1, (size_t)size, f) != (size_t)size) die("cannot read", path);
  text[size] = 0;
  fclose(f);
  return text;
}

static void *find(void) {
  static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  const char *root = getenv("QUERN_CUDA_PATH");
  char path[4096];
  for (int where = 0; where < 2; where++)
    for (int i = 0; i < 3; i++) {
      if (where == 0 && root) snprintf(path, sizeof path, "%s/lib64/%s", root, sonames[i]);
      else if (where == 0) snprintf(path, sizeof path, "%s", sonames[i]);
      else snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", sonames[i]);
      void *library = where == 1 && root ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
      if (library) return library;
    }
  if (root) printf("no libnvrtc.so under QUERN_CUDA_PATH=%s\n", root);
  else printf("no libnvrtc.so on this machine (QUERN_CUDA_PATH says where CUDA is)\n");
  exit(77);
}

static void load(void *library) {
  const struct { const char *name; void *to; } symbols[] = {
    {"nvrtcCreateProgram", &create}, {"nvrtcCompileProgram", &compile}, {"nvrtcGetProgramLogSize", &log_size},
    {"nvrtcGetProgramLog", &get_log}, {"nvrtcGetPTXSize", &ptx_size}, {"nvrtcGetPTX", &get_ptx},
    {"nvrtcGetCUBINSize", &cubin_size}, {"nvrtcGetCUBIN", &get_cubin}, {"nvrtcGetErrorString", &error_string},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    if (!symbol) die("libnvrtc lacks", symbols[i].name);
    memcpy(symbols[i].to, &symbol, sizeof symbol);
  }
}

static void write_result(program p, const char *path, int (*size_of)(program, size_t *), int (*get)(program, char *),
                         int is_text) {
  size_t size = 0;
  char *bytes;
  if (size_of(p, &size) || !(bytes = calloc(1, size + 1)) || get(p, bytes)) die("nothing made for", path);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, is_text ? strlen(bytes) : size, f) == 0 || fclose(f)) die("cannot write", path);
  free(bytes);
}

int main(int argc, char **argv) {
  enum { MOST = 64 };
  const char *options[MOST], *names[MOST], *texts[MOST], *source = NULL, *ptx = NULL, *cubin = NULL;
  int n_options = 0, n_headers = 0, timed = 0;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "-O") && n_options < MOST) options[n_options++] = value, i++;
    else if (!strcmp(argv[i], "-p")) ptx = value, i++;
    else if (!strcmp(argv[i], "-c")) cubin = value, i++;
    else if (!strcmp(argv[i], "-t")) timed = 1;
    else if (!strcmp(argv[i], "-h") && n_headers < MOST) {
      char *equals = strchr(argv[++i], '=');
      if (!equals) die("NAME=FILE expected, not", value);
      *equals = 0;
      names[n_headers] = argv[i], texts[n_headers++] = read_file(equals + 1);
    } else source = argv[i];
  }
  if (!source) die("no source", "given");
  load(find());
  char *text = read_file(source);
  const char *slash = strrchr(source, '/');
  struct timespec from, to;
  program p;
  clock_gettime(CLOCK_MONOTONIC, &from);
  int status = create(&p, text, slash ? slash + 1 : source, n_headers, texts, names);
  if (status) die("nvrtcCreateProgram:", error_string(status));
  status = compile(p, n_options, options);
  clock_gettime(CLOCK_MONOTONIC, &to);
  if (timed) printf("%.1f ms\n", (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6);
  size_t size = 0;
  char *log;
  if (!log_size(p, &size) && size > 1 && (log = calloc(1, size + 1)) && !get_log(p, log)) fputs(log, stderr);
  if (status) {
    fprintf(stderr, "nvrtc_driver: %s: %s\n", source, error_string(status));
    return 1;
  }
  if (ptx) write_result(p, ptx, ptx_size, get_ptx, 1);
  if (cubin) write_result(p, cubin, cubin_size, get_cubin, 0);
  return 0;
}
