/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t295-infer: what can be asked without computing: infer, workspace, explain, describe, count, at, find. */
#include "tensors.h"

static void test_listing(void) {
  int32_t n = quern_op_count(NULL), n_seen = 0, n_wanted = 0;
  int sorted = 1, whole = 1;
  char last[200] = "";
  for (int op = 0; op < REF_N_OPS; op++) n_wanted += has_op((ref_op)op);
  ok(n_wanted > 0 && n >= n_wanted, "at least the %d ops of ref.h: %d", n_wanted, n);
  for (int32_t i = 0; i < n; i++) {
    quern_op *op = NULL;
    if (quern_op_at(NULL, i, &op) || !op) bail("at %d: %s", i, quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    sorted &= strcmp(last, info->name) < 0;
    snprintf(last, sizeof last, "%s", info->name);
    n_seen += ref_op_find(info->name) != REF_N_OPS;
    const int is_dynamic = info->op_class == QUERN_CLASS_DYNAMIC; /* then no formula says what it does */
    whole &= info->size == sizeof *info && info->doc && *info->doc && info->formula &&
             (has_axes(info) || (*info->formula == 0) == is_dynamic) && info->n_in >= 0 && info->n_out >= 1 && info->args &&
             (is_dynamic || has_axes(info) || info->op_class == QUERN_CLASS_BASIC) &&
             (info->n_params == 0 || info->params) && info->preferred_alignment >= 1 &&
             (info->preferred_alignment & (info->preferred_alignment - 1)) == 0;
    for (int k = 0; k < info->n_in + info->n_out; k++) {
      const quern_arg_info *arg = &info->args[k];
      whole &= arg->name && *arg->name && arg->dtypes && *arg->dtypes && arg->is_output == (k >= info->n_in);
    }
    quern_op *found = NULL;
    if (quern_op_find(NULL, info->name, &found) || strcmp(quern_op_describe(found)->name, info->name)) whole = 0;
    quern_op_release(found);
    quern_op_release(op);
  }
  is_int(n_seen, n_wanted, "all of them are there");
  ok(sorted, "sorted by name, no name twice");
  ok(whole, "each is described in full and found by its name");
}

/* What describe says an input takes is what calls take. */
static int listed(const char *dtypes, ref_dtype d) {
  const char *name = ref_dtype_name(d);
  size_t n = strlen(name);
  for (const char *at = dtypes; (at = strstr(at, name)) != NULL; at += n) {
    if ((at == dtypes || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) return 1;
  }
  return 0;
}

static void test_described(void) {
  group_begin("describe agrees with ref.h: counts, parameters, dtypes");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *want = ref_op_describe((ref_op)op);
    const quern_op_info *info = quern_op_describe(the_op((ref_op)op));
    group_count(1);
    if (info->n_in != want->n_in || info->n_params != want->n_params || info->n_out != 1) {
      group_fail("%s: %d in, %d params", want->name, info->n_in, info->n_params);
    }
    for (int k = 0; k < want->n_params; k++) {
      if (info->params[k].value.kind != QUERN_F64 || info->params[k].value.v.f[0] != (double)want->param[k]) {
        group_fail("%s: default of parameter %d", want->name, k + 1);
      }
    }
    for (int k = 0; k < want->n_in; k++) {
      for (int d = 0; d < REF_N_DTYPES; d++) {
        /* Taken when all inputs are of it (but for a condition)? */
        ref_dtype in[3] = {(ref_dtype)d, (ref_dtype)d, (ref_dtype)d}, result = REF_BOOL, compute;
        if (op == REF_WHERE && k > 0) in[0] = REF_BOOL;
        int taken = !ref_resolve((ref_op)op, in, &result, &compute);
        if (listed(info->args[k].dtypes, (ref_dtype)d) != taken) {
          group_fail("%s: input %d lists `%s`; %s is %staken", want->name, k + 1, info->args[k].dtypes,
                     ref_dtype_name((ref_dtype)d), taken ? "" : "not ");
        }
      }
    }
  }
  group_end();
}

static void test_infer(void) {
  rng r;
  rng_seed(&r, 1);
  group_begin("infer: dtype for every combination, data never touched");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    int n_combos = 1;
    if (info->cast) continue;
    for (int k = 0; k < info->n_in; k++) n_combos *= REF_N_DTYPES;
    for (int combo = 0; combo < n_combos; combo++) {
      ref_dtype in[3], result = REF_BOOL, compute;
      operand o[3];
      DLTensor *ins[3];
      int64_t shapes[3][3] = {{4, 1, 3}, {5, 1, 0}, {1, 1, 1}}, turn = combo;
      static const int ranks[3] = {3, 2, 1};
      for (int k = 0; k < info->n_in; k++) {
        in[k] = (ref_dtype)(turn % REF_N_DTYPES);
        turn /= REF_N_DTYPES;
        operand_describe(&o[k], in[k], ranks[k], shapes[k], NULL);
        o[k].t.data = combo % 2 ? NULL : (void *)(uintptr_t)8;
        ins[k] = &o[k].t;
      }
      quern_shape shape;
      memset(&shape, 0x5a, sizeof shape);
      shape.size = sizeof shape;
      int refused = ref_resolve((ref_op)op, in, &result, &compute);
      quern_status s = quern_op_infer(the_op((ref_op)op), info->n_in, ins, 1, &shape);
      group_count(1);
      if (refused) {
        if (s != QUERN_E_DTYPE) group_fail("%s: combination %d: %s, wanted DTYPE", info->name, combo, status_name(s));
        continue;
      }
      int64_t middle = info->n_in > 1 ? 5 : 1;
      if (s || ref_dtype_of(shape.dtype) != result || shape.ndim != 3 || shape.shape[0] != 4 || shape.shape[1] != middle ||
          shape.shape[2] != 3 || shape.device.device_type != kDLCPU || shape.size != sizeof shape) {
        group_fail("%s: combination %d: %s, dtype %d %d, ndim %d [%" PRId64 " %" PRId64 " %" PRId64 "]", info->name, combo,
                   s ? quern_last_error() : "OK", shape.dtype.code, shape.dtype.bits, shape.ndim, shape.shape[0],
                   shape.shape[1], shape.shape[2]);
      }
    }
  }
  group_end();

  group_begin("astype: the dtype is the caller's");
  for (int from = 0; from < REF_N_DTYPES; from++) {
    for (int to = 0; to < REF_N_DTYPES; to++) {
      int64_t n = 7;
      operand o;
      DLTensor *in = &o.t;
      operand_describe(&o, (ref_dtype)from, 1, &n, NULL);
      quern_shape shape = {.size = sizeof shape, .dtype = ref_dtype_dl((ref_dtype)to)};
      quern_status s = quern_op_infer(the_op(REF_ASTYPE), 1, &in, 1, &shape);
      group_count(1);
      if (s || ref_dtype_of(shape.dtype) != (ref_dtype)to || shape.ndim != 1 || shape.shape[0] != 7) {
        group_fail("%s to %s: %s", ref_dtype_name((ref_dtype)from), ref_dtype_name((ref_dtype)to),
                   s ? quern_last_error() : "wrong");
      }
    }
  }
  group_end();

  group_begin("shapes broadcast as in the array API");
  for (int i = 0; i < 3000; i++) {
    int ndim = (int)rng_below(&r, 7);
    int64_t full[33], own[2][33];
    operand o[2];
    DLTensor *ins[2] = {&o[0].t, &o[1].t};
    int skip_one = ndim ? (int)rng_below(&r, (uint64_t)ndim + 1) : 0, who = (int)rng_below(&r, 2), spoilt = -1;
    for (int k = 0; k < ndim; k++) full[k] = (int64_t)rng_below(&r, 6);
    for (int w = 0; w < 2; w++) {
      for (int k = 0; k < ndim; k++) own[w][k] = full[k];
    }
    for (int k = 0; k < ndim; k++) {
      if (rng_below(&r, 3) == 0) own[rng_below(&r, 2)][k] = 1;
    }
    if (ndim && rng_below(&r, 4) == 0) {
      spoilt = skip_one + (ndim - skip_one ? (int)rng_below(&r, (uint64_t)(ndim - skip_one)) : 0);
      if (spoilt >= ndim) spoilt = -1;
      else if (own[0][spoilt] == 1 || own[1][spoilt] == 1) spoilt = -1;
      else own[1 - who][spoilt] += 2 + (own[1 - who][spoilt] == 0);
      if (spoilt >= 0 && own[0][spoilt] == own[1][spoilt]) spoilt = -1;
    }
    /* `who` lacks its first dimensions; what it had there counts as 1. */
    for (int k = 0; k < skip_one; k++) own[who][k] = 1;
    operand_describe(&o[who], REF_F32, ndim - skip_one, own[who] + skip_one, NULL);
    operand_describe(&o[1 - who], REF_F32, ndim, own[1 - who], NULL);
    quern_shape shape = {.size = sizeof shape};
    quern_status s = quern_op_infer(the_op(REF_ADD), 2, ins, 1, &shape);
    group_count(1);
    int good = s == (spoilt >= 0 ? QUERN_E_SHAPE : QUERN_OK);
    if (good && !s) {
      good = shape.ndim == ndim;
      for (int k = 0; k < ndim && good; k++) good = shape.shape[k] == (own[0][k] == 1 ? own[1][k] : own[0][k]);
    }
    if (!good) group_fail("case %d: %s%s", i, status_name(s), s ? quern_last_error() : ": wrong shape");
  }
  group_end();
}

