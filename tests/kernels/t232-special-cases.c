/* SPDX-License-Identifier: Apache-2.0
 *
 * t232-special-cases: the special cases of the array API standard, of C's Annex F and of our own laws, which are data in
 * special_cases.txt: each bullet of each function there, for every float dtype, built, interpreted and compiled, in every
 * stride class, in vectors' bodies and tails. Each op of the library has cases there, or a word on why it has none. */
#include "expressions.h"

enum { MOST_ROWS = 2000, MOST_FUNCTIONS = 300, MOST_VALUES = 64, MOST_CASES = 8192, WORD = 32, COPIES = 67 };

typedef struct function {
  char name[WORD];
  int standard, line, n_bullets, n_left_out, n_rows, is_here;
  unsigned char covered[64]; /* by bullet: a row */
} function;

typedef struct row {
  int function, line, bullet, n_in, n_out, n_params;
  char in[3][WORD], out[2][WORD], params[2][WORD];
} row;

static function functions[MOST_FUNCTIONS];
static row rows[MOST_ROWS];
static char standards[8][80], without[MOST_FUNCTIONS][WORD];
static int n_functions, n_rows, n_standards, n_without;

/* ---- Words ------------------------------------------------------------------------------------------------------ */

typedef struct values {
  ref_dtype d;
  int n;
  uint64_t bits[MOST_VALUES];
} values;

static uint64_t sign_bit(ref_dtype d) { return (uint64_t)1 << (8 * ref_dtype_size(d) - 1); }
static uint64_t infinity_of(ref_dtype d) { return ref_from_double(d, INFINITY); }

static void add_bits(values *v, uint64_t bits) {
  if (v->n == MOST_VALUES) bail("more than %d values of a word", MOST_VALUES);
  v->bits[v->n++] = bits;
}

static void add_numbers(values *v, int n, const double *list) {
  for (int i = 0; i < n; i++) add_bits(v, ref_from_double(v->d, list[i]));
}
#define ADD(v, ...) add_numbers(v, (int)(sizeof(double[]){__VA_ARGS__} / sizeof(double)), (double[]){__VA_ARGS__})

static void add_word(values *v, const char *word);

static void add_words(values *v, int n, const char *const *words) {
  for (int i = 0; i < n; i++) add_word(v, words[i]);
}
#define WORDS(v, ...) \
  add_words(v, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)), (const char *[]){__VA_ARGS__})

/* Numbers that depend on the dtype; 0: no such word. */
static int point_of(ref_dtype d, const char *word, uint64_t *bits) {
  const uint64_t negative = *word == '-' ? sign_bit(d) : 0, inf = infinity_of(d);
  if (negative) word++;
  if (strcmp(word, "tiny") == 0) *bits = negative | 1;
  else if (strcmp(word, "norm") == 0) *bits = negative | (inf & -inf);
  else if (strcmp(word, "max") == 0) *bits = negative | (inf - 1);
  else if (strcmp(word, "1+") == 0) *bits = negative | (ref_from_double(d, 1) + 1);
  else if (strcmp(word, "1-") == 0) *bits = negative | (ref_from_double(d, 1) - 1);
  else return 0;
  return 1;
}

/* Whether all of a word is a number. */
static int number_of(const char *word, double *x) {
  char *end;
  *x = strtod(word, &end);
  return end != word && *end == 0 && !strchr(word, 'x');
}

