/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t045-primitives.c: the table of primitives. Which there are is stated here once more; each is run at every level
 * this machine has, in all its variants, on special and random values, unaligned, in place, at several sizes, and
 * compared bit for bit with plain C. Then the names an expression may use, and the texts that kernels made at run time
 * include. Shares no code with templates/. */
#include "runtime/lang/primitives.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/base/isa.h"
#include "runtime/toolchain/kernel_headers.h"
#include "build_id.h"
#include "primitive_reference.h"
#include "ref.h"
#include "tap.h"

typedef primitive_wide wide;

/* ---- Types ------------------------------------------------------------------------------------------------------ */

typedef struct type {
  const char *name;
  int bits, kind;
} type;

/* The types that are computed in; the others, and the bits of moves, have no row. */
static const type types[QN_DTYPE_COUNT] = {
    [QN_BOOL] = {"bool", 8, BOOL},    [QN_I8] = {"i8", 8, SIGNED},      [QN_I16] = {"i16", 16, SIGNED},
    [QN_I32] = {"i32", 32, SIGNED},   [QN_I64] = {"i64", 64, SIGNED},   [QN_U8] = {"u8", 8, UNSIGNED},
    [QN_U16] = {"u16", 16, UNSIGNED}, [QN_U32] = {"u32", 32, UNSIGNED}, [QN_U64] = {"u64", 64, UNSIGNED},
    [QN_F32] = {"f32", 32, FLOAT},    [QN_F64] = {"f64", 64, FLOAT},
};

static uint64_t load(const void *at, int bits) {
  uint64_t x = 0;
  memcpy(&x, at, (size_t)bits / 8);
  return x;
}

static void store(void *at, int bits, uint64_t x) { memcpy(at, &x, (size_t)bits / 8); }

static uint64_t one_nan(int bits, uint64_t x) {
  if (!is_nan(bits, x)) return x;
  return bits == 64 ? 0x7ff8000000000000ull : 0x7fc00000ull;
}

/* The value of an integer or bool. */
static wide value_of(const type *t, uint64_t x) {
  if (t->kind == BOOL) return x != 0;
  return primitive_value(t->bits, t->kind == SIGNED, x);
}

/* ---- Which primitives there are --------------------------------------------------------------------------------- */

static int starts(const char *text, const char *head) { return strncmp(text, head, strlen(head)) == 0; }

static int is_there(const rule *r, int result, int arg) {
  const type *t = &types[result], *a = &types[arg];
  if (!t->bits || !a->bits || !(a->kind & r->kinds)) return 0;
  if (r->result == 's') return result == arg;
  if (r->result == 'b') return result == QN_BOOL;
  if (!strcmp(r->op, "cast")) return result != arg;
  if (starts(r->op, "round_")) return result == QN_F32;
  if (t->bits != a->bits) return 0;
  if (!strcmp(r->op, "from_bits")) return t->kind == FLOAT;
  if (!strcmp(r->op, "lookup")) return t->kind != BOOL;
  return (t->kind & INTEGER) != 0; /* bits, raw */
}

/* The types of its arguments. */
static void arguments_of(const rule *r, int result, int arg, int args[3]) {
  for (int k = 0; k < 3; k++) args[k] = arg;
  if (!strcmp(r->op, "select")) args[0] = QN_BOOL;
  if (!strcmp(r->op, "lookup")) args[0] = result;
}

/* ---- What they give --------------------------------------------------------------------------------------------- */

static uint64_t cast(const type *from, const type *to, uint64_t x) {
  wide low = to->kind == SIGNED ? -((wide)1 << (to->bits - 1)) : 0;
  wide high = ((wide)1 << (to->kind == SIGNED ? to->bits - 1 : to->bits)) - 1;
  ref_dtype target = to->bits == 64 ? REF_F64 : REF_F32;
  if (from->kind != FLOAT) {
    wide v = value_of(from, x);
    if (to->kind == BOOL) return v != 0;
    return to->kind == FLOAT ? ref_cast(target, (ref_real)v, REF_KIND_INTEGER) : (uint64_t)v & mask_of(to->bits);
  }
  ref_real v = ref_value(from->bits == 64 ? REF_F64 : REF_F32, x);
  if (to->kind == BOOL) return v != 0;
  if (to->kind == FLOAT) return ref_cast(target, v, REF_KIND_FLOAT);
  if (v != v) return 0;
  if (v <= (ref_real)low) return (uint64_t)low & mask_of(to->bits);
  if (v >= (ref_real)high) return (uint64_t)high & mask_of(to->bits);
  return (uint64_t)(wide)v & mask_of(to->bits);
}

