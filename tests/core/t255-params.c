/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t255-params: parameters are numbers of any kind that take the dtype of the operands: defaults, partial lists, every
 * kind of scalar against every dtype, extremes, NaN. */
#include "tensors.h"

static quern_scalar scalar_i(int64_t i) {
  quern_scalar s = {.kind = QUERN_I64};
  s.v.i = i;
  return s;
}

static quern_scalar scalar_u(uint64_t u) {
  quern_scalar s = {.kind = QUERN_U64};
  s.v.u = u;
  return s;
}

static quern_scalar scalar_f(double f) {
  quern_scalar s = {.kind = QUERN_F64};
  s.v.f[0] = f;
  s.v.f[1] = 0;
  return s;
}

static ref_real value_of(quern_scalar s) {
  return s.kind == QUERN_I64 ? (ref_real)s.v.i : s.kind == QUERN_U64 ? (ref_real)s.v.u : (ref_real)s.v.f[0];
}

static void run_with(ref_op op, ref_dtype d, int64_t n, int n_params, const quern_scalar *params, const char *note, rng *r) {
  if (!has_op(op)) return;
  quern_call call = {.size = sizeof call, .params = params, .n_params = n_params};
  ref_real values[REF_MAX_PARAMS];
  trial t = {.op = op, .call = &call, .note = note, .param = values};
  for (int i = 0; i < ref_op_describe(op)->n_params; i++) {
    values[i] = i < n_params ? value_of(params[i]) : ref_op_describe(op)->param[i];
  }
  if (ref_op_describe(op)->n_in) operand_vector(&t.in[0], d, n, r);
  operand_vector(&t.out, d, n, r);
  trial_run(&t);
  trial_free(&t);
}

static void test_defaults(void) {
  static const ref_op ops[] = {REF_CLIP, REF_LEAKY_RELU, REF_FULL};
  rng r;
  rng_seed(&r, 1);
  group_begin("defaults: no call, no params, fewer than all");
  for (int i = 0; i < 3; i++) {
    if (!has_op(ops[i])) continue;
    for (int d = 0; d < REF_N_DTYPES; d++) {
      ref_dtype in[1] = {(ref_dtype)d}, result = (ref_dtype)d, compute;
      if (ref_resolve(ops[i], in, &result, &compute) || result != (ref_dtype)d) continue;
      quern_scalar p = scalar_i(1);
      quern_call bare = {.size = sizeof bare};
      for (int kind = 0; kind < 2; kind++) {
        trial t = {.op = ops[i], .call = kind ? &bare : NULL, .note = "default parameters"};
        if (ref_op_describe(ops[i])->n_in) operand_vector(&t.in[0], (ref_dtype)d, 600, &r);
        operand_vector(&t.out, (ref_dtype)d, 600, &r);
        trial_run(&t);
        trial_free(&t);
      }
      run_with(ops[i], (ref_dtype)d, 600, 0, &p, "an empty list", &r);
      run_with(ops[i], (ref_dtype)d, 600, 1, &p, "one given, as an integer", &r);
    }
  }
  group_end();

  const quern_op_info *clip = quern_op_describe(the_op(REF_CLIP));
  is_int(clip->n_params, 2, "clip has two");
  is_str(clip->params[0].name, "min", "min");
  is_str(clip->params[1].name, "max", "max");
  ok(clip->params[0].value.kind == QUERN_F64 && clip->params[0].value.v.f[0] == -INFINITY, "min is -inf by default");
  ok(clip->params[1].value.kind == QUERN_F64 && clip->params[1].value.v.f[0] == INFINITY, "max is inf by default");
  if (!has_op(REF_LEAKY_RELU)) return;
  const quern_op_info *leaky = quern_op_describe(the_op(REF_LEAKY_RELU));
  ok(leaky->n_params == 1 && strcmp(leaky->params[0].name, "slope") == 0 && leaky->params[0].value.v.f[0] == 0.01, "slope 0.01");
}