/* The values that an input's word means. */
static void add_word(values *v, const char *word) {
  const ref_dtype d = v->d;
  uint64_t bits;
  double x;
  if (strcmp(word, "nan+") == 0) add_bits(v, ref_nan(d)), add_bits(v, infinity_of(d) + 1);
  else if (strcmp(word, "nan-") == 0) add_bits(v, ref_nan(d) | sign_bit(d)), add_bits(v, (infinity_of(d) + 1) | sign_bit(d));
  else if (strcmp(word, "nan") == 0) WORDS(v, "nan+"), add_bits(v, ref_nan(d) | sign_bit(d));
  else if (strcmp(word, "zero") == 0) ADD(v, 0, -0.0);
  else if (strcmp(word, "infinite") == 0) ADD(v, INFINITY, -INFINITY);
  else if (strcmp(word, "finite>0") == 0) WORDS(v, "tiny", "norm", "0.5", "1", "1.5", "3", "max");
  else if (strcmp(word, "finite<0") == 0) WORDS(v, "-tiny", "-norm", "-0.5", "-1", "-1.5", "-3", "-max");
  else if (strcmp(word, "finite!=0") == 0) WORDS(v, "finite>0", "finite<0");
  else if (strcmp(word, "finite") == 0) WORDS(v, "zero", "finite!=0");
  else if (strcmp(word, "number") == 0) WORDS(v, "finite", "infinite");
  else if (strcmp(word, "any") == 0) WORDS(v, "number", "nan");
  else if (strcmp(word, ">0") == 0) WORDS(v, "finite>0", "inf");
  else if (strcmp(word, "<0") == 0) WORDS(v, "finite<0", "-inf");
  else if (strcmp(word, "!=0") == 0) WORDS(v, "finite!=0", "infinite", "nan");
  else if (strcmp(word, "!=1") == 0) WORDS(v, "zero", "tiny", "norm", "0.5", "1-", "1+", "max", "finite<0", "infinite", "nan");
  else if (strcmp(word, ">1") == 0) WORDS(v, "1+", "1.5", "3", "max", "inf");
  else if (strcmp(word, "<-1") == 0) WORDS(v, "-1+", "-1.5", "-3", "-max", "-inf");
  else if (strcmp(word, "<1") == 0) WORDS(v, "1-", "0.5", "norm", "tiny", "zero", "finite<0", "-inf");
  else if (strcmp(word, "|x|>1") == 0) WORDS(v, ">1", "<-1");
  else if (strcmp(word, "|x|=1") == 0) ADD(v, 1, -1);
  else if (strcmp(word, "|x|<1") == 0) WORDS(v, "zero", "tiny", "-tiny", "norm", "-norm", "0.5", "-0.5", "1-", "-1-");
  else if (strcmp(word, "odd>0") == 0) ADD(v, 1, 3, 5, 127);
  else if (strcmp(word, "odd<0") == 0) ADD(v, -1, -3, -5, -127);
  else if (strcmp(word, "notodd>0") == 0) WORDS(v, "tiny", "0.5", "1.5", "2", "4", "max", "inf");
  else if (strcmp(word, "notodd<0") == 0) WORDS(v, "-tiny", "-0.5", "-1.5", "-2", "-4", "-max", "-inf");
  else if (strcmp(word, "integer") == 0) ADD(v, 1, -1, 2, -3, 100, -128);
  else if (strcmp(word, "noninteger") == 0) WORDS(v, "0.5", "-0.5", "1.5", "-1.5", "tiny", "-tiny");
  else if (point_of(d, word, &bits)) add_bits(v, bits);
  else if (number_of(word, &x)) add_bits(v, ref_from_double(d, x));
  else bail("special_cases.txt: no input is called '%s'", word);
}

/* Whether `got` is what a word of an output means; if not, what is. */
static int is_wanted(const char *word, ref_dtype d, const uint64_t *x, ref_dtype out, uint64_t got, char *wanted) {
  static const struct {
    const char *name;
    double value;
  } constants[] = {{"pi", 0x1.921fb54442d18p1}, {"pi/2", 0x1.921fb54442d18p0}, {"pi/4", 0x1.921fb54442d18p-1},
                   {"3pi/4", 0x1.2d97c7f3321d2p1}};
  const int minus = *word == '-', is_float = ref_dtype_kind(out) == REF_KIND_FLOAT;
  const char *bare = word + minus;
  const int sized = *bare == '|';
  uint64_t bits = 0;
  double value;
  snprintf(wanted, 64, "%s", word);
  if (strcmp(word, "positive") == 0 || strcmp(word, "negative") == 0)
    return is_float && !ref_is_nan(out, got) && !(got & sign_bit(out)) == (*word == 'p');
  if (strncmp(bare + sized, "x1", 2) == 0 || strncmp(bare + sized, "x2", 2) == 0) {
    bits = ref_cast(out, ref_value(d, x[bare[sized + 1] - '1']), REF_KIND_FLOAT);
    if (sized) bits &= ~sign_bit(out);
    if (minus) bits ^= sign_bit(out);
  } else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
    if (out != REF_BOOL) return 0;
    bits = *word == 't';
  } else if (is_float && point_of(out, word, &bits)) {
  } else if (number_of(word, &value)) {
    bits = ref_cast(out, value, REF_KIND_FLOAT);
  } else {
    size_t k = 0, n = sizeof constants / sizeof *constants;
    while (k < n && strcmp(constants[k].name, bare) != 0) k++;
    if (k == n) bail("special_cases.txt: no output is called '%s'", word);
    bits = ref_cast(out, minus ? -constants[k].value : constants[k].value, REF_KIND_FLOAT);
  }
  ref_text(out, bits, wanted);
  return got == bits;
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