/* To f16 or bf16 and, exactly, on to f32. */
static uint64_t rounded(const char *op, const type *from, uint64_t x) {
  ref_dtype narrow = 0; /* "round_f16" */
  while (strcmp(ref_dtype_name(narrow), op + strlen("round_")) != 0) narrow++;
  ref_real v = from->kind != FLOAT ? (ref_real)value_of(from, x) : ref_value(from->bits == 64 ? REF_F64 : REF_F32, x);
  uint64_t bits = ref_cast(narrow, v, from->kind == FLOAT ? REF_KIND_FLOAT : REF_KIND_INTEGER);
  return ref_cast(REF_F32, ref_value(narrow, bits), REF_KIND_FLOAT);
}

static int compare(const char *op, const type *t, uint64_t a, uint64_t b) {
  int less, equal;
  if (t->kind == FLOAT) {
    double x = t->bits == 64 ? f64_of(a) : (double)f32_of(a), y = t->bits == 64 ? f64_of(b) : (double)f32_of(b);
    if (x != x || y != y) return !strcmp(op, "ne");
    less = x < y, equal = x == y;
  } else {
    less = value_of(t, a) < value_of(t, b), equal = value_of(t, a) == value_of(t, b);
  }
  if (!strcmp(op, "lt")) return less;
  if (!strcmp(op, "le")) return less || equal;
  if (!strcmp(op, "gt")) return !less && !equal;
  if (!strcmp(op, "ge")) return !less;
  return (!strcmp(op, "eq")) == equal;
}

