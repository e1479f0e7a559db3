/* SPDX-License-Identifier: Apache-2.0
 *
 * t596-spec-bits: specs that arrive at run time, by the public functions: their ops are found, described, called, used in
 * expressions, interpreted and compiled, and give the bits that the same definitions built ahead give: the built-in ops under
 * other names, the library's own math and its reductions and rows under other names, with tables and rare blocks. */
#include "spec_tiers.h"

/* ---- The built-in ops under other names ------------------------------------------------------------------------- */

static const struct definition {
  const char *name, *inputs, *params, *dtypes, *result, *body;
  int n_in, takes_integers;
} definitions[] = {
    {"negative", "x", "", "numeric", "", "[[ -x ]]", 1, 1},
    {"abs", "x", "", "numeric", "", "[[ abs(x) ]]", 1, 1},
    {"sqrt", "x", "", "floating", "", "[[ sqrt(x) ]]", 1, 0},
    {"exp", "x", "", "floating", "", "[[ exp(x) ]]", 1, 0},
    {"log", "x", "", "floating", "", "[[ log(x) ]]", 1, 0},
    {"tanh", "x", "", "floating", "", "[[ tanh(x) ]]", 1, 0},
    {"erf", "x", "", "floating", "", "[[ erf(x) ]]", 1, 0},
    {"sigmoid", "x", "", "floating", "", "[[ sigmoid(x) ]]", 1, 0},
    {"relu", "x", "", "numeric", "", "[[ x <= 0 ? 0 : x ]]", 1, 1},
    {"gelu", "x", "", "floating", "", "[[ gelu(x) ]]", 1, 0},
    {"leaky_relu", "x", "slope = 0.01", "floating", "", "[[ x > 0 ? x : slope * x ]]", 1, 0},
    {"isnan", "x", "", "floating", "bool", "[[ x != x ]]", 1, 0},
    {"signbit", "x", "", "floating", "bool", "[[ signbit(x) ]]", 1, 0},
    {"add", "x, y", "", "numeric", "", "[[ x + y ]]", 2, 1},
    {"subtract", "x, y", "", "numeric", "", "[[ x - y ]]", 2, 1},
    {"multiply", "x, y", "", "numeric", "", "[[ x * y ]]", 2, 1},
    {"divide", "x, y", "", "floating", "", "[[ x / y ]]", 2, 0},
    {"maximum", "x, y", "", "numeric", "", "[[ maximum(x, y) ]]", 2, 1},
    {"minimum", "x, y", "", "numeric", "", "[[ minimum(x, y) ]]", 2, 1},
    {"pow", "x, y", "", "numeric", "", "{ floating = [[ pow(x, y) ]], integer = [[ integer_pow(x, y) ]] }", 2, 1},
    {"less", "x, y", "", "all", "bool", "[[ x < y ]]", 2, 1},
    {"equal", "x, y", "", "all", "bool", "[[ x == y ]]", 2, 1},
    {"fma", "x, y, z", "", "floating", "", "[[ fma(x, y, z) ]]", 3, 0},
    {"clip", "x", "min = -INFINITY, max = INFINITY", "numeric", "", "[[ minimum(maximum(x, min), max) ]]", 1, 1},
};
#define N_DEFINITIONS (int)(sizeof definitions / sizeof definitions[0])

/* `namespace`d copies of all of them. */
static char *spec_of_all(const char *name_space) {
  char *text = malloc(1 << 16), *at = text;
  for (int i = 0; i < N_DEFINITIONS; i++) {
    const struct definition *d = &definitions[i];
    at += sprintf(at, "op \"%s.%s\" { doc = \"As %s.\", inputs = \"%s\", dtypes = %s, body = %s", name_space, d->name,
                  d->name, d->inputs, d->dtypes, d->body);
    if (*d->params) at += sprintf(at, ", params = { %s }", d->params);
    if (*d->result) at += sprintf(at, ", result = \"%s\"", d->result);
    at += sprintf(at, " }\n");
  }
  return text;
}

/* The dtypes that inputs of definition d are tried in, for `turn`; NULL: no more. */
static const char *dtypes_of(const struct definition *d, int turn) {
  static const char *const floats[] = {"f32 f32 f32", "f64 f64 f64", "f16 f16 f16", "bf16 f32 f16"};
  static const char *const integers[] = {"i32 i32 i32", "i64 u8 i32", "u8 u8 u8"};
  if (turn < 4) return floats[turn];
  /* what takes floats only takes integers as f32: once is enough */
  return turn < (d->takes_integers ? 7 : 5) ? integers[turn - 4] : NULL;
}

/* Operands for one op, and a second set of outputs; out: its dtype is inferred. */
static int infer_and_make(quern_op *op, operands *o, const char *in, int n_in, rng *r) {
  quern_shape shape = {.size = sizeof shape};
  int64_t sizes[2] = {60, 41};
  char words[64];
  int end = 0;
  snprintf(words, sizeof words, "%s", in);
  for (int k = 0; k < n_in; k++) end += (int)strcspn(words + end, " ") + (k + 1 < n_in);
  words[end] = 0;
  operands_make(o, words, "", 2, sizes, r);
  if (quern_op_infer(op, n_in, o->ins, 1, &shape)) return 0;
  for (int d = 0; d < REF_N_DTYPES; d++) {
    const DLDataType t = ref_dtype_dl((ref_dtype)d);
    if (t.code != shape.dtype.code || t.bits != shape.dtype.bits) continue;
    operand_make(&o->out[0], (ref_dtype)d, 2, sizes, NULL, r);
    operand_make(&o->out[1], (ref_dtype)d, 2, sizes, NULL, r);
    o->n_out = 1;
    operands_point(o);
    return 1;
  }
  return 0;
}