/* name=number, and no class of numbers */
static int is_param(const char *word) {
  const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
  return n > 0 && word[n] == '=';
}

static void add_row(row *r, char *text, int line) {
  int is_output = 0;
  r->line = line;
  r->function = n_functions - 1;
  for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
    if (strlen(word) >= WORD) bail("special_cases.txt:%d: '%s' is too long", line, word);
    if (strcmp(word, "->") == 0) is_output = 1;
    else if (is_output && r->n_out < 2) strcpy(r->out[r->n_out++], word);
    else if (!is_output && is_param(word) && r->n_params < 2)
      strcpy(r->params[r->n_params++], word);
    else if (!is_output && r->n_in < 3) strcpy(r->in[r->n_in++], word);
    else bail("special_cases.txt:%d: too many words", line);
  }
  if (!r->n_out || !r->n_in) bail("special_cases.txt:%d: a case has inputs and outputs", line);
}

static void read_line(char *text, int line) {
  int first, last, end = 0;
  char name[WORD];
  function *f = n_functions ? &functions[n_functions - 1] : NULL;
  if (strncmp(text, "standard ", 9) == 0 && n_standards < 8) {
    snprintf(standards[n_standards++], sizeof standards[0], "%.79s", text + 9);
  } else if (strncmp(text, "without ", 8) == 0) {
    char *colon = strchr(text, ':');
    if (!colon || !colon[1]) bail("special_cases.txt:%d: why?", line);
    *colon = 0;
    for (char *word = strtok(text + 8, " "); word; word = strtok(NULL, " "))
      snprintf(without[n_without++ % MOST_FUNCTIONS], WORD, "%.31s", word);
  } else if (sscanf(text, "function %31s %d%n", name, &last, &end) == 2 && !text[end]) {
    if (!n_standards || n_functions == MOST_FUNCTIONS || last >= 64) bail("special_cases.txt:%d: that is too much", line);
    f = &functions[n_functions++];
    *f = (function){.standard = n_standards - 1, .line = line, .n_bullets = last};
    strcpy(f->name, name);
  } else if (f && sscanf(text, "%d..%d: %n", &first, &last, &end) == 2 && end && text[end]) {
    for (int k = first; k <= last && k < 64; k++, f->n_left_out++) {
      if (f->covered[k]) bail("special_cases.txt:%d: bullet %d is there twice", line, k);
      f->covered[k] = 2;
    }
  } else if (f && sscanf(text, "%d: %n", &first, &end) == 1 && end && text[end] && !strstr(text, "->")) {
    f->covered[first & 63] = 2;
    f->n_left_out++;
  } else if (f && sscanf(text, "%d: %n", &first, &end) == 1 && end && n_rows < MOST_ROWS) {
    if (first < 0 || first > f->n_bullets || f->covered[first] == 2) bail("special_cases.txt:%d: bullet %d?", line, first);
    f->covered[first] = 1;
    f->n_rows++;
    rows[n_rows].bullet = first;
    add_row(&rows[n_rows++], text + end, line);
  } else {
    bail("special_cases.txt:%d: '%s'", line, text);
  }
}

static void read_file(void) {
  const char *source = getenv("QUERN_SOURCE_DIR");
  char path[4096], text[400];
  snprintf(path, sizeof path, "%s/tests/kernels/special_cases.txt", source ? source : ".");
  FILE *f = fopen(path, "r");
  if (!f) bail("cannot open %s", path);
  for (int line = 1; fgets(text, sizeof text, f); line++) {
    text[strcspn(text, "\n")] = 0;
    if (*text && *text != '#') read_line(text, line);
  }
  fclose(f);
}