/* The bits of the result. x: the arguments' bits; of lookup: the item and the index */
static uint64_t reference(const rule *r, int result, int arg, const uint64_t *x) {
  const type *t = &types[result], *a = &types[arg];
  const char *op = r->op;
  uint64_t bits;
  if (!strcmp(op, "raw")) return x[0];
  if (!strcmp(op, "bits")) return one_nan(a->bits, x[0]);
  if (!strcmp(op, "signbit")) return x[0] >> (a->bits - 1); /* of operands, of a NaN's too */
  if (!strcmp(op, "copysign")) return one_nan(a->bits, (x[0] & mask_of(a->bits) >> 1) | (x[1] & ~(mask_of(a->bits) >> 1) & mask_of(a->bits)));
  if (!strcmp(op, "cast")) return cast(a, t, x[0]);
  if (starts(op, "round_")) return rounded(op, a, x[0]);
  if (r->result == 'b') return (uint64_t)compare(op, a, x[0], x[1]);
  if (!strcmp(op, "from_bits") || !strcmp(op, "canon") || !strcmp(op, "lookup")) bits = x[0];
  else if (!strcmp(op, "select")) bits = x[0] ? x[1] : x[2];
  else if (a->kind == FLOAT) bits = primitive_of_floats(op, a->bits, x);
  else bits = primitive_of_integers(op, a->bits, a->kind == SIGNED, (uint64_t)value_of(a, x[0]), (uint64_t)value_of(a, x[1]));
  if (t->kind == BOOL) return bits != 0;
  return t->kind == FLOAT ? one_nan(t->bits, bits) : bits;
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

static uint64_t special_value(rng *r, const type *t) {
  uint64_t sign = 1ull << (t->bits - 1), infinity = t->kind == FLOAT ? infinity_of(t->bits) : 0;
  if (t->kind == BOOL) {
    static const uint8_t bytes[] = {0, 1, 2, 0x80, 0xff, 0};
    return bytes[rng_below(r, 6)];
  }
  if (t->kind == FLOAT) {
    uint64_t one = t->bits == 64 ? 0x3ffull << 52 : 127ull << 23, unit = t->bits == 64 ? 1ull << 52 : 1ull << 23;
    const uint64_t bits[] = {0, 1, unit, unit - 1, unit / 2, one, one + unit / 2, one - unit, one + 3 * unit,
                             infinity - 1, infinity, infinity + 1, infinity + unit / 2, infinity + unit / 2 + 77,
                             mask_of(t->bits) >> 1};
    return bits[rng_below(r, sizeof bits / sizeof bits[0])] | (rng_below(r, 2) ? sign : 0);
  }
  uint64_t near = (1ull << rng_below(r, (uint64_t)t->bits)) + rng_below(r, 3) - 1;
  uint64_t width = (uint64_t)t->bits;
  const uint64_t bits[] = {0, 1, 2, ~0ull, sign, sign - 1, width, width - 1, near, 0 - near, near, near};
  return bits[rng_below(r, sizeof bits / sizeof bits[0])] & mask_of(t->bits);
}

/* Special, any bits at all, or a number of ordinary size; for a float also near the ends of integer types and at ties
 * of narrower formats. */
static uint64_t random_value(rng *r, const type *t) {
  uint64_t x = rng_u64(r), how = rng_below(r, 8);
  if (how < 3 || t->kind == BOOL) return special_value(r, t);
  if (t->kind == FLOAT && how < 7) {
    int fraction = t->bits == 64 ? 52 : 23;
    int exponent = how == 3 ? (int)rng_range(r, -160, 70) : (int)rng_range(r, -4, 12);
    int kept = how == 4 ? (int)rng_below(r, 14) : fraction;
    double d = ldexp(1.0 + ldexp((double)(x >> 12 >> (52 - kept)), -kept), exponent);
    return (t->bits == 64 ? of_f64(d) : of_f32((float)d)) ^ (x & 1 ? 1ull << (t->bits - 1) : 0);
  }
  if (t->kind != FLOAT && how < 6) x >>= rng_below(r, 64);
  if (t->kind != FLOAT && how == 4) x = 0 - x;
  return x & mask_of(t->bits);
}

/* ---- Running a kernel ------------------------------------------------------------------------------------------- */

enum { MOST = 1000, GUARD = 64, ROOM = MOST * 8 + 2 * GUARD, TABLE = 1024 };

typedef struct operands {
  int n_args, args[3], result;
  char *in[3];          /* each with some bytes before it, so that it need not be aligned */
  uint64_t wanted[MOST];
  int64_t n_items;      /* lookup */
} operands;

static const int64_t sizes[] = {1, 2, 7, 63, 64, 65, MOST};

/* Fills the arguments of a variant; the broadcast ones with one value. Computes what is wanted. */
static void fill(rng *r, const rule *rule, int arg, const qn_variant *variant, operands *o) {
  int is_lookup = !strcmp(rule->op, "lookup");
  o->n_items = 1ll << rng_below(r, 11);
  for (int k = 0; k < o->n_args; k++) {
    const type *t = &types[o->args[k]];
    int64_t n = is_lookup && k == 0 ? TABLE : variant->classes[k] == QN_CLASS_BROADCAST ? 1 : MOST;
    for (int64_t i = 0; i < n; i++) {
      uint64_t x = random_value(r, t);
      /* sometimes equal to the argument before */
      int is_alike = k > 0 && o->args[k] == o->args[k - 1] && variant->classes[k - 1] == QN_CLASS_CONTIGUOUS;
      if (is_alike && n > 1 && rng_below(r, 8) == 0)
        x = load(o->in[k - 1] + i * (t->bits / 8), t->bits);
      store(o->in[k] + i * (t->bits / 8), t->bits, x);
    }
  }
  for (int64_t i = 0; i < MOST; i++) {
    uint64_t x[3] = {0, 0, 0};
    for (int k = 0; k < o->n_args; k++) {
      const type *t = &types[o->args[k]];
      int64_t at = variant->classes[k] == QN_CLASS_BROADCAST ? 0 : i;
      x[k] = load(o->in[k] + at * (t->bits / 8), t->bits);
    }
    if (is_lookup) {
      int64_t at = (int64_t)value_of(&types[arg], x[1]) & (o->n_items - 1);
      x[0] = load(o->in[0] + at * (types[o->result].bits / 8), types[o->result].bits);
    }
    o->wanted[i] = reference(rule, o->result, arg, x);
  }
}

static void text_of_arguments(const operands *o, const qn_variant *variant, int64_t i, char *text, size_t size) {
  size_t at = 0;
  for (int k = 0; k < o->n_args && at < size; k++) {
    const type *t = &types[o->args[k]];
    int64_t index = variant->classes[k] == QN_CLASS_BROADCAST ? 0 : i;
    unsigned long long x = load(o->in[k] + index * (t->bits / 8), t->bits);
    at += (size_t)snprintf(text + at, size - at, " 0x%llx", x);
  }
}

/* Runs a level of a variant on n elements and compares. in_place: the argument the result is written over, or -1 */
static void run(const rule *rule, const qn_variant *variant, int level, const operands *o, int64_t n, int in_place) {
  static char memory[ROOM], copies[3][ROOM];
  const type *t = &types[o->result];
  int bytes = t->bits / 8;
  char *out = memory + GUARD + (n & 1), *ptr[4];
  int64_t stride[4][2], extent[2] = {n, 1}, last = o->n_items - 1;
  for (int k = 0; k < o->n_args; k++) {
    int size = types[o->args[k]].bits / 8;
    ptr[k] = o->in[k];
    stride[k][0] = variant->classes[k] == QN_CLASS_BROADCAST ? 0 : size;
    stride[k][1] = -77; /* there is one row */
    if (k == in_place) {
      memcpy(copies[k] + 1, o->in[k], (size_t)(n * size));
      memset(copies[k] + 1 + n * size, 0x5a, GUARD);
      ptr[k] = out = copies[k] + 1;
    }
  }
  ptr[o->n_args] = out;
  stride[o->n_args][0] = bytes;
  stride[o->n_args][1] = -77;
  if (in_place < 0) memset(memory, 0x5a, sizeof memory);
  variant->fn[level](ptr, (const int64_t(*)[2])stride, extent, !strcmp(rule->op, "lookup") ? &last : NULL);
  group_count(1);
  for (int64_t i = 0; i < n; i++) {
    uint64_t got = load(out + i * bytes, t->bits);
    if (got != o->wanted[i]) {
      char text[100] = "";
      text_of_arguments(o, variant, i, text, sizeof text);
      group_fail("%s at %s, n %lld%s, element %lld:%s: got 0x%llx, wanted 0x%llx", variant->name,
                 qn_isa_name((qn_isa)level), (long long)n, in_place < 0 ? "" : " in place", (long long)i, text,
                 (unsigned long long)got, (unsigned long long)o->wanted[i]);
      return;
    }
  }
  for (int k = 0; k < GUARD / 2; k++) {
    if (out[n * bytes + k] != 0x5a || (in_place < 0 && out[-1 - k] != 0x5a)) {
      group_fail("%s at %s, n %lld: wrote outside", variant->name, qn_isa_name((qn_isa)level), (long long)n);
      return;
    }
  }
}

/* The variant's own description fits the primitive. */
static int is_described(const rule *r, const qn_primitive *p, int k, const operands *o) {
  const qn_variant *v = &p->variants[k];
  int n_broadcast = 0, is_lookup = !strcmp(r->op, "lookup");
  for (int j = 0; j <= p->n_args; j++) {
    int t = j < p->n_args ? o->args[j] : o->result;
    if (qn_dtype_infos[v->dtypes[j]].bits != types[t].bits || v->classes[j] == QN_CLASS_STRIDED) return 0;
    n_broadcast += v->classes[j] == QN_CLASS_BROADCAST;
  }
  if ((v->rank != 1 && v->rank != 2) || v->classes[p->n_args] != QN_CLASS_CONTIGUOUS) return 0;
  if (is_lookup) return n_broadcast == 1 && v->classes[0] == QN_CLASS_BROADCAST;
  return k == 0 ? n_broadcast == 0 : n_broadcast > 0 && n_broadcast < p->n_args;
}

static void check_primitive(const rule *rule, int result, int arg) {
  static char memory[3][ROOM];
  static operands o;
  const qn_primitive *p = qn_primitive_find(rule->op, (uint8_t)result, (uint8_t)arg);
  if (!p) return; /* told by check_table */
  int n_wanted = !strcmp(rule->op, "lookup") ? 1 : (1 << rule->n_args) - 1;
  o.n_args = p->n_args;
  o.result = result;
  arguments_of(rule, result, arg, o.args);
  group_count(1);
  if (p->n_args != rule->n_args || p->n_variants != n_wanted) {
    group_fail("%s of %s: %d arguments, %d variants", rule->op, types[arg].name, p->n_args, p->n_variants);
    return;
  }
  for (int v = 0; v < p->n_variants; v++) {
    const qn_variant *variant = &p->variants[v];
    if (!is_described(rule, p, v, &o)) {
      group_fail("%s: variant %d of %s does not fit", variant->name, v, rule->op);
      continue;
    }
    for (int round = 0; round < 10; round++) {
      rng r;
      rng_seed(&r, (uint64_t)(((result * 64 + arg) * 16 + v) * 16 + round) * N_RULES + (uint64_t)(rule - rules));
      for (int k = 0; k < o.n_args; k++) o.in[k] = memory[k] + GUARD + (round * (k + 1) & 3);
      fill(&r, rule, arg, variant, &o);
      int n_levels = 0;
      for (int level = 0; level <= (int)qn_isa_detect(); level++) {
        if (!variant->fn[level]) continue;
        n_levels++;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) run(rule, variant, level, &o, sizes[s], -1);
        for (int k = 0; k < o.n_args; k++) {
          if (variant->classes[k] == QN_CLASS_CONTIGUOUS && types[o.args[k]].bits == types[result].bits)
            run(rule, variant, level, &o, 65, k);
        }
      }
      if (n_levels == 0) group_fail("%s: no level that this machine runs", variant->name);
    }
  }
}