/* Calls both ops on the same operands; 1: the same bits. `why`: what was amiss. */
static int agree(quern_op *mine, quern_op *built, operands *o, const quern_call *call, char *why, size_t size) {
  DLTensor *other[1] = {&o->out[1].t};
  why[0] = 0;
  if (operands_call(mine, o, call) || quern_op_call(built, o->n_in, o->ins, 1, other, call)) {
    snprintf(why, size, "%s", quern_last_error());
    return 0;
  }
  if (same_elements(&o->out[0], &o->out[1])) return 1;
  int64_t index[3] = {0}, n = 0, bad = 0;
  do {
    const uint64_t a = ref_get(o->out[0].d, ref_address(&o->out[0].t, index)),
                   b = ref_get(o->out[0].d, ref_address(&o->out[1].t, index));
    char x[80], y[80], z[80];
    if (a != b && !bad++)
      snprintf(why, size, "element %d of %s: got %s, wanted %s", (int)n,
               ref_text(o->in[0].d, ref_get(o->in[0].d, ref_address(&o->in[0].t, index)), x),
               ref_text(o->out[0].d, a, y), ref_text(o->out[0].d, b, z));
    n++;
  } while (ref_next_index(2, o->out[0].t.shape, index));
  return 0;
}

static void test_built_ins(const spec_tier *tier) {
  rng r;
  operands o;
  char why[1000], text[200];
  char *spec = spec_of_all("acme");
  quern_ctx *ctx = ctx_of(tier->jit);
  rng_seed(&r, 1);
  const int32_t before = quern_op_count(ctx);
  double start = now_ms();
  is_int(load_spec(ctx, "acme.lua", spec), QUERN_OK, "%s: a spec with the built-in ops under other names", tier->name);
  diag("%.1f ms", now_ms() - start);
  free(spec);
  const int part = test_part(6);
  int n_backward = 0;
  for (int i = 0; i < N_DEFINITIONS; i++) {
    snprintf(text, sizeof text, "acme.%s", definitions[i].name);
    quern_op *op = op_named(ctx, text);
    n_backward += quern_op_describe(op)->backward != NULL;
    quern_op_release(op);
  }
  ok(n_backward > 0, "  %d of them have derivatives", n_backward);
  is_int(quern_op_count(ctx), before + N_DEFINITIONS, "  all of them are there");
  for (int i = 0; i < N_DEFINITIONS; i++) {
    snprintf(text, sizeof text, "acme.%s", definitions[i].name);
    quern_op *op = op_named(ctx, text), *backward = NULL;
    if (quern_op_describe(op)->backward) backward = op_named(ctx, quern_op_describe(op)->backward);
    quern_op_release(backward);
    quern_op_release(op);
  }
  is_int(quern_op_count(ctx), before + N_DEFINITIONS + n_backward, "  and then the derivatives that were asked for");
  group_begin("  called: the same bits");
  for (int i = 0; i < N_DEFINITIONS; i++) {
    const struct definition *d = &definitions[i];
    snprintf(text, sizeof text, "acme.%s", d->name);
    quern_op *mine = op_named(ctx, text), *built = op_named(NULL, d->name);
    for (int turn = 0; dtypes_of(d, turn); turn++) {
      if (turn == 3 && d->n_in == 1) continue;                                  /* nothing mixed */
      if (tier->jit != QUERN_JIT_OFF && (turn > 2 && i % 4 != turn % 4)) continue; /* a compile each */
      if (tier->jit != QUERN_JIT_OFF && part >= 0 && (i + turn) % 6 != part) continue;
      group_count(1);
      if (!infer_and_make(mine, &o, dtypes_of(d, turn), d->n_in, &r)) {
        group_fail("acme.%s of %s: infer: %s", d->name, dtypes_of(d, turn), quern_last_error());
      } else {
        if (!agree(mine, built, &o, NULL, why, sizeof why))
          group_fail("acme.%s of %s: %s", d->name, dtypes_of(d, turn), why);
        if (strcmp(tier_of(mine, &o, NULL), tier->explained) != 0)
          group_fail("acme.%s of %s: tier %s: %s", d->name, dtypes_of(d, turn), tier_of(mine, &o, NULL),
                     explained(mine, &o, NULL, "reason"));
      }
      operands_free(&o);
    }
    quern_op_release(mine);
    quern_op_release(built);
  }
  group_end();
  static const char *const pairs[][2] = {
      {"y = acme.gelu(x * w + b) - acme.clip(w + b, -1, 2.5)", "y = gelu(x * w + b) - clip(w + b, -1, 2.5)"},
      {"y = acme.isnan(x) ? acme.exp(w) : acme.leaky_relu(b, 0.3)", "y = isnan(x) ? exp(w) : leaky_relu(b, 0.3)"},
      {"y = acme.pow(acme.abs(x), w) + acme.log(acme.maximum(b, 1)) ", "y = pow(abs(x), w) + log(maximum(b, 1)) "},
      {"param p; y = acme.clip(x, p) * acme.leaky_relu(w) + b", "param p; y = clip(x, p) * leaky_relu(w) + b"},
  };
  static const char *const dtypes[] = {"f32 f32 f32", "f64 f64 f64", "f16 f16 f16", "bf16 i32 f32"};
  group_begin("  in expressions: the same bits");
  for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
      const quern_scalar value[1] = {scalar_f(-0.75)};
      const quern_call call = {.size = sizeof call, .params = value, .n_params = strstr(pairs[p][0], "param") ? 1 : 0};
      quern_op *mine = op_from(ctx, pairs[p][0]), *built = op_from(NULL, pairs[p][1]);
      group_count(1);
      if (!infer_and_make(mine, &o, dtypes[d], 3, &r)) {
        group_fail("%s of %s: infer: %s", pairs[p][0], dtypes[d], quern_last_error());
      } else {
        if (!agree(mine, built, &o, &call, why, sizeof why)) group_fail("%s of %s: %s", pairs[p][0], dtypes[d], why);
        if (strcmp(tier_of(mine, &o, &call), tier->explained) != 0)
          group_fail("%s of %s: tier %s: %s", pairs[p][0], dtypes[d], tier_of(mine, &o, &call),
                     explained(mine, &o, &call, "reason"));
      }
      operands_free(&o);
      quern_op_release(mine);
      quern_op_release(built);
    }
  }
  group_end();
  quern_ctx_release(ctx);
}