/* The standard's functions and bullets, so that none is lost from the file. */
static void test_file(void) {
  int n_of[8] = {0}, bullets_of[8] = {0}, left_out_of[8] = {0}, bad = 0;
  for (int i = 0; i < n_functions; i++) {
    const function *f = &functions[i];
    n_of[f->standard]++;
    bullets_of[f->standard] += f->n_bullets;
    left_out_of[f->standard] += f->n_left_out;
    for (int k = 1; k <= f->n_bullets; k++) {
      if (f->covered[k]) continue;
      bad++;
      diag("special_cases.txt:%d: %s: nothing is said of bullet %d", f->line, f->name, k);
    }
  }
  ok(bad == 0 && n_rows > 400, "every bullet has cases, or a reason why it has none: %d cases", n_rows);
  ok(n_of[0] == 67 && bullets_of[0] == 486, "%s: 67 functions (%d), 486 bullets (%d), of which %d do not apply", standards[0],
     n_of[0], bullets_of[0], left_out_of[0]);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

typedef struct way {
  const char *name;
  const char *tier; /* NULL: the op itself, built */
  quern_ctx *ctx;
} way;

/* What a row is tried on: an op, and how many of its outputs count. */
typedef struct subject {
  const way *way;
  quern_op *op;
  const row *row;
  ref_dtype d, out[3];
  int n_in, n_out, n_results;
  quern_call call;
  quern_scalar params[2];
} subject;

static _Alignas(64) unsigned char memory[6][MOST_CASES * 8 * 3];

/* Tensors of n elements over `memory`: inputs at `step[k]`, outputs at step[3]. */
typedef struct view {
  DLTensor t[6], *in[3], *out[3];
  int64_t n, stride[6];
} view;

static void view_make(view *v, const subject *s, int64_t n, const int *step) {
  v->n = n;
  for (int k = 0; k < 6; k++) {
    const ref_dtype d = k < 3 ? s->d : s->out[k - 3];
    v->stride[k] = step[k < 3 ? k : 3];
    v->t[k] = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(d), .shape = &v->n,
                         .strides = &v->stride[k]};
    if (k < 3) v->in[k] = &v->t[k];
    else v->out[k - 3] = &v->t[k];
  }
}

/* Calls on n cases, x[i][k], and looks at each of them. */
static int run(const subject *s, int64_t n, const uint64_t (*x)[3], const row *const *of, const int *step, const char *layout) {
  const int size = ref_dtype_size(s->d);
  view v;
  view_make(&v, s, n, step);
  for (int k = 0; k < s->n_in; k++)
    for (int64_t i = n - 1; i >= 0; i--) ref_put(s->d, memory[k] + i * step[k] * size, x[i][k]);
  const quern_status status = quern_op_call(s->op, s->n_in, v.in, s->n_out, v.out, &s->call);
  if (status) {
    group_fail("line %d: %s %s, %s: %s", of[0]->line, s->way->name, ref_dtype_name(s->d), layout, quern_last_error());
    return 0;
  }
  for (int64_t i = 0; i < n; i++) {
    for (int k = 0; k < s->n_results; k++) {
      const uint64_t got = ref_get(s->out[k], memory[3 + k] + i * step[3] * ref_dtype_size(s->out[k]));
      char wanted[80], is[80], args[3][80];
      group_count(1);
      if (is_wanted(of[i]->out[k], s->d, x[i], s->out[k], got, wanted)) continue;
      for (int j = 0; j < 3; j++) ref_text(s->d, x[i][j], args[j]);
      group_fail("line %d: %s %s, %s, element %d of %d: (%s%s%s%s%s): got %s, wanted %s", of[i]->line, s->way->name,
                 ref_dtype_name(s->d), layout, (int)i, (int)n, args[0], s->n_in > 1 ? ", " : "", s->n_in > 1 ? args[1] : "",
                 s->n_in > 2 ? ", " : "", s->n_in > 2 ? args[2] : "", ref_text(s->out[k], got, is), wanted);
      return 0;
    }
  }
  return 1;
}