/* ---- The table -------------------------------------------------------------------------------------------------- */

static int order_of_rows(const qn_primitive *a, const qn_primitive *b) {
  int side = strcmp(a->op, b->op);
  if (side == 0) side = a->type - b->type;
  return side ? side : a->arg_type - b->arg_type;
}

static int order_of_places(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)*(const qn_primitive *const *)a, y = (uintptr_t)*(const qn_primitive *const *)b;
  return (x > y) - (x < y);
}

static void check_table(void) {
  static const qn_primitive *found[N_RULES * QN_DTYPE_COUNT * QN_DTYPE_COUNT];
  int n = 0, n_out_of_order = 0;
  group_begin("exactly the primitives that there are to be are found");
  for (int k = 0; k < N_RULES; k++)
    for (int result = 0; result < QN_DTYPE_COUNT; result++)
      for (int arg = 0; arg < QN_DTYPE_COUNT; arg++) {
        const qn_primitive *p = qn_primitive_find(rules[k].op, (uint8_t)result, (uint8_t)arg);
        group_count(1);
        if (!p != !is_there(&rules[k], result, arg))
          group_fail("%s, result %s, argument %s: %s", rules[k].op, qn_dtype_infos[result].name,
                     qn_dtype_infos[arg].name, p ? "found" : "not found");
        else if (p && (strcmp(p->op, rules[k].op) || p->type != result || p->arg_type != arg))
          group_fail("%s, result %s: another row was found", rules[k].op, qn_dtype_infos[result].name);
        if (p) found[n++] = p;
      }
  group_end();
  /* The rows found are the whole table, in its order. */
  qsort(found, (size_t)n, sizeof found[0], order_of_places);
  for (int k = 1; k < n; k++) {
    n_out_of_order += found[k] != found[k - 1] + 1 || order_of_rows(found[k - 1], found[k]) >= 0;
  }
  ok(n > 300 && n_out_of_order == 0, "the %d rows stand in order, without a gap", n);

  static const char *const none[] = {"",      "ad",    "addd", "rare", "round", "shl_constant",
                                     "input", "const", "xor ", "zz",   "Add"};
  int n_wrong = 0;
  for (size_t k = 0; k < sizeof none / sizeof none[0]; k++)
    for (int t = 0; t < 256; t++) n_wrong += qn_primitive_find(none[k], (uint8_t)t, (uint8_t)t) != NULL;
  for (int t = QN_DTYPE_COUNT; t < 256; t++) n_wrong += qn_primitive_find("add", (uint8_t)t, (uint8_t)t) != NULL;
  is_int(n_wrong, 0, "nothing is found by another name or type");
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

/* A function has a primitive for each type of its kind. */
static int resolves(const qn_function *f) {
  for (int t = 0; t < QN_DTYPE_COUNT; t++) {
    const qn_primitive *p = NULL;
    int is_float = types[t].kind == FLOAT, is_number = (types[t].kind & NUMBER) != 0;
    if (f->kind != QN_FUNCTION_AS) {
      if (!is_number || (f->kind == QN_FUNCTION_INTEGER ? is_float : f->kind != QN_FUNCTION_NUMBER && !is_float)) continue;
      p = qn_primitive_find(f->name, f->type == QN_DTYPE_NONE ? (uint8_t)t : f->type, (uint8_t)t);
    } else {
      if (!is_number || types[t].bits != types[f->type].bits || t == f->type) continue;
      if (is_float && types[f->type].kind == FLOAT) continue;
      const char *op = is_float ? "bits" : types[f->type].kind == FLOAT ? "from_bits" : "cast";
      p = qn_primitive_find(op, f->type, (uint8_t)t);
    }
    if (!p || p->n_args != f->n_args) return 0;
  }
  return 1;
}

static int order_of_names(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static void check_names(void) {
  const char *functions[N_RULES + 6] = {"as_f32", "as_f64", "as_i32", "as_i64", "as_u32", "as_u64"};
  int n = 6;
  for (int k = 0; k < N_RULES; k++)
    if (rules[k].is_called) functions[n++] = rules[k].op;
  qsort(functions, (size_t)n, sizeof functions[0], order_of_names);
  group_begin("every function that an expression may call has its primitives");
  if (qn_n_functions != n) group_fail("%d functions, wanted %d", qn_n_functions, n);
  for (int k = 0; k < n && k < qn_n_functions; k++) {
    const qn_function *f = &qn_functions[k];
    group_count(1);
    int is_typed = f->kind != QN_FUNCTION_AS || !strcmp(types[f->type].name, f->name + 3);
    if (strcmp(f->name, functions[k]) || !is_typed || !resolves(f))
      group_fail("%s, wanted %s", f->name, functions[k]);
  }
  group_end();
  static const struct { const char *name; double value; } constants[] = {
      {"E", 2.718281828459045235360287471352662},       {"INFINITY", HUGE_VAL},
      {"LN10", 2.302585092994045684017991454684364},    {"LN2", 0.693147180559945309417232121458177},
      {"LOG10E", 0.434294481903251827651128918916605},  {"LOG2E", 1.442695040888963407359924681001892},
      {"NAN", 0},                                       {"PI", 3.141592653589793238462643383279503},
      {"SQRT1_2", 0.707106781186547524400844362104849}, {"SQRT2", 1.414213562373095048801688724209698},
  };
  n = sizeof constants / sizeof constants[0];
  group_begin("the constants have their values");
  if (qn_n_named_constants != n) group_fail("%d constants, wanted %d", qn_n_named_constants, n);
  for (int k = 0; k < n && k < qn_n_named_constants; k++) {
    const qn_named_constant *c = &qn_named_constants[k];
    uint64_t wanted = !strcmp(constants[k].name, "NAN") ? 0x7ff8000000000000ull : of_f64(constants[k].value);
    group_count(1);
    if (strcmp(c->name, constants[k].name) || of_f64(c->value) != wanted)
      group_fail("%s is %a, wanted %s", c->name, c->value, constants[k].name);
  }
  group_end();
}

/* ---- What is compiled at run time ------------------------------------------------------------------------------- */

static void check_headers(void) {
  is_int(strspn(QN_BUILD_ID, "0123456789abcdef"), 32, "a build id of 32 hex digits");
  is_int(strlen(QN_BUILD_ID), 32, "and nothing else");
  const char *root = getenv("QUERN_SOURCE_DIR");
  is_int(qn_n_kernel_headers, 3, "three headers for kernels made at run time");
  for (int k = 0; k < qn_n_kernel_headers; k++) {
    char path[4000], *text = NULL;
    size_t size = strlen(qn_kernel_headers[k].text);
    snprintf(path, sizeof path, "%s/templates/c/%s", root ? root : ".", qn_kernel_headers[k].name);
    FILE *file = fopen(path, "rb");
    if (!file) {
      skip(1, "%s is not there", path);
      continue;
    }
    static const char licence[] = "/* SPDX-License-Identifier: Apache-2.0 */\n";
    char line[sizeof licence] = "";
    text = malloc(size + 2);
    ok(text && fread(line, 1, sizeof line - 1, file) == sizeof line - 1 && !strcmp(line, licence) &&
           fread(text, 1, size + 2, file) == size && !memcmp(text, qn_kernel_headers[k].text, size),
       "%s is the template's text but for its licence line", qn_kernel_headers[k].name);
    free(text);
    fclose(file);
  }
}

int main(void) {
  check_table();
  for (int k = 0; k < N_RULES; k++) {
    group_begin("%s gives what plain C gives", rules[k].op);
    for (int result = 0; result < QN_DTYPE_COUNT; result++)
      for (int arg = 0; arg < QN_DTYPE_COUNT; arg++)
        if (is_there(&rules[k], result, arg)) check_primitive(&rules[k], result, arg);
    group_end();
  }
  check_names();
  check_headers();
  return done_testing();
}
