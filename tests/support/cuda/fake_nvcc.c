/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_nvcc.c: SOURCE.cu OUT.fatbin [CHIP]: what nvcc makes of a file of kernels, for the fake driver: fake NVRTC's cubin
 * behind a fatbin's header. Without a chip (90) every device from 8.0 on runs it. Fake NVRTC lies in the folder fake beside this. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *nvrtc;

static void *of_nvrtc(const char *name) {
  void *function = dlsym(nvrtc, name);
  if (!function) fprintf(stderr, "fake_nvcc: no %s\n", name), exit(2);
  return function;
}
#define NVRTC(name, arguments, ...) (((int (*) arguments)(uintptr_t)of_nvrtc(name))(__VA_ARGS__))

static char *read_source(const char *path) {
  FILE *file = fopen(path, "re");
  char *text = NULL;
  size_t size = 0;
  if (!file || getdelim(&text, &size, 0, file) < 0) fprintf(stderr, "fake_nvcc: %s cannot be read\n", path), exit(2);
  fclose(file);
  return text;
}

/* The file that the program has become: 0, or what ends this one. */
static int write_fatbin(void *program, const char *kind, const char *path) {
  char get_size[40], get[40];
  size_t size = 0;
  snprintf(get_size, sizeof get_size, "nvrtcGet%sSize", kind);
  snprintf(get, sizeof get, "nvrtcGet%s", kind);
  NVRTC(get_size, (void *, size_t *), program, &size);
  char *bytes = malloc(16 + size);
  const uint32_t head[2] = {0xba55ed50u, 1 | 16 << 16};
  const uint64_t behind = size;
  memcpy(bytes, head, 8);
  memcpy(bytes + 8, &behind, 8);
  NVRTC(get, (void *, char *), program, bytes + 16);
  FILE *out = fopen(path, "we");
  const int is_written = out && fwrite(bytes, 1, 16 + size, out) == 16 + size;
  free(bytes);
  return out && fclose(out) == 0 && is_written ? 0 : 1;
}

static void print_log(void *program, const char *source, int failed) {
  size_t size = 0;
  NVRTC("nvrtcGetProgramLogSize", (void *, size_t *), program, &size);
  char *log = calloc(1, size + 1);
  NVRTC("nvrtcGetProgramLog", (void *, char *), program, log);
  fprintf(stderr, "fake_nvcc: %s: %d\n%s\n", source, failed, log);
  free(log);
}

int main(int argc, char **argv) {
  char path[600], option[64];
  void *program = NULL;
  if (argc < 3) return fprintf(stderr, "fake_nvcc: SOURCE.cu OUT.fatbin [CHIP]\n"), 2;
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 40);
  path[n < 0 ? 0 : n] = 0;
  strcpy(strrchr(path, '/'), "/fake/libnvrtc.so.13");
  if (!(nvrtc = dlopen(path, RTLD_NOW))) return fprintf(stderr, "fake_nvcc: %s\n", dlerror()), 2;
  snprintf(option, sizeof option, "--gpu-architecture=%s_%s", argc > 3 ? "sm" : "compute", argc > 3 ? argv[3] : "80");
  const char *options[] = {option};
  char *text = read_source(argv[1]);
  int result = NVRTC("nvrtcCreateProgram", (void **, const char *, const char *, int, void *, void *), &program, text, "x.cu", 0,
                     NULL, NULL);
  free(text);
  if (!program) return fprintf(stderr, "fake_nvcc: %s: %d\n", argv[1], result), 1;
  result = NVRTC("nvrtcCompileProgram", (void *, int, const char *const *), program, 1, options);
  if (result) print_log(program, argv[1], result), result = 1;
  else result = write_fatbin(program, argc > 3 ? "CUBIN" : "PTX", argv[2]);
  NVRTC("nvrtcDestroyProgram", (void **), &program);
  return result;
}