/* f32 for all inputs, i32 where that is refused; returns what the output then is. */
static ref_dtype plain_dtypes(ref_op op, ref_dtype *in) {
  static const ref_dtype plain[] = {REF_F32, REF_I32};
  for (int i = 0; i < 2; i++) {
    ref_dtype result = plain[i], compute;
    in[0] = op == REF_WHERE ? REF_BOOL : plain[i];
    in[1] = in[2] = plain[i];
    if (!ref_resolve(op, in, &result, &compute)) return result;
  }
  bail("%s takes neither f32 nor i32", ref_op_describe(op)->name);
  return REF_N_DTYPES;
}

static void test_workspace(void) {
  group_begin("workspace: 0 for every op of this version");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    const ref_op_info *info = ref_op_describe((ref_op)op);
    rng r;
    rng_seed(&r, 3);
    operand o[4];
    DLTensor *ins[3] = {&o[0].t, &o[1].t, &o[2].t}, *outs = &o[3].t;
    ref_dtype in[3], result = plain_dtypes((ref_op)op, in);
    for (int k = 0; k < 3; k++) operand_vector(&o[k], in[k], 50, &r);
    operand_vector(&o[3], result, 50, &r);
    size_t bytes = 77;
    group_count(1);
    quern_status s = quern_op_workspace(the_op((ref_op)op), info->n_in, ins, 1, &outs, NULL, &bytes);
    if (s || bytes) group_fail("%s: %s, %zu bytes", info->name, s ? quern_last_error() : "OK", bytes);
    for (int k = 0; k < 4; k++) operand_free(&o[k]);
  }
  group_end();
}