/* All combinations of a row's values: one more of them into x, or 0. */
static int next_case(const values *v, int n_in, int *turn, uint64_t *x) {
  if (turn[0] < 0) return 0;
  for (int k = 0; k < n_in; k++) x[k] = v[k].bits[turn[k]];
  for (int k = n_in - 1; k >= 0; k--) {
    if (++turn[k] < v[k].n) return 1;
    turn[k] = 0;
  }
  turn[0] = -1;
  return 1;
}

static uint64_t mixed[MOST_CASES][3];
static const row *mixed_of[MOST_CASES];

/* Each case in copies of itself, in all stride classes, a 16th of the cases each day; then all of them beside one another. */
static void run_rows(const subject *s, int n, const row *const *list) {
  const int part = test_part(16);
  int n_mixed = 0, at = 0;
  for (int i = 0; i < n; i++) {
    values v[3] = {{.d = s->d}, {.d = s->d}, {.d = s->d}};
    int turn[3] = {0};
    uint64_t x[3] = {0}, copies[COPIES][3];
    const row *of[COPIES];
    for (int k = 0; k < s->n_in; k++) add_word(&v[k], list[i]->in[k]);
    while (next_case(v, s->n_in, turn, x)) {
      const int is_mixed = n_mixed < MOST_CASES;
      if (is_mixed) {
        memcpy(mixed[n_mixed], x, sizeof x);
        mixed_of[n_mixed++] = list[i];
      }
      if (is_mixed && part >= 0 && at++ % 16 != part) continue;
      for (int j = 0; j < COPIES; j++) {
        memcpy(copies[j], x, sizeof x);
        of[j] = list[i];
      }
      if (!run(s, COPIES, (const uint64_t(*)[3])copies, of, (int[]){1, 1, 1, 1}, "contiguous")) return;
      if (!run(s, COPIES, (const uint64_t(*)[3])copies, of, (int[]){2, 3, 2, 3}, "strided")) return;
      for (int k = 0; k < s->n_in; k++) {
        if (!run(s, COPIES, (const uint64_t(*)[3])copies, of, (int[]){k != 0, k != 1, k != 2, 1}, "broadcast")) return;
      }
    }
  }
  run(s, n_mixed, (const uint64_t(*)[3])mixed, mixed_of, (int[]){1, 1, 1, 1}, "all cases");
  run(s, n_mixed, (const uint64_t(*)[3])mixed, mixed_of, (int[]){2, 3, 2, 3}, "all cases, strided");
}

/* The params of a row, by name; 0: there is no such parameter. */
static int params_of(const quern_op_info *info, const row *r, quern_scalar *params, char *text, size_t size) {
  for (int k = 0; k < info->n_params && k < 2; k++) params[k] = info->params[k].value;
  *text = 0;
  for (int i = 0; i < r->n_params; i++) {
    const char *equals = strchr(r->params[i], '=');
    int k = 0;
    while (k < info->n_params && (strlen(info->params[k].name) != (size_t)(equals - r->params[i]) ||
                                  strncmp(info->params[k].name, r->params[i], (size_t)(equals - r->params[i])) != 0))
      k++;
    if (k >= info->n_params || k >= 2) return 0;
    params[k] = scalar_f(strtod(equals + 1, NULL));
  }
  for (int k = 0; r->n_params && k < info->n_params; k++) {
    const double x = params[k].v.f[0];
    const size_t at = strlen(text);
    if (x != x) snprintf(text + at, size - at, ", NAN");
    else if (isinf(x)) snprintf(text + at, size - at, ", %sINFINITY", x < 0 ? "-" : "");
    else snprintf(text + at, size - at, ", %g", x);
  }
  return 1;
}

/* The dtypes of the outputs; 0 with a failure. */
static int infer_outputs(subject *s, const char *name) {
  quern_shape shapes[3];
  view v;
  for (int k = 0; k < 3; k++) {
    s->out[k] = s->d;
    shapes[k].size = sizeof shapes[k];
  }
  view_make(&v, s, COPIES, (int[]){1, 1, 1, 1});
  if (s->n_out > 3 || quern_op_infer(s->op, s->n_in, v.in, s->n_out, shapes)) {
    group_fail("%s: %s: %s", name, ref_dtype_name(s->d), quern_last_error());
    return 0;
  }
  for (int k = 0; k < s->n_out; k++) s->out[k] = ref_dtype_of(shapes[k].dtype);
  return 1;
}