static void test_kinds(void) {
  rng r;
  rng_seed(&r, 2);
  group_begin("clip, leaky_relu, full: integers and floats of both kinds, every dtype");
  for (int d = 0; d < REF_N_DTYPES; d++) {
    const quern_scalar small[][2] = {{scalar_i(2), scalar_i(9)}, {scalar_u(2), scalar_u(9)}, {scalar_f(2), scalar_f(9)},
                                     {scalar_i(0), scalar_f(100)},
                                     {scalar_u(5), scalar_i(5)}, {scalar_i(9), scalar_i(2)}, {scalar_f(0), scalar_u(1)}};
    for (int i = 0; i < 7; i++) {
      if (d != REF_BOOL) run_with(REF_CLIP, (ref_dtype)d, 530, 2, small[i], "clip by numbers every dtype has", &r);
      if (d >= REF_F16) run_with(REF_LEAKY_RELU, (ref_dtype)d, 530, 1, small[i], "leaky_relu", &r);
      if (d != REF_BOOL) run_with(REF_FULL, (ref_dtype)d, 530, 1, small[i], "full", &r);
    }
    if (d >= REF_F16 || (d >= REF_I8 && d <= REF_I64)) {
      const quern_scalar below[2] = {scalar_i(-7), scalar_i(-1)}, through[2] = {scalar_f(-3), scalar_i(4)};
      run_with(REF_CLIP, (ref_dtype)d, 530, 2, below, "clip below zero", &r);
      run_with(REF_CLIP, (ref_dtype)d, 530, 2, through, "clip through zero", &r);
    }
    if (d >= REF_F16) {
      const quern_scalar odd[][2] = {{scalar_f(0.1), scalar_f(0.3)}, {scalar_f(-1e300), scalar_f(1e300)},
                                     {scalar_f(NAN), scalar_f(1)}, {scalar_f(0), scalar_f(NAN)},
                                     {scalar_f(-0.0), scalar_f(0.0)}, {scalar_f(0.0), scalar_f(-0.0)},
                                     {scalar_f(-INFINITY), scalar_f(INFINITY)}, {scalar_f(INFINITY), scalar_f(-INFINITY)},
                                     {scalar_i(INT64_MIN), scalar_u(UINT64_MAX)},
                                     {scalar_i(16777217), scalar_i(9007199254740993)}, {scalar_f(5e-324), scalar_f(1e-40)},
                                     {scalar_f(16777217.0), scalar_f(3e9)}};
      for (int i = 0; i < 12; i++) {
        run_with(REF_CLIP, (ref_dtype)d, 530, 2, odd[i], "clip at odd places", &r);
        run_with(REF_LEAKY_RELU, (ref_dtype)d, 530, 1, odd[i], "an odd slope", &r);
        run_with(REF_FULL, (ref_dtype)d, 530, 1, odd[i], "an odd value", &r);
      }
    }
    if (d == REF_I64) {
      const quern_scalar exact[2] = {scalar_i(9007199254740993), scalar_i(INT64_MAX - 1)},
          wide[2] = {scalar_i(INT64_MIN), scalar_i(INT64_MAX)};
      run_with(REF_CLIP, REF_I64, 530, 2, exact, "integers beyond 2^53 are exact", &r);
      run_with(REF_CLIP, REF_I64, 530, 2, wide, "the whole range", &r);
      run_with(REF_FULL, REF_I64, 530, 1, exact, "integers beyond 2^53 are exact", &r);
    }
    if (d == REF_I32) {
      const quern_scalar wide[2] = {scalar_i(INT32_MIN), scalar_i(INT32_MAX)};
      run_with(REF_CLIP, REF_I32, 530, 2, wide, "the whole range", &r);
    }
    if (d == REF_BOOL) {
      const quern_scalar truth[][1] = {{scalar_i(0)}, {scalar_i(1)}, {scalar_i(256)}, {scalar_f(0.5)}, {scalar_f(-0.0)},
                                       {scalar_f(NAN)}, {scalar_u(1ull << 63)}};
      for (int i = 0; i < 7; i++) run_with(REF_FULL, REF_BOOL, 530, 1, truth[i], "bool is != 0", &r);
    }
  }
  group_end();

  group_begin("floats for integers: whole ones saturate");
  for (int d = REF_I8; d <= REF_U64; d++) {
    const quern_scalar some[][2] = {{scalar_f(3), scalar_f(1e30)}, {scalar_f(-1e30), scalar_f(7)},
                                    {scalar_f(INFINITY), scalar_f(INFINITY)}, {scalar_f(-INFINITY), scalar_f(0)},
                                    {scalar_f(256), scalar_f(4294967296.0)}, {scalar_f(-1), scalar_f(0x1p63)},
                                    {scalar_i(-300), scalar_u(UINT64_MAX)}};
    for (int i = 0; i < 7; i++) {
      run_with(REF_FULL, (ref_dtype)d, 70, 1, some[i], "a whole float into an integer", &r);
      run_with(REF_CLIP, (ref_dtype)d, 70, 2, some[i], "whole floats as limits", &r);
    }
  }
  group_end();
}