/* ---- The library's math under other names ----------------------------------------------------------------------- */

static const char *const math_files[] = {"exp", "expm1", "log", "erf", "gelu", "sigmoid", "tanh", "pow", "integer_pow"};

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 18);
  if (!file || !fread(text, 1, (1 << 18) - 1, file)) {
    free(text);
    text = NULL;
  }
  if (file) fclose(file);
  return text;
}

/* Whether `word` is the name of a function of the library's math. */
static int is_function(char *const *texts, const char *word, size_t n) {
  char declared[100];
  snprintf(declared, sizeof declared, "func \"%.*s\"", (int)n, word);
  for (size_t f = 0; f < sizeof math_files / sizeof math_files[0]; f++)
    if (strstr(texts[f], declared)) return 1;
  return 0;
}

/* One spec: all files of dsl/math, their functions renamed, and ops that are these functions; NULL: they are not there. */
static char *spec_of_math(void) {
  const char *source = getenv("QUERN_SOURCE_DIR");
  char *texts[sizeof math_files / sizeof math_files[0]], path[4096];
  char *spec = malloc(1 << 19), *at = spec;
  for (size_t f = 0; f < sizeof math_files / sizeof math_files[0]; f++) {
    snprintf(path, sizeof path, "%s/dsl/math/%s.lua", source ? source : ".", math_files[f]);
    if (!(texts[f] = read_file(path))) {
      while (f > 0) free(texts[--f]);
      free(spec);
      return NULL;
    }
  }
  for (size_t f = 0; f < sizeof math_files / sizeof math_files[0]; f++) {
    for (const char *p = texts[f]; *p;) {
      const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.");
      if (n && is_function(texts, p, n)) at = stpcpy(at, "my_");
      if (n > 4 && strncmp(p, "raw_", 4) == 0) { /* the library's own; of a NaN the bits may be others */
        at = stpcpy(at, "as_");
        p += 4;
        continue;
      }
      if (n == 9 && strncmp(p, "canonical", 9) == 0) { /* the library's own: what it says of its argument is for kernels */
        p += 9;
        continue;
      }
      const size_t step = n ? n : 1;
      memcpy(at, p, step);
      at += step, p += step;
    }
    *at++ = '\n';
  }
  at += sprintf(
      at, "%s",
      "op \"acme.pow\" { doc = \"As pow.\", inputs = \"x, y\", dtypes = numeric, body = { floating = [[ my_pow(x, y) ]],"
      " integer = [[ my_integer_pow(x, y) ]] } }\n");
  static const char *const unary[] = {"exp", "log", "erf", "gelu", "sigmoid", "tanh"};
  for (int i = 0; i < 6; i++)
    at += sprintf(at, "unary \"acme.%s\" { doc = \"As %s.\", dtypes = floating, body = [[ my_%s(x) ]] }\n", unary[i],
                  unary[i], unary[i]);
  for (size_t f = 0; f < sizeof math_files / sizeof math_files[0]; f++) free(texts[f]);
  return spec;
}

static void test_math(const spec_tier *tier) {
  static const char *const names[] = {"exp", "log", "erf", "gelu", "sigmoid", "tanh", "pow"};
  static const char *const dtypes[] = {"f32 f32", "f64 f64", "f16 f16", "i32 i32", "i64 i64"};
  rng r;
  operands o;
  char why[1000], name[64];
  char *spec = spec_of_math();
  if (!spec) {
    skip(1, "dsl/math is not here: QUERN_SOURCE_DIR names the sources");
    return;
  }
  quern_ctx *ctx = ctx_of(tier->jit);
  rng_seed(&r, 2);
  const quern_status status = load_spec(ctx, "math.lua", spec);
  is_int(status, QUERN_OK, "%s: the library's math as a spec of somebody else's", tier->name);
  free(spec);
  if (status) {
    diag("%s", quern_last_error());
    quern_ctx_release(ctx);
    return;
  }
  group_begin("  the same bits, tables and rare blocks among it");
  for (int i = 0; i < 7; i++) {
    snprintf(name, sizeof name, "acme.%s", names[i]);
    quern_op *mine = op_named(ctx, name), *built = op_named(NULL, names[i]);
    for (int d = 0; d < (i == 6 ? 5 : 3); d++) {
      for (int turn = 0; turn < (tier->jit == QUERN_JIT_OFF ? 3 : 1); turn++) {
        group_count(1);
        if (!infer_and_make(mine, &o, dtypes[d], i == 6 ? 2 : 1, &r))
          group_fail("%s of %s: %s", name, dtypes[d], quern_last_error());
        else if (!agree(mine, built, &o, NULL, why, sizeof why))
          group_fail("%s of %s: %s", name, dtypes[d], why);
        else if (strcmp(tier_of(mine, &o, NULL), tier->explained) != 0)
          group_fail("%s of %s: tier %s: %s", name, dtypes[d], tier_of(mine, &o, NULL),
                     explained(mine, &o, NULL, "reason"));
        operands_free(&o);
      }
    }
    quern_op_release(mine);
    quern_op_release(built);
  }
  group_end();
  quern_ctx_release(ctx);
}