/* An op of one way: itself, or an expression that is more than a call of it, which would be the built op again. */
static quern_op *op_of_way(const way *way, const quern_op_info *info, const char *params) {
  static const char *const arguments[] = {"", "a", "a, b", "a, b, c"};
  const char *args = arguments[info->n_in], *first = info->args[info->n_in].name;
  char text[400];
  if (!way->tier) return op_named(NULL, info->name);
  if (info->n_out == 1) {
    snprintf(text, sizeof text, "result = %s(%s%s); other = -a;", info->name, args, params);
  } else {
    const char *name = info->name, *second = info->args[info->n_in + 1].name;
    snprintf(text, sizeof text, "result = %s.%s(%s); second = %s.%s(%s); other = -a;", name, first, args, name, second, args);
  }
  return op_from(way->ctx, text);
}

static int has_tier(const subject *s) {
  char text[8192];
  view v;
  view_make(&v, s, COPIES, (int[]){1, 1, 1, 1});
  if (!s->way->tier) return 1;
  if (quern_op_explain(s->op, s->n_in, v.in, s->n_out, v.out, &s->call, text, sizeof text)) return 0;
  return strcmp(line_of(text, "tier"), s->way->tier) == 0;
}

/* The rows of one op with the same params, in one way. */
static void run_way(const way *way, const quern_op_info *info, int n, const row *const *list) {
  subject s = {.way = way, .n_in = info->n_in, .n_results = info->n_out};
  char params[200];
  if (!params_of(info, list[0], s.params, params, sizeof params)) {
    group_fail("line %d: %s has no such parameter", list[0]->line, info->name);
    return;
  }
  s.op = op_of_way(way, info, params);
  s.call = (quern_call){.size = sizeof s.call};
  if (!way->tier && list[0]->n_params) {
    s.call.params = s.params;
    s.call.n_params = info->n_params;
  }
  s.n_out = info->n_out + (way->tier != NULL);
  for (int d = REF_F16; d <= REF_F64; d++) {
    s.d = (ref_dtype)d;
    if (!infer_outputs(&s, info->name)) continue;
    run_rows(&s, n, list);
    if (!has_tier(&s)) group_fail("%s %s: not by the tier %s", info->name, ref_dtype_name(s.d), way->tier);
  }
  quern_op_release(s.op);
}

/* All rows of an op, whatever the standard. */
static void test_op(const quern_op_info *info, int n_ways, const way *ways) {
  static const row *list[MOST_ROWS];
  static unsigned char is_done[MOST_ROWS];
  int n_cases = 0;
  group_begin("%s", info->name);
  for (int i = 0; i < n_rows; i++) {
    const row *r = &rows[i];
    if (strcmp(functions[r->function].name, info->name) != 0) continue;
    n_cases++;
    if (r->n_in != info->n_in || r->n_out != info->n_out) {
      group_fail("line %d: %d inputs and %d outputs of %d and %d", r->line, r->n_in, r->n_out, info->n_in, info->n_out);
      is_done[i] = 1;
    }
    if (is_done[i]) continue;
    int n = 0;
    for (int j = i; j < n_rows; j++) {
      const row *other = &rows[j];
      if (strcmp(functions[other->function].name, info->name) != 0 || other->n_in != info->n_in) continue;
      if (other->n_out != info->n_out || memcmp(other->params, r->params, sizeof r->params) != 0) continue;
      list[n++] = &rows[j];
      is_done[j] = 1;
    }
    for (int w = 0; w < n_ways; w++) run_way(&ways[w], info, n, list);
  }
  group_end();
}

/* ---- All ops ---------------------------------------------------------------------------------------------------- */

static void append(char *list, size_t size, const char *name) {
  const size_t at = strlen(list);
  if (at + strlen(name) + 2 > size) bail("more than %zu letters of names", size);
  list[at] = ' ';
  strcpy(list + at + 1, name);
}

