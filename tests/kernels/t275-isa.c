/* SPDX-License-Identifier: Apache-2.0
 *
 * t275-isa: the same bits from every SIMD level. The program runs itself under QUERN_ISA=generic, v2, v3, v4 and compares
 * a hash of every op's results, over dtypes, sizes of body and tail, strides, in place, specials and random bits. */
#include <unistd.h>

#include "tensors.h"

static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

/* One line an op: name, hash. First the level that runs. */
static int run_child(void) {
  int64_t one = 1;
  float x = 1;
  char text[2000], *isa;
  DLTensor t = {.data = &x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &one}, *in[3] = {&t, &t, &t},
      *out = &t;
  quern_op *op = NULL;
  if (quern_op_at(NULL, 0, &op)) return 1;
  const quern_op_info *info = quern_op_describe(op);
  if (quern_op_explain(op, info->n_in, in, 1, &out, NULL, text, sizeof text) || !(isa = strstr(text, "isa: "))) return 1;
  rng unused;
  rng_seed(&unused, 0); /* its word on the seed comes before the lines that count */
  printf("isa %.*s\n", (int)strcspn(isa + 5, "\n"), isa + 5);
  for (int o = 0; o < REF_N_OPS; o++) {
    const ref_op_info *want = ref_op_describe((ref_op)o);
    rng r;
    uint64_t h = 0xcbf29ce484222325u;
    rng_seed(&r, (uint64_t)o);
    if (quern_op_find(NULL, want->name, &op)) continue;
    for (int d = 0; d < REF_N_DTYPES; d++) {
      for (int kind = 0; kind < 6; kind++) {
        ref_dtype dt[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = (ref_dtype)d, compute;
        int64_t shape[2] = {kind == 0 ? 5000 : kind == 1 ? 37 : 61, 23}, turned[2] = {1, 61}, gaps[2] = {-50, 2};
        int ndim = kind < 2 ? 1 : 2;
        operand a[4];
        DLTensor *ai[3] = {&a[0].t, &a[1].t, &a[2].t}, *ao = &a[3].t;
        if (o == REF_WHERE) dt[0] = REF_BOOL;
        if (kind == 4 && want->n_in > 1) dt[1] = (ref_dtype)((d + 3) % REF_N_DTYPES);
        if (ref_resolve((ref_op)o, dt, &result, &compute)) continue;
        if (kind == 5 && want->cast) result = (ref_dtype)((d + 5) % REF_N_DTYPES);
        else if (kind == 5 && ref_dtype_kind(result) == REF_KIND_FLOAT) result = d % 2 ? REF_F16 : REF_F64;
        for (int k = 0; k < 4; k++) {
          operand_make(&a[k], k == 3 ? result : dt[k], ndim, shape, kind == 2 && k == 0 ? turned : kind == 3 ? gaps : NULL, &r);
        }
        quern_status s = quern_op_call(op, want->n_in, ai, 1, &ao, NULL);
        if (s == QUERN_E_UNSUPPORTED) {
          printf("refused: %s\n", quern_last_error());
          return 0;
        }
        if (s) printf("%s failed: %s\n", want->name, quern_last_error());
        h = hash_bytes(h, body_of(&a[3]), body_bytes(&a[3]));
        for (int k = 0; k < 4; k++) operand_free(&a[k]);
      }
    }
    printf("%s %016" PRIx64 "\n", want->name, h);
    quern_op_release(op);
  }
  return 0;
}

/* The child's lines under a level, malloc'd; NULL where it failed. */
static char *lines_of(const char *program, const char *level) {
  char command[5000], *all = calloc(1, 20000);
  snprintf(command, sizeof command, "QUERN_ISA=%s '%s' child", level, program);
  FILE *f = popen(command, "r");
  size_t n = f ? fread(all, 1, 19999, f) : 0;
  if (!f || pclose(f) || n == 0) {
    free(all);
    return NULL;
  }
  return all;
}

int main(int argc, char **argv) {
  static const char *const levels[] = {"generic", "v2", "v3", "v4"};
  char program[4096], *first = NULL;
  const char *first_level = "";
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (argc > 1 && strcmp(argv[1], "child") == 0) {
    return run_child();
  }
  if (length <= 0) skip_all("/proc/self/exe cannot be read");
  program[length] = 0;
  int n_levels = 0;
  for (int i = 0; i < 4; i++) {
    char *text = lines_of(program, levels[i]), ran[40] = "";
    if (!text) {
      fail("the run under QUERN_ISA=%s", levels[i]);
      continue;
    }
    char *isa = strstr(text, "isa "), *body = isa ? strchr(isa, '\n') : NULL;
    if (!body) {
      fail("the run under QUERN_ISA=%s says its level", levels[i]);
      continue;
    }
    sscanf(isa, "isa %39s", ran);
    char *refused = strstr(text, "\nrefused: ");
    if (refused) {
      skip(1, "QUERN_ISA=%s is refused: %.*s", levels[i], (int)strcspn(refused + 10, "\n"), refused + 10);
      free(text);
      continue;
    }
    if (strcmp(ran, levels[i]) != 0) {
      skip(1, "QUERN_ISA=%s runs %s: this CPU or this build has no %s", levels[i], ran, levels[i]);
      free(text);
      continue;
    }
    n_levels++;
    if (!first) {
      first = strdup(body);
      first_level = levels[i];
    } else {
      group_begin("%s gives the bits of %s", levels[i], first_level);
      char *a = first, *b = body;
      while (*a && *b) {
        size_t na = strcspn(a, "\n"), nb = strcspn(b, "\n");
        group_count(na > 0 && *a != '#');
        if (na != nb || memcmp(a, b, na)) group_fail("%s: `%.*s`, %s: `%.*s`", first_level, (int)na, a, levels[i], (int)nb, b);
        a += na + (a[na] == '\n');
        b += nb + (b[nb] == '\n');
      }
      if (*a || *b) group_fail("one has more ops than the other");
      group_end();
    }
    free(text);
  }
  free(first);
  ok(n_levels > 0, "%d levels ran", n_levels);
  return done_testing();
}