/* ---- The library's reductions and rows under other names --------------------------------------------------------- */

static const char *const row_files[] = {"reduction", "statistics", "vector", "search", "scan", "scan_backward"};
enum { MOST_ROWS = 100, N_ROW_FILES = 6 };
/* Those of the library find places by a kernel of their own; a spec says it with states. */
#define PLACES(name, extreme, sign, none)                                                                                         \
  "\nscan \"" name "\" { doc = \"d\", dtypes = numeric, outputs = \"values, i64 indices\", initial = { values = " none              \
  ", indices = -1 },\n  state = \"T at, T v, i64 i\", lift = \"at = x; v = x; i = index;\",\n"                                     \
  "  combine = [[ take = b.at " sign " a.at | (b.at != b.at & a.at == a.at); at = take ? b.at : a.at; v = " extreme               \
  "(a.v, b.v); i = take ? b.i : a.i; ]],\n  finish = \"values = a.v; indices = a.i;\" }\n"
static const char places[] = PLACES("cummax", "maximum", ">", "-INFINITY") PLACES("cummin", "minimum", "<", "INFINITY");
static char row_names[MOST_ROWS][64]; /* declared by these files */
static int n_row_names;

static int is_row_name(const char *word, size_t n) {
  for (int i = 0; i < n_row_names; i++)
    if (strlen(row_names[i]) == n && memcmp(row_names[i], word, n) == 0) return 1;
  return 0;
}

static void note_row_names(const char *text) {
  static const char *const words[] = {"\nreduction \"", "\nrow \"", "\nscan \"", "\nadjoint \""};
  for (int w = 0; w < 4; w++)
    for (const char *at = text; (at = strstr(at, words[w])); n_row_names++) {
      at += strlen(words[w]);
      if (n_row_names == MOST_ROWS) bail("more than %d rows", MOST_ROWS);
      snprintf(row_names[n_row_names], sizeof row_names[0], "%.*s", (int)strcspn(at, "\""), at);
    }
}

/* Whether a word begins a field that only the library's own ops may have. */
static int is_own_field(const char *p, size_t n) {
  static const char *const fields[] = {"finds = \"", "initial = \"", "last = \"", "absorbs = ", "repeats = ", "picks = ", "special = {", "cases = {"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields && n; i++)
    if (strncmp(p, fields[i], strlen(fields[i])) == 0) return 1;
  return 0;
}

/* One spec: the library's files of reductions, all that they declare and call renamed; NULL: they are not there. */
static char *spec_of_rows(void) {
  const char *source = getenv("QUERN_SOURCE_DIR");
  char *texts[N_ROW_FILES], path[4096], *spec = malloc(1 << 18), *to = spec;
  n_row_names = 0;
  for (int f = 0; f < N_ROW_FILES; f++) {
    snprintf(path, sizeof path, "%s/dsl/%s.lua", source ? source : ".", row_files[f]);
    if (!(texts[f] = read_file(path))) bail("no %s", path);
    char *find = strstr(texts[f], "\nscan \"cummax\"");
    if (find) {
      *find = 0;
      texts[f] = realloc(texts[f], strlen(texts[f]) + sizeof places);
      strcat(texts[f], places);
    }
    note_row_names(texts[f]);
  }
  for (int f = 0; f < N_ROW_FILES; f++) {
    for (const char *p = texts[f]; *p;) {
      const size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.");
      if (strncmp(p, "combine = \"a + b\"", 17) == 0) { /* not as sum has it: its kernels would serve */
        to = stpcpy(to, "combine = \"b + a\"");
        p += 17;
        continue;
      }
      if (is_own_field(p, n)) { /* finds = "max", */
        p += strncmp(p, "special", 7) == 0 || strncmp(p, "cases", 5) == 0 ? strcspn(p, "}") + 1 : 0;
        p += strcspn(p, "\n,") + 1;
        continue;
      }
      static const char *const before[] = {"row \"", "scan \"", "reduction \"", "adjoint \"", "of = \""};
      int is_declared = 0;
      for (int k = 0; k < 5 && p > texts[f] + 11 && p[n] == '"'; k++) is_declared |= strncmp(p - strlen(before[k]), before[k], strlen(before[k])) == 0;
      if (n && is_row_name(p, n) && (p[n] == '(' || is_declared)) to = stpcpy(to, "acme.");
      memcpy(to, p, n ? n : 1);
      to += n ? n : 1, p += n ? n : 1;
    }
    free(texts[f]);
  }
  *to = 0;
  return spec;
}