static int is_without(const char *name) {
  for (int i = 0; i < n_without; i++)
    if (strcmp(without[i], name) == 0) return 1;
  return 0;
}

/* The functions that the library has; each op of its own has rows, or is listed with those without. */
static void test_ops(int n_ways, const way *ways) {
  const int32_t n = quern_op_count(NULL);
  char lacking[2000] = "";
  for (int32_t i = 0; i < n; i++) {
    quern_op *op = NULL;
    int n_found = 0;
    if (quern_op_at(NULL, i, &op)) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    for (int k = 0; k < n_functions; k++) {
      if (strcmp(functions[k].name, info->name) != 0) continue;
      functions[k].is_here = 1;
      n_found += functions[k].n_rows;
    }
    /* those of integers only have no special cases of floats */
    const int is_of_floats = info->n_in > 0 && strstr(info->args[info->n_in - 1].dtypes, "f32") != NULL;
    const int part = test_part(3); /* of the ops: compiled */
    if (n_found) test_op(info, part < 0 || i % 3 == part ? n_ways : 2, ways);
    else if (info->op_class == QUERN_CLASS_BASIC && is_of_floats && !is_without(info->name) &&
             !is_backward(info->name) && !has_axes(info)) /* t306 and t242 have those */
      append(lacking, sizeof lacking, info->name);
    quern_op_release(op);
  }
  ok(!*lacking, "every op that takes floats has its cases in special_cases.txt, or a word why not");
  if (*lacking) diag("without:%s", lacking);
}

/* ---- The sign of NaN: an operand's as it lies in memory, positive of what was computed, chosen or copied ---------------- */

/* The sign bit that `text`, of a and b = 2, has of a number a; nan: of NaN, 'r' a's own, '+' clear. */
typedef struct sign_case {
  const char *text;
  char of_number, of_nan; /* of_number: 'a' a's, 'n' the opposite, 's' of a + b, '+' clear */
} sign_case;

static const sign_case sign_cases[] = {
    {"signbit(a)", 'a', 'r'}, {"signbit(copysign(1, a))", 'a', 'r'}, {"signbit(-a)", 'n', '+'}, {"signbit(abs(a))", '+', '+'},
    {"signbit(a + b)", 's', '+'}, {"signbit(a * b)", 'a', '+'}, {"signbit(positive(a))", 'a', '+'}, {"signbit(copy(a))", 'a', '+'},
    {"signbit(where(b > 0, a, b))", 'a', '+'}, {"signbit(b > 0 ? a : b)", 'a', '+'}, {"signbit(b == b ? a : a)", 'a', '+'},
    {"signbit(1 > 0 ? a : b)", 'a', '+'}, {"signbit(copysign(b, a * b))", 'a', '+'}, {"signbit(copysign(b, copysign(a, a)))", 'a', '+'},
    {"signbit(max(a, axis=-1, keepdims=1))", 'a', '+'}, {"signbit(cumulative_max(a, axis=-1))", 'a', '+'},
    {"copysign(2.0, a) < 0", 'a', 'r'}, {"signbit(where(b > 0, positive(a), b)) ", 'a', '+'},
    {"acme.same_sign(a)", 'a', 'r'}, {"acme.same_sign(acme.same(a))", 'a', '+'}, {"acme.late_sign(a)", 'a', '+'}};

static const char sign_spec[] =
    "unary \"acme.same_sign\" { doc = \"d\", dtypes = floating, result = \"bool\", body = \"signbit(x)\" }\n"
    "unary \"acme.same\" { doc = \"d\", dtypes = floating, body = \"x\" }\n"
    "unary \"acme.late_sign\" { doc = \"d\", dtypes = floating, result = \"bool\",\n"
    "  body = [[ T y = x; rare (x > 100) { y = x * 0.5; } return signbit(y); ]] }\n";