/* Lines `key: value`, all the keys that quern.h names. */
static void test_explain(void) {
  static const char *const keys[] = {"tier: ", "reason: ", "variant: ", "isa: ", "threads: "};
  rng r;
  rng_seed(&r, 2);
  group_begin("explain: every op, contiguous and strided");
  for (int op = 0; op < REF_N_OPS; op++) {
    if (!has_op((ref_op)op)) continue;
    for (int strided = 0; strided < 2; strided++) {
      const ref_op_info *info = ref_op_describe((ref_op)op);
      operand o[4];
      DLTensor *ins[3] = {&o[0].t, &o[1].t, &o[2].t}, *outs = &o[3].t;
      int64_t n = 3000, two = 2;
      ref_dtype in[3], result = plain_dtypes((ref_op)op, in);
      for (int k = 0; k < 4; k++) operand_make(&o[k], k == 3 ? result : in[k], 1, &n, strided ? &two : NULL, &r);
      operand_save(&o[3]);
      char text[4000];
      quern_status s = quern_op_explain(the_op((ref_op)op), info->n_in, ins, 1, &outs, NULL, text, sizeof text);
      group_count(1);
      if (s) group_fail("%s: %s", info->name, quern_last_error());
      for (int k = 0; k < 5 && !s; k++) {
        const char *at = strstr(text, keys[k]);
        if (!at || (at != text && at[-1] != '\n')) group_fail("%s: no line `%s` in:\n%s", info->name, keys[k], text);
      }
      /* The variant's name has the op's or, through a shared body, at least the law of names. */
      const char *variant = s ? NULL : strstr(text, "variant: ");
      if (variant && strncmp(variant + 9, "qk_", 3) != 0) group_fail("%s: variant is not a kernel name:\n%s", info->name, text);
      for (char *line = text; !s && *line;) {
        size_t length = strcspn(line, "\n");
        char *colon = memchr(line, ':', length);
        if (!colon || colon == line) group_fail("%s: a line without key: `%.*s`", info->name, (int)length, line);
        line += length + (line[length] == '\n');
      }
      if (!operand_same(&o[3])) group_fail("%s: explain wrote the output", info->name);
      /* Every shorter buffer: LIMIT, terminated, what fits is there. */
      size_t whole = strlen(text) + 1;
      for (size_t size = 0; size < whole + 2 && op < 3; size++) {
        char part[4100];
        memset(part, '#', sizeof part);
        s = quern_op_explain(the_op((ref_op)op), info->n_in, ins, 1, &outs, NULL, part, size);
        int fits = size >= whole;
        group_count(1);
        /* No byte at all: not even a terminator has room. */
        quern_status wanted = size == 0 ? QUERN_E_ARGUMENT : fits ? QUERN_OK : QUERN_E_LIMIT;
        if (s != wanted) group_fail("%s: %zu bytes of %zu: %s", info->name, size, whole, status_name(s));
        if (size && (!memchr(part, 0, size) || strncmp(part, text, strlen(part)) || (!fits && strlen(part) != size - 1))) {
          group_fail("%s: %zu bytes: not what fits", info->name, size);
        }
        if (part[size] != '#') group_fail("%s: wrote past %zu bytes", info->name, size);
      }
      for (int k = 0; k < 4; k++) operand_free(&o[k]);
    }
  }
  group_end();
}

int main(void) {
  test_listing();
  test_described();
  test_infer();
  test_workspace();
  test_explain();
  return done_testing();
}