/* Operands of a row op: of shapes and layouts that lead to every path. Integers of their own are broadcast along the axes. */
static int make_rows(quern_op *op, operands *o, ref_dtype d, const quern_call *call, uint32_t axes, int turn, rng *r) {
  static const int64_t shapes[][3] = {{3, 5, 7}, {4, 1, 300}, {2, 40, 33}, {1, 1, 5000}, {300, 2, 20}, {3, 0, 4}, {2, 3, 4600}};
  const quern_op_info *info = quern_op_describe(op);
  quern_shape made[8];
  memset(o, 0, sizeof *o);
  o->n_in = info->n_in;
  for (int k = 0; k < info->n_in; k++) {
    int64_t shape[3], strides[3];
    memcpy(shape, shapes[turn % 7], sizeof shape);
    if (turn == 3 && strcmp(info->params[info->n_params - 1].name, "reverse") == 0) shape[2] = 70000; /* more than a span of a scan */
    const int is_place = strcmp(info->args[k].name, "t") == 0;
    for (int i = 0; i < 3 && is_place; i++) shape[i] = axes >> i & 1 ? 1 : shape[i];
    strides[turn % 3] = 1; /* any dimension may be the contiguous one */
    strides[(turn + 1) % 3] = shape[turn % 3];
    strides[(turn + 2) % 3] = shape[turn % 3] * shape[(turn + 1) % 3];
    operand_make(&o->in[k], is_place ? REF_I32 : d, 3, shape, turn % 2 ? strides : NULL, r);
  }
  for (int k = 0; k < info->n_out; k++) made[k] = (quern_shape){.size = sizeof made[k]};
  operands_point(o);
  if (quern_op_measure(op, o->n_in, o->ins, info->n_out, made, call)) return 0;
  for (int k = 0; k < 2 * info->n_out; k++) {
    const quern_shape *s = &made[k % info->n_out];
    ref_dtype of = 0;
    while (of < REF_N_DTYPES && (ref_dtype_dl(of).code != s->dtype.code || ref_dtype_dl(of).bits != s->dtype.bits)) of = (ref_dtype)(of + 1);
    if (of == REF_F32 && turn % 5 == 4) of = REF_F64; /* stored in a wider dtype than the result's */
    operand_make(&o->out[k], of, s->ndim, s->shape, NULL, r);
  }
  o->n_out = info->n_out;
  operands_point(o);
  return 1;
}

/* Both ops on the same operands: the same bits, or the same refusal but for the name. */
static void compare_rows(quern_op *mine, quern_op *built, ref_dtype d, int turn, rng *r) {
  const quern_op_info *info = quern_op_describe(built);
  const int is_reduced = info->op_class == QUERN_CLASS_REDUCTION;
  const uint32_t axes = 1 + (uint32_t)rng_below(r, 7);
  quern_scalar params[16] = {{.kind = QUERN_I64, .v.i = (int64_t)axes}, {.kind = QUERN_I64, .v.i = turn % 2}};
  quern_call call = {.size = sizeof call, .params = params, .n_params = 1 + is_reduced};
  if (strcmp(info->params[info->n_params - 1].name, "reverse") == 0) { /* a scan */
    for (int k = 1; k < 4; k++) params[k] = (quern_scalar){.kind = QUERN_I64, .v.i = k == 3 ? turn & 1 : turn % 3 == k};
    params[0].v.i = turn == 6 ? (int64_t)axes : turn == 3 ? 4 : 1 << turn % 3;
    call.n_params = 4;
  }
  operands o;
  char said[600] = "";
  group_count(1);
  if (!make_rows(built, &o, d, &call, axes, turn, r)) {
    quern_shape made[8];
    for (int k = 0; k < info->n_out; k++) made[k] = (quern_shape){.size = sizeof made[k]};
    snprintf(said, sizeof said, "acme.%s", quern_last_error());
    if (quern_op_measure(mine, o.n_in, o.ins, info->n_out, made, &call) == QUERN_OK || strcmp(quern_last_error(), said) != 0)
      group_fail("acme.%s of %s: said %s, wanted %s", info->name, ref_dtype_name(d), quern_last_error(), said);
  } else {
    const quern_status wanted = quern_op_call(built, o.n_in, o.ins, o.n_out, o.outs, &call);
    if (wanted) snprintf(said, sizeof said, "acme.%s", quern_last_error());
    for (int k = 0; k < o.n_out; k++) o.outs[k] = &o.out[o.n_out + k].t;
    const quern_status got = quern_op_call(mine, o.n_in, o.ins, o.n_out, o.outs, &call);
    if (got != wanted || (wanted && strncmp(quern_last_error(), said, strlen(info->name) + 5) != 0))
      group_fail("acme.%s of %s: %s: %s, wanted %s: %s", info->name, ref_dtype_name(d), status_name(got), quern_last_error(), status_name(wanted), said);
    for (int k = 0; k < o.n_out && got == wanted && !wanted; k++)
      if (!same_elements(&o.out[k], &o.out[o.n_out + k]))
        group_fail("acme.%s of %s: output %d differs, axes %u, turn %d", info->name, ref_dtype_name(d), k, axes, turn);
  }
  operands_free(&o);
}