static void test_signs(const way *way) {
  enum { N = 37 };
  static const double numbers[] = {1, -1, 0.0, -0.0, INFINITY, -INFINITY, -3, 128};
  int64_t n[2] = {N, 1};
  group_begin("%s: the sign of NaN", way->name);
  if (load_spec(way->ctx, "signs", sign_spec)) bail("%s", quern_last_error());
  for (int d = REF_F16; d <= REF_F64; d++) {
    const int size = ref_dtype_size((ref_dtype)d);
    const uint64_t sign = sign_bit((ref_dtype)d);
    uint64_t a[N], b = ref_from_double((ref_dtype)d, 2);
    for (int i = 0; i < N; i++) {
      const uint64_t nans[] = {ref_nan((ref_dtype)d), infinity_of((ref_dtype)d) + 1};
      a[i] = i % 3 ? nans[i % 2] | (i % 5 < 2 ? sign : 0) : ref_from_double((ref_dtype)d, numbers[i / 3 % 8]);
      ref_put((ref_dtype)d, memory[0] + i * size, a[i]);
      ref_put((ref_dtype)d, memory[1] + i * size, b);
    }
    for (size_t k = 0; k < sizeof sign_cases / sizeof *sign_cases; k++) {
      const sign_case *c = &sign_cases[k];
      char text[200];
      snprintf(text, sizeof text, "result = %s; other = -b;", c->text);
      quern_op *op = op_from(way->ctx, text);
      DLTensor t[4];
      for (int j = 0; j < 4; j++)
        t[j] = (DLTensor){.data = memory[j], .device = {kDLCPU, 0}, .ndim = 2, .dtype = ref_dtype_dl(j == 2 ? REF_BOOL : (ref_dtype)d), .shape = n};
      const quern_op_info *info = quern_op_describe(op);
      DLTensor *in[2], *out[2] = {&t[2], &t[3]};
      for (int j = 0; j < info->n_in; j++) in[j] = &t[strcmp(info->args[j].name, "a") != 0];
      if (quern_op_call(op, info->n_in, in, 2, out, NULL)) group_fail("%s %s: %s", c->text, ref_dtype_name((ref_dtype)d), quern_last_error());
      for (int i = 0; i < N; i++) {
        const int is_nan = ref_is_nan((ref_dtype)d, a[i]), own = (a[i] & sign) != 0;
        const double x = is_nan ? 0 : (double)ref_value((ref_dtype)d, a[i]);
        const int wanted = is_nan ? c->of_nan == 'r' && own : c->of_number == 'a' ? own : c->of_number == 'n' ? !own : c->of_number == 's' ? x + 2 < 0 : 0;
        group_count(1);
        if (memory[2][i] == wanted) continue;
        group_fail("%s %s of %016llx: %d", c->text, ref_dtype_name((ref_dtype)d), (unsigned long long)a[i], memory[2][i]);
        break;
      }
      quern_op_release(op);
    }
  }
  group_end();
}

static void tell_counts(void) {
  for (int s = 0; s < n_standards; s++) {
    int n_bullets = 0, n_run = 0;
    char waiting[2000] = "";
    for (int i = 0; i < n_functions; i++) {
      const function *f = &functions[i];
      if (f->standard != s) continue;
      n_bullets += f->n_bullets - f->n_left_out;
      if (f->is_here) n_run += f->n_bullets - f->n_left_out;
      else if (f->n_rows) append(waiting, sizeof waiting, f->name);
    }
    diag("%s: %d of %d bullets", standards[s], n_run, n_bullets);
    if (*waiting) diag("  waiting for ops that this build does not have:%s", waiting);
  }
}

int main(void) {
  way ways[3] = {{"built", NULL, NULL}, {"interpreted", "interpreter", NULL}};
  int n_ways = 2;
  setenv("QUERN_CACHE_DIR", "none", 1);
  unsetenv("QUERN_JIT");
  read_file();
  test_file();
  find_compiler();
  ways[1].ctx = ctx_of(QUERN_JIT_OFF);
  if (compiler && !SANITIZED) {
    ways[n_ways++] = (way){"compiled", compiler, ctx_of(QUERN_JIT_SYNC)};
  } else {
    skip(1, "nothing is compiled: %s", compiler ? "under a sanitizer it takes too long" : "no compiler");
  }
  test_ops(n_ways, ways);
  for (int w = 1; w < n_ways; w++) test_signs(&ways[w]);
  for (int w = 1; w < n_ways; w++) quern_ctx_release(ways[w].ctx);
  tell_counts();
  return done_testing();
}