/* quern_scalar_store writes what full writes, and refuses what it refuses. */
static void test_stored(void) {
  const quern_scalar numbers[] = {scalar_i(0), scalar_i(-1), scalar_i(300), scalar_i(INT64_MIN),
                                  scalar_i((1ll << 54) + (1 << 30) + 1), scalar_u(UINT64_MAX), scalar_u(1ull << 63), scalar_f(-0.0), scalar_f(0.1), scalar_f(2),
                                  scalar_f(-2.5), scalar_f(65520), scalar_f(1e300), scalar_f(-1e300), scalar_f(5e-324),
                                  scalar_f(NAN), scalar_f(-NAN), scalar_f(INFINITY), {.kind = QUERN_C128, .v.f = {1, 2}}};
  if (!has_op(REF_FULL)) return;
  group_begin("quern_scalar_store: as full, every dtype");
  for (int d = 0; d < REF_N_DTYPES; d++) {
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
      const quern_call call = {.size = sizeof call, .params = &numbers[i], .n_params = 1};
      char wanted[24], got[24];
      DLTensor out = {.data = wanted + 1, .device = {kDLCPU, 0}, .dtype = ref_dtype_dl((ref_dtype)d)}, *outs[1] = {&out};
      memset(wanted, 0x5a, sizeof wanted);
      memset(got, 0x5a, sizeof got);
      const quern_status status = quern_op_call(the_op(REF_FULL), 0, NULL, 1, outs, &call);
      const quern_status stored = quern_scalar_store(&numbers[i], out.dtype, got + 1);
      group_count(1);
      if (stored != status || memcmp(got, wanted, sizeof got))
        group_fail("number %d as %s: status %d, expected %d", (int)i, ref_dtype_name((ref_dtype)d), (int)stored, (int)status);
    }
  }
  group_end();
  const quern_scalar one = scalar_i(1), none = {.kind = QUERN_NONE};
  char item[16];
  is_int(quern_scalar_store(&one, (DLDataType){kDLFloat, 32, 2}, item), QUERN_E_DTYPE, "two lanes");
  is_int(quern_scalar_store(&one, (DLDataType){kDLComplex, 64, 1}, item), QUERN_E_DTYPE, "a dtype that is not there");
  is_int(quern_scalar_store(&none, (DLDataType){kDLFloat, 32, 1}, item), QUERN_E_ARGUMENT, "no number");
  is_int(quern_scalar_store(NULL, (DLDataType){kDLFloat, 32, 1}, item), QUERN_E_ARGUMENT, "NULL for the number");
  is_int(quern_scalar_store(&one, (DLDataType){kDLFloat, 32, 1}, NULL), QUERN_E_ARGUMENT, "NULL for the item");
}

/* What is no integer is refused where integers are computed; nothing is written. */
static void test_refused(void) {
  const quern_scalar bad[] = {scalar_f(2.5), scalar_f(NAN), scalar_f(-0.001), scalar_f(1e-300)};
  static const ref_op ops[] = {REF_FULL, REF_CLIP};
  rng r;
  rng_seed(&r, 6);
  group_begin("a fraction or NaN for integers: DTYPE, output untouched");
  for (int d = REF_I8; d <= REF_U64; d++) {
    for (int i = 0; i < 4; i++) {
      for (int o = 0; o < 2; o++) {
        quern_call call = {.size = sizeof call, .params = &bad[i], .n_params = 1};
        trial t = {.op = ops[o], .call = &call, .note = "a fraction as a parameter"};
        operand_vector(&t.in[0], (ref_dtype)d, 50, &r);
        operand_vector(&t.out, (ref_dtype)d, 50, &r);
        operand_save(&t.out);
        DLTensor *in = &t.in[0].t, *out = &t.out.t;
        group_count(1);
        quern_status s = quern_op_call(the_op(ops[o]), ref_op_describe(ops[o])->n_in, &in, 1, &out, &call);
        if (s != QUERN_E_DTYPE || !operand_same(&t.out) || !strstr(quern_last_error(), "parameter 1")) {
          trial_report(&t, s ? quern_last_error() : "accepted");
        }
        trial_free(&t);
      }
    }
  }
  group_end();
}