static void test_rows(const spec_tier *tier) {
  static const ref_dtype dtypes[] = {REF_F32, REF_F64, REF_F16, REF_I32, REF_U8, REF_BOOL, REF_I64, REF_BF16};
  const int is_compiled = tier->jit != QUERN_JIT_OFF, part = test_part(16);
  rng r;
  char name[80];
  char *spec = spec_of_rows();
  quern_ctx *ctx = ctx_of(tier->jit);
  rng_seed(&r, 6);
  const double start = now_ms();
  is_int(load_spec(ctx, "rows.lua", spec), QUERN_OK, "%s: the library's reductions, rows, scans and their derivatives as a spec of somebody else's", tier->name);
  diag("%d of them: %.1f ms", n_row_names, now_ms() - start);
  free(spec);
  group_begin("  called over any axes: the same bits, the same words");
  for (int i = 0; i < n_row_names; i++) {
    snprintf(name, sizeof name, "acme.%.63s", row_names[i]);
    quern_op *mine = op_named(ctx, name), *built = op_named(NULL, row_names[i]);
    for (int k = 0; k < 8; k++) {
      const int of = part < 0 ? is_compiled ? 8 : 1 : is_compiled ? 16 : 4; /* so many dtypes and ops one */
      if ((k + i) % of != (part < 0 ? 0 : part % of)) continue;
      for (int turn = 0; turn < (is_compiled ? 6 : 8); turn++) compare_rows(mine, built, dtypes[k], turn, &r);
    }
    quern_op_release(mine);
    quern_op_release(built);
  }
  group_end();
  quern_ctx_release(ctx);
}

/* ---- Whatever a body may have ----------------------------------------------------------------------------------- */

static const char parts[] =
    "constants { ACME_THIRD = 0.25 }\n"
    "tables {\n"
    "  ACME_STEPS = { \"f32\", 1.5, -2.0, 0.0, 1e30, 4.0, 5.0, 6.0, 7.0 },\n"
    "  ACME_WIDE = { \"i64\", 10, -20, 9007199254740993, 40 },\n"
    "  ACME_ONE = { \"f64\", 0.1 },\n"
    "  ACME_ENDS = { \"f32\", 1 / 0, -1e300, 0 / 0, 2 },\n"
    "  ACME_WIDE_ENDS = { \"f64\", 0 / 0, -1 / 0 },\n"
    "}\n"
    "func \"acme_twice\" { doc = \"x + x.\", args = \"x\", body = [[ x + x ]] }\n"
    "func \"acme_step\" { doc = \"A step.\", args = \"x\", f32 = [[ lookup(ACME_STEPS, (i32)x) ]] }\n"
    "func \"acme_wide\" { doc = \"A wide one.\", args = \"x\", i64 = [[ lookup(ACME_WIDE, x) + x ]] }\n"
    "func \"acme_one\" { doc = \"The only one.\", args = \"x\", f64 = [[ lookup(ACME_ONE, (i64)x) * x ]] }\n"
    "func \"acme_third\" { doc = \"x, and some more.\", args = \"x\", body = [[ x + ACME_THIRD ]] }\n"
    "unary \"acme.step\" { doc = \"A step.\", dtypes = { \"f32\" }, body = [[ acme_step(x) ]] }\n"
    "unary \"acme.wide\" { doc = \"A wide one.\", dtypes = { \"i64\" }, body = [[ acme_wide(x) ]] }\n"
    "unary \"acme.one\" { doc = \"The only one.\", dtypes = { \"f64\" }, body = [[ acme_one(x) ]] }\n"
    "op \"acme.pick\" { doc = \"One of two.\", inputs = \"bool c, x, y\", params = { a = 2, b = -1.5 }, dtypes = floating,\n"
    "  body = [[ c ? a * x : acme_third(acme_twice(b * y)) ]] }\n"
    "op \"acme.close\" { doc = \"Near.\", inputs = \"x, y\", params = { eps = 0.5 }, dtypes = floating, result = \"bool\",\n"
    "  body = [[ abs(x - y) <= eps ]] }\n"
    "op \"acme.both\" { doc = \"Both.\", inputs = \"bool c, bool d\", dtypes = all, result = \"bool\", body = [[ c && !d ]] }\n"
    "unary \"acme.seldom\" { doc = \"Root of large ones.\", dtypes = floating, body = [[\n"
    "  T y = x * 0.5;\n"
    "  T z = 1;\n"
    "  rare (abs(x) > 4) {\n"
    "    T s = sqrt(abs(x));\n"
    "    y = copysign(s, x);\n"
    "    z = s + 1;\n"
    "  }\n"
    "  return y * z;\n"
    "]] }\n"
    "unary \"acme.later\" { doc = \"Another bound where it is large.\", dtypes = { \"f32\", \"f64\" }, result = \"bool\", body = [[\n"
    "  bool p = x > 1;\n"
    "  rare (x > 3) { p = x > 9; }\n"
    "  return p;\n"
    "]] }\n"
    "unary \"acme.own\" { doc = \"A step, and some more.\", dtypes = floating,\n"
    "  body = [[ (T)lookup(ACME_STEPS, (i32)(f32)x) * ACME_THIRD + PI ]] }\n"
    "unary \"acme.around\" { doc = \"The same of the half.\", dtypes = floating, body = [[ acme.own(x / 2) - ACME_THIRD ]] }\n"
    "unary \"acme.ends\" { doc = \"Infinities and NaN.\", dtypes = floating,\n"
    "  body = [[ (T)lookup(ACME_ENDS, (i32)(f32)x) + (T)lookup(ACME_WIDE_ENDS, x > 5 ? (i64)0 : (i64)1) / 2 ]] }\n"
    "unary \"acme.bits\" { doc = \"Turned.\", dtypes = integer, body = [[ (x << 3) ^ (x >> 1) | 1 ]] }\n"
    "unary \"acme.whole\" { doc = \"The next one.\", dtypes = numeric, body = [[ floor(x) + 1 ]] }\n"
    "binary \"acme.divided\" { doc = \"What division gives.\", dtypes = numeric, body = {\n"
    "  integer = [[ quot(x, y) ^ (rem(x, y) + gcd(x, y)) ]], floating = [[ rem(x, y) ]] } }\n";

/* What acme.own is of `x`, by numbers. */
#define STEP(x, k, value) "((i32)(f32)(" x ") & 7) == " k " ? (f32)" value " : "
#define OWN(T, x)                                                                                                  \
  "((" T ")(" STEP(x, "0", "1.5") STEP(x, "1", "-2.0") STEP(x, "2", "0.0") STEP(x, "3", "1e30") STEP(x, "4", "4.0") \
  STEP(x, "5", "5.0") STEP(x, "6", "6.0") "(f32)7.0) * 0.25 + PI)"

static void test_parts(const spec_tier *tier) {
  static const struct {
    const char *mine, *same, *in;
    int n_in;
  } cases[] = {
      {"acme.step(x)",
       "f32 r = x; i32 i = (i32)r & 7;"
       "return (i == 0 ? 1.5 : i == 1 ? -2.0 : i == 2 ? (f32)0 : i == 3 ? 1e30 : "
        "i == 4 ? (f32)4 : i == 5 ? (f32)5 : i == 6 ? (f32)6 : (f32)7)",
       "f32", 1},
      {"acme.wide(x)",
       "i64 i = x & 3; return (i == 0 ? (i64)10 : i == 1 ? (i64)-20 : i == 2 ? (i64)9007199254740993 : (i64)40) + x",
       "i64", 1},
      {"acme.one(x)", "0.1 * x", "f64", 1},
      {"acme.pick(x > 0, x, y)", "x > 0 ? 2 * x : (-1.5 * y + -1.5 * y) + 0.25", "f32 f32", 2},
      {"acme.pick(x > 0, x, y)", "x > 0 ? 2 * x : (-1.5 * y + -1.5 * y) + 0.25", "f16 f16", 2},
      {"acme.pick(x > 0, x, y, 3)", "x > 0 ? 3 * x : (-1.5 * y + -1.5 * y) + 0.25", "f64 f64", 2},
      {"acme.pick(x, y, z, 0.1, 0.2)", "x ? 0.1 * y : (0.2 * z + 0.2 * z) + 0.25", "bool f32 f32", 3},
      {"acme.close(x, y) ? x : -y", "abs(x - y) <= 0.5 ? x : -y", "f32 f32", 2},
      {"acme.close(x, y, 3) && x > 0", "abs(x - y) <= 3 && x > 0", "f16 f32", 2},
      {"acme.both(x > 0, y)", "x > 0 && !y", "f32 bool", 2},
      {"acme.both(x, y)", "x && !y", "bool bool", 2},
      {"acme.seldom(x)", "abs(x) > 4 ? copysign(sqrt(abs(x)), x) * (sqrt(abs(x)) + 1) : x * 0.5", "f32", 1},
      {"acme.seldom(x)", "abs(x) > 4 ? copysign(sqrt(abs(x)), x) * (sqrt(abs(x)) + 1) : x * 0.5", "f64", 1},
      {"acme.seldom(x)", "abs(x) > 4 ? copysign(sqrt(abs(x)), x) * (sqrt(abs(x)) + 1) : x * 0.5", "bf16", 1},
      {"acme.later(x)", "x > 3 ? x > 9 : x > 1", "f32", 1},
      {"acme.later(x)", "x > 3 ? x > 9 : x > 1", "f64", 1},
      {"acme.own(x)", OWN("f32", "x"), "f32", 1},
      {"acme.own(x) > 4", OWN("f64", "x") " > 4", "f64", 1},
      {"acme.around(x)", OWN("f32", "x / 2") " - 0.25", "bf16", 1},
      {"acme.ends(x)",
       "i32 i = (i32)(f32)x & 3; return (i == 0 ? (f32)INFINITY : i == 1 ? -(f32)INFINITY : i == 2 ? (f32)NAN : (f32)2) + "
       "(x > 5 ? (f32)NAN : -(f32)INFINITY)",
       "f32", 1},
      {"acme.bits(x)", "(x << 3) ^ (x >> 1) | 1", "i32", 1},
      {"acme.bits(x)", "(x << 3) ^ (x >> 1) | 1", "u8", 1},
      {"acme.whole(x)", "x + 1", "i16", 1},
      {"acme.whole(x)", "floor(x) + 1", "f16", 1},
      {"acme.divided(x, y)", "quot(x, y) ^ (rem(x, y) + gcd(x, y))", "i32 i32", 2},
      {"acme.divided(x, y)", "quot(x, y) ^ (rem(x, y) + gcd(x, y))", "u64 u64", 2},
      {"acme.divided(x, y)", "rem(x, y)", "f32 f32", 2},
      {"acme.divided(x, y)", "rem(x, y)", "f64 f64", 2},
      {"acme.pick(acme.close(x, y, 0.1), acme.seldom(x), y) + acme.close(x, y)",
       "(abs(x - y) <= 0.1 ? 2 * (abs(x) > 4 ? copysign(sqrt(abs(x)), x) * (sqrt(abs(x)) + 1) : x * 0.5) : "
       "(-1.5 * y + -1.5 * y) + 0.25)"
       " + (abs(x - y) <= 0.5)",
       "f32 f32", 2},
  };
  rng r;
  operands o;
  char why[1000];
  quern_ctx *ctx = ctx_of(tier->jit);
  rng_seed(&r, 3);
  const quern_status status = load_spec(ctx, "parts.lua", parts);
  is_int(status, QUERN_OK, "%s: tables, lookups, rare blocks, params, bools", tier->name);
  if (status) {
    diag("%s", quern_last_error());
    quern_ctx_release(ctx);
    return;
  }
  group_begin("  as expressions of the same meaning");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    quern_op *mine = op_from(ctx, cases[i].mine), *same = op_from(NULL, cases[i].same);
    group_count(1);
    if (!infer_and_make(mine, &o, cases[i].in, cases[i].n_in, &r))
      group_fail("%s of %s: infer: %s", cases[i].mine, cases[i].in, quern_last_error());
    else if (!agree(mine, same, &o, NULL, why, sizeof why))
      group_fail("%s of %s: %s", cases[i].mine, cases[i].in, why);
    else if (strcmp(tier_of(mine, &o, NULL), tier->explained) != 0)
      group_fail("%s: tier %s: %s", cases[i].mine, tier_of(mine, &o, NULL), explained(mine, &o, NULL, "reason"));
    operands_free(&o);
    quern_op_release(mine);
    quern_op_release(same);
  }
  group_end();
  /* By its name, with parameters given to the call; and what is said of it. */
  quern_op *pick = op_named(ctx, "acme.pick");
  const quern_op_info *info = quern_op_describe(pick);
  is_str(info->name, "acme.pick", "acme.pick");
  is_str(info->doc, "One of two.", "  its doc");
  has_str(info->formula, "c ? a * x", "  its formula");
  ok(info->n_in == 3 && info->n_out == 1 && info->n_params == 2, "  3 inputs, an output, 2 parameters");
  ok(strcmp(info->args[0].name, "c") == 0 && strcmp(info->args[0].dtypes, "bool") == 0, "  a condition");
  has_str(info->args[1].dtypes, "bf16 f32 f64", "  x takes");
  ok(strcmp(info->params[0].name, "a") == 0 && info->params[0].value.kind == QUERN_I64 &&
         info->params[0].value.v.i == 2,
     "  a is 2");
  ok(strcmp(info->params[1].name, "b") == 0 && info->params[1].value.kind == QUERN_F64 &&
         info->params[1].value.v.f[0] == -1.5,
     "  b is -1.5");
  quern_op *same = op_from(NULL, "param a; param b; x ? a * y : (b * z + b * z) + 0.25");
  const quern_scalar given[2] = {scalar_f(0.7), scalar_f(-3)}, all[2] = {scalar_f(0.7), scalar_f(-1.5)};
  quern_call call = {.size = sizeof call, .params = given, .n_params = 2};
  if (!infer_and_make(pick, &o, "bool f64 f64", 3, &r)) bail("%s", quern_last_error());
  ok(agree(pick, same, &o, &call, why, sizeof why), "  called with both parameters %s", why);
  is_str(tier_of(pick, &o, &call), tier->explained, "  tier");
  const char *compiles = explained(pick, &o, &call, "compiles");
  DLTensor *other[1] = {&o.out[1].t};
  call.n_params = 1;
  const quern_call whole = {.size = sizeof whole, .params = all, .n_params = 2};
  ok(operands_call(pick, &o, &call) == QUERN_OK && quern_op_call(same, 3, o.ins, 1, other, &whole) == QUERN_OK &&
         same_elements(&o.out[0], &o.out[1]),
     "  with the first one only: the other one has its default");
  is_str(explained(pick, &o, &call, "compiles"), compiles, "  values are no part of what is compiled");
  o.in[0].t.dtype = ref_dtype_dl(REF_U8);
  is_int(operands_call(pick, &o, NULL), QUERN_OK, "  a condition may be a number: != 0");
  operands_free(&o);
  /* By a plan, in place, broadcast */
  quern_op *seldom = op_named(ctx, "acme.seldom"), *wanted = op_from(NULL, cases[11].same);
  quern_plan *plan = NULL;
  if (!infer_and_make(seldom, &o, "f32", 1, &r)) bail("%s", quern_last_error());
  if (quern_op_call(wanted, 1, o.ins, 1, other, NULL)) bail("%s", quern_last_error());
  void *data[1] = {o.in[0].t.data};
  is_int(quern_op_prepare(seldom, 1, o.ins, 1, o.ins, NULL, &plan), QUERN_OK, "a plan of a spec's op, in place");
  is_int(quern_plan_run(plan, data, data, NULL), QUERN_OK, "  runs");
  ok(memcmp(data[0], o.out[1].t.data, 60 * 41 * 4) == 0, "  rightly");
  quern_op_release(seldom);
  quern_ctx_release(ctx);
  is_int(quern_plan_run(plan, data, data, NULL), QUERN_OK, "  and outlives op and context");
  quern_plan_release(plan);
  operands_free(&o);
  quern_op_release(wanted);
  quern_op_release(pick);
  quern_op_release(same);
}

int main(void) {
  forget_environment();
  if (!has_specs()) return done_testing();
  find_spec_tiers();
  for (int w = 0; w < n_spec_tiers; w++) {
    test_built_ins(&spec_tiers[w]);
    test_math(&spec_tiers[w]);
    test_rows(&spec_tiers[w]);
    test_parts(&spec_tiers[w]);
  }
  return done_testing();
}