/* f16: the parameter is in the compute type: not rounded to f16 first. */
static void test_compute_type(void) {
  rng r;
  rng_seed(&r, 3);
  if (!has_op(REF_LEAKY_RELU)) return;
  group_begin("a slope is a number of the compute type");
  for (int d = REF_F16; d <= REF_BF16; d++) {
    const quern_scalar slope[1] = {scalar_f(0.3000001)};
    run_with(REF_LEAKY_RELU, (ref_dtype)d, 3000, 1, slope, "slope 0.3000001", &r);
  }
  group_end();
}

/* Sizes of body and tail, strides: the parameters reach every kernel. */
static void test_layouts(void) {
  rng r;
  rng_seed(&r, 4);
  static const ref_op ops[] = {REF_CLIP, REF_LEAKY_RELU, REF_FULL};
  group_begin("parameters through strides, transposes, conversions and every size");
  const quern_scalar p[2] = {scalar_f(0.25), scalar_f(2.5)};
  quern_call call = {.size = sizeof call, .params = p, .n_params = 2};
  ref_real values[2] = {0.25, 2.5};
  for (int i = 0; i < 3; i++) {
    if (!has_op(ops[i])) continue;
    call.n_params = ref_op_describe(ops[i])->n_params;
    for (int d = REF_F16; d <= REF_F64; d++) {
      for (int64_t n = 0; n < 70; n++) run_with(ops[i], (ref_dtype)d, n, call.n_params, p, "every size", &r);
      for (int out = REF_F16; out <= REF_F64; out++) {
        int64_t shape[2] = {37, 29}, turned[2] = {-1, 37}, gaps[2] = {90, 3};
        trial t = {.op = ops[i], .call = &call, .param = values, .note = "parameters and layouts"};
        if (ref_op_describe(ops[i])->n_in) operand_make(&t.in[0], (ref_dtype)d, 2, shape, turned, &r);
        operand_make(&t.out, (ref_dtype)out, 2, shape, gaps, &r);
        trial_run(&t);
        trial_free(&t);
      }
    }
  }
  group_end();
}

/* Bounds hold with 2 ULPs more than for the defaults (ref.c). Half of the parameters here are no numbers of the dtype, and divide with a rest. */
static void test_activations(void) {
  const quern_scalar alphas[] = {scalar_f(0.3), scalar_f(1.67), scalar_i(3), scalar_f(10.1), scalar_f(1e-3), scalar_f(0.5)};
  const quern_scalar betas[][2] = {{scalar_f(0.3), scalar_i(20)}, {scalar_i(3), scalar_f(INFINITY)}, {scalar_f(0.5), scalar_i(5)},
                                   {scalar_f(7.7), scalar_f(INFINITY)}, {scalar_f(1e-3), scalar_f(INFINITY)},
                                   {scalar_i(1), scalar_i(0)}};
  rng r;
  rng_seed(&r, 4);
  if (!has_op(REF_ELU)) return;
  group_begin("elu, celu, thresholded_relu, softplus: any alpha and beta");
  for (int d = REF_F16; d <= REF_F64; d++) {
    for (int i = 0; i < 6; i++) {
      run_with(REF_ELU, (ref_dtype)d, 3000, 1, &alphas[i], "elu", &r);
      run_with(REF_CELU, (ref_dtype)d, 3000, 1, &alphas[i], "celu", &r);
      run_with(REF_THRESHOLDED_RELU, (ref_dtype)d, 3000, 1, &alphas[i], "thresholded_relu", &r);
      run_with(REF_SOFTPLUS, (ref_dtype)d, 3000, 2, betas[i], "softplus", &r);
    }
  }
  group_end();
}

int main(void) {
  test_defaults();
  test_kinds();
  test_refused();
  test_stored();
  test_compute_type();
  test_layouts();
  test_activations();
  return done_testing();
}
