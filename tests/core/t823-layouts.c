/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t823-layouts: the layout of results (docs/layouts.md): 10,000 random layouts of one to three operands against the rule written
 * plainly, for ops, expressions, reductions and scans; what quern_op_call_alloc asks for and gives; structs of older versions;
 * registered ops. */
#include "quern/dlpack_exchange.h"
#include "tensors.h"

static quern_op *op_of(quern_ctx *ctx, const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) bail("%s", quern_last_error());
  return op;
}

static quern_op *compiled(const char *text) {
  quern_op *op = NULL;
  if (quern_op_compile(NULL, text, &op)) bail("%s", quern_last_error());
  return op;
}

/* ---- The rule, plainly ---- */

typedef struct whole {
  int ndim;
  int64_t shape[QUERN_MAX_NDIM];
} whole;

/* -1: dimension a of the result is inside b; 1: outside; 0: the operands do not tell. */
static int side_of(const whole *w, int n, const operand *o, int a, int b) {
  for (int k = 0; k < n; k++) {
    int is_full = 1, lacks = w->ndim - o[k].t.ndim;
    for (int d = 0; d < w->ndim; d++) is_full &= w->shape[d] == (d < lacks ? 1 : o[k].shape[d - lacks]);
    if (!is_full || w->shape[a] == 1 || w->shape[b] == 1) continue;
    int64_t x = llabs(o[k].strides[a - lacks]), y = llabs(o[k].strides[b - lacks]);
    if (x && y && x != y) return x < y ? -1 : 1;
  }
  return 0;
}

/* The dimensions, innermost first. The place of a new one is before the innermost that it is inside of, where it is outside of none from
 * that one on; if there is no such place, it is the outermost. */
static void order_plainly(const whole *w, int n, const operand *o, int *order) {
  int is_empty = 0, m = 0;
  for (int d = 0; d < w->ndim; d++) is_empty |= w->shape[d] == 0;
  for (int d = w->ndim - 1; d >= 0; d--, m++) {
    int place = m;
    for (int p = 0; p < m && place == m && !is_empty; p++) {
      int kept_out = 0;
      for (int q = p; q < m; q++) kept_out |= side_of(w, n, o, d, order[q]) > 0;
      if (!kept_out && side_of(w, n, o, d, order[p]) < 0) place = p;
    }
    for (int q = m; q > place; q--) order[q] = order[q - 1];
    order[place] = d;
  }
}

/* ---- Random operands ---- */

static void random_operand(rng *r, const whole *w, ref_dtype dtype, int is_full, operand *o) {
  int lacks = is_full ? 0 : (int)rng_below(r, (uint64_t)w->ndim + 1), ndim = w->ndim - lacks, order[QUERN_MAX_NDIM];
  int64_t shape[QUERN_MAX_NDIM] = {0}, strides[QUERN_MAX_NDIM] = {0}, step = 1;
  for (int d = 0; d < ndim; d++) shape[d] = !is_full && rng_below(r, 3) == 0 ? 1 : w->shape[lacks + d];
  for (int d = 0; d < ndim; d++) order[d] = ndim - 1 - d;
  const int how = (int)rng_below(r, 6); /* 0: row-major */
  for (int d = 0; d < ndim && how > 0; d++) {
    int e = (int)rng_below(r, (uint64_t)ndim), was = order[d];
    order[d] = order[e], order[e] = was;
  }
  for (int i = 0; i < ndim; i++) {
    int d = order[i];
    if (how == 4 && rng_below(r, 3) == 0) step *= 2; /* gaps */
    strides[d] = shape[d] == 1 && how > 1 ? rng_range(r, -9, 9) : step;
    if (how == 3 && rng_below(r, 3) == 0) strides[d] = -step;
    if (how == 5 && rng_below(r, 3) == 0) strides[d] = rng_range(r, 0, 3); /* also ties and 0 */
    step *= shape[d] > 1 ? shape[d] : 1;
  }
  operand_describe(o, dtype, ndim, shape, strides);
  if (how == 0 && rng_below(r, 2)) o->t.strides = NULL;
}

static int random_case(rng *r, int n, ref_dtype dtype, whole *w, operand *o) {
  whole inputs;
  w->ndim = inputs.ndim = (int)rng_below(r, 6);
  for (int d = 0; d < w->ndim; d++) inputs.shape[d] = rng_below(r, 40) == 0 ? 0 : rng_range(r, 1, 4);
  for (int d = 0; d < w->ndim; d++) w->shape[d] = 1;
  for (int k = 0; k < n; k++) {
    random_operand(r, &inputs, dtype, rng_below(r, 4) > 0, &o[k]);
    for (int d = 0; d < o[k].t.ndim; d++)
      if (o[k].shape[d] != 1) w->shape[w->ndim - o[k].t.ndim + d] = o[k].shape[d];
  }
  int ndim = 0;
  for (int k = 0; k < n; k++) ndim = o[k].t.ndim > ndim ? o[k].t.ndim : ndim;
  for (int d = 0; d < ndim; d++) w->shape[d] = w->shape[w->ndim - ndim + d];
  w->ndim = ndim;
  return ndim;
}

/* The strides of `shape` in an order of the dimensions. */
static int is_laid_out(const quern_shape *got, const int *order, int n) {
  int64_t step = 1;
  int good = got->ndim == n;
  for (int i = 0; i < n && good; i++) {
    good &= got->strides[order[i]] == step;
    step *= got->shape[order[i]] > 1 ? got->shape[order[i]] : 1;
  }
  return good;
}

static void complain(int i, const char *what, const quern_shape *got, const operand *o, int n) {
  char text[900];
  int at = 0;
  for (int k = 0; k <= n; k++) {
    const int ndim = k < n ? o[k].t.ndim : got->ndim;
    for (int d = 0; d < ndim; d++)
      at += snprintf(text + at, sizeof text - (size_t)at, " %d:%d", (int)(k < n ? o[k].shape : got->shape)[d],
                     (int)(k < n ? o[k].strides : got->strides)[d]);
    at += snprintf(text + at, sizeof text - (size_t)at, k < n ? " |" : "");
  }
  group_fail("case %d: %s:%s", i, what, text);
}

/* ---- Inferred ---- */

static void test_elementwise(void) {
  static const char *const texts[] = {"a * 2", "a - b", "a * b + c"};
  quern_op *ops[3][2] = {{op_of(NULL, "negative"), NULL}, {op_of(NULL, "add"), NULL}, {op_of(NULL, "where"), NULL}};
  quern_op *astype = op_of(NULL, "astype"), *less = op_of(NULL, "less"), *frexp = op_of(NULL, "frexp");
  rng r;
  rng_seed(&r, 1);
  for (int k = 0; k < 3; k++) ops[k][1] = compiled(texts[k]);
  group_begin("elementwise: the rule, on 10,000 layouts");
  for (int i = 0; i < 10000; i++) {
    operand o[3];
    whole w;
    const int n = (int)rng_below(&r, 3) + 1;
    random_case(&r, n, REF_F32, &w, o);
    quern_op *op = ops[n - 1][i % 2];
    if (n == 1 && i % 4 == 0) op = astype;
    if (n == 2 && i % 4 == 0) op = less;
    if (n == 1 && i % 10 == 6) op = frexp;
    if (n == 3 && op == ops[2][0]) o[0].t.dtype = ref_dtype_dl(REF_BOOL);
    DLTensor *in[3] = {&o[0].t, &o[1].t, &o[2].t};
    quern_shape shapes[2] = {{.size = sizeof *shapes, .dtype = ref_dtype_dl(REF_F64)}, {.size = sizeof *shapes}};
    const int n_out = op == frexp ? 2 : 1;
    quern_status status = quern_op_infer(op, n, in, n_out, shapes);
    int order[QUERN_MAX_NDIM];
    group_count(1);
    if (status) {
      group_fail("case %d: %s", i, quern_last_error());
      continue;
    }
    order_plainly(&w, n, o, order);
    for (int k = 0; k < n_out; k++)
      if (!is_laid_out(&shapes[k], order, w.ndim)) complain(i, quern_op_describe(op)->name, &shapes[k], o, n);
    /* What one dense operand has, its result has. */
    int64_t step = 1, is_dense = n == 1;
    for (int d = 0; d < w.ndim; d++) is_dense &= w.shape[d] > 0;
    for (int m = 0; m < w.ndim && is_dense; m++) {
      int found = -1;
      for (int d = 0; d < w.ndim; d++)
        if (w.shape[d] > 1 && o[0].strides[d] == step) found = d;
      for (int d = 0; found < 0 && d < w.ndim; d++) is_dense &= w.shape[d] == 1 || llabs(o[0].strides[d]) < step;
      if (found >= 0) step *= w.shape[found];
    }
    for (int d = 0; d < w.ndim; d++) is_dense &= w.shape[d] == 1 || o[0].strides[d] > 0;
    int64_t n_elements = 1;
    for (int d = 0; d < w.ndim; d++) n_elements *= w.shape[d];
    for (int d = 0; d < w.ndim && is_dense && step == n_elements; d++)
      if (w.shape[d] > 1 && shapes[0].strides[d] != o[0].strides[d]) complain(i, "not the operand's strides", &shapes[0], o, n);
  }
  group_end();
  for (int k = 0; k < 3; k++) {
    quern_op_release(ops[k][0]);
    quern_op_release(ops[k][1]);
  }
  quern_op_release(astype);
  quern_op_release(less);
  quern_op_release(frexp);
}

/* Ops with axes. The order is that of the whole shape, without what is reduced. */
static void test_rows(void) {
  static const char *const names[] = {"sum", "any", "softmax", "cumulative_sum"};
  quern_op *ops[4], *expression = compiled("x / sum(x, axis=-1)"), *reduced = compiled("sum(x * x, axis=-1)");
  rng r;
  rng_seed(&r, 2);
  for (int k = 0; k < 4; k++) ops[k] = op_of(NULL, names[k]);
  group_begin("reductions, rows and scans: the order of the dimensions that are left");
  for (int i = 0; i < 3000; i++) {
    operand o[1];
    whole w;
    int order[QUERN_MAX_NDIM], left[QUERN_MAX_NDIM], n_left = 0;
    if (random_case(&r, 1, REF_F32, &w, o) == 0) continue;
    int kind = (int)rng_below(&r, 6), keeps = kind > 1 || rng_below(&r, 2);
    uint64_t axes = kind == 3 ? UINT64_C(1) << rng_below(&r, (uint64_t)w.ndim) : 1 + rng_below(&r, (UINT64_C(1) << w.ndim) - 1);
    if (kind > 3) axes = UINT64_C(1) << (w.ndim - 1);
    if (kind == 5) keeps = 0;
    DLTensor *in[1] = {&o[0].t};
    quern_shape shape = {.size = sizeof shape};
    const int with_initial = kind == 3 && rng_below(&r, 2);
    const quern_scalar params[2] = {{QUERN_I64, {.i = (int64_t)axes}}, {QUERN_I64, {.i = kind == 3 ? with_initial : keeps}}};
    const quern_call call = {.size = sizeof call, .params = params, .n_params = kind > 3 ? 0 : kind == 2 ? 1 : 2};
    quern_status status = quern_op_measure(kind == 4 ? expression : kind == 5 ? reduced : ops[kind], 1, in, 1, &shape, &call);
    group_count(1);
    if (status) {
      group_fail("case %d: %s", i, quern_last_error());
      continue;
    }
    order_plainly(&w, 1, o, order);
    for (int m = 0; m < w.ndim; m++) {
      int before = 0;
      for (int d = 0; d < order[m]; d++) before += (int)(axes >> d & 1);
      if (keeps) left[n_left++] = order[m];
      else if (!(axes >> order[m] & 1)) left[n_left++] = order[m] - before;
    }
    if (!is_laid_out(&shape, left, n_left)) complain(i, kind < 4 ? names[kind] : "an expression", &shape, o, 1);
  }
  group_end();
  for (int k = 0; k < 4; k++) quern_op_release(ops[k]);
  quern_op_release(expression);
  quern_op_release(reduced);

  operand x;
  const int64_t shape[3] = {2, 3, 4}, strides[3] = {1, 2, 6};
  operand_make(&x, REF_F32, 3, shape, strides, &r);
  DLTensor *in[1] = {&x.t};
  quern_op *nonzero = op_of(NULL, "nonzero"), *full = op_of(NULL, "full");
  quern_shape found = {.size = sizeof found};
  is_int(quern_op_measure(nonzero, 1, in, 1, &found, NULL), QUERN_OK, "nonzero of a column-major tensor");
  ok(found.strides[0] == found.shape[1] && found.strides[1] == 1, "  is row-major");
  quern_shape wish = {.size = sizeof wish, .dtype = ref_dtype_dl(REF_F32), .ndim = 2, .shape = {5, 7}};
  is_int(quern_op_infer(full, 0, NULL, 1, &wish), QUERN_OK, "full, of the caller's shape");
  ok(wish.strides[0] == 7 && wish.strides[1] == 1, "  is row-major");
  quern_op_release(nonzero);
  quern_op_release(full);
  operand_free(&x);
}

/* Each op of the registry writes strides: dense, in any order. */
static void test_all(void) {
  const int64_t shape[2] = {3, 3}, columns[2] = {1, 3};
  static double data[9];
  int n_kept = 0;
  operand x, b, i, row;
  operand_describe(&x, REF_F32, 2, shape, columns);
  operand_describe(&b, REF_BOOL, 2, shape, columns);
  operand_describe(&i, REF_I32, 2, shape, columns);
  operand_describe(&row, REF_I32, 2, (int64_t[]){1, 3}, columns);
  x.t.data = b.t.data = i.t.data = row.t.data = data;
  group_begin("every op: dense strides");
  for (int32_t at = 0; at < quern_op_count(NULL); at++) {
    quern_op *op = NULL;
    if (quern_op_at(NULL, at, &op)) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    quern_shape shapes[8];
    DLTensor *in[8] = {NULL};
    quern_scalar params[16];
    quern_call call = {.size = sizeof call, .params = params};
    for (int k = 0; k < info->n_params && !call.n_params; k++) {
      params[k] = info->params[k].value;
      if (strcmp(info->params[k].name, "axes")) continue;
      params[k] = (quern_scalar){QUERN_I64, {.i = 1}};
      call.n_params = k + 1;
    }
    quern_status status = QUERN_E_DTYPE;
    for (int how = 0; how < 4 && (status == QUERN_E_DTYPE || status == QUERN_E_SHAPE); how++) { /* what its inputs may be */
      memset(shapes, 0x5a, sizeof shapes);
      for (int k = 0; k < info->n_out; k++) {
        shapes[k].size = sizeof *shapes;
        shapes[k].ndim = 2;
        shapes[k].dtype = ref_dtype_dl(REF_F32);
        memcpy(shapes[k].shape, shape, sizeof shape);
      }
      for (int k = 0; k < info->n_in; k++) {
        const char *dtypes = info->args[k].dtypes;
        in[k] = !strcmp(dtypes, "bool") ? &b.t : how % 3 == 0 && strstr(dtypes, "f32") ? &x.t : how == 2 ? &b.t : &i.t;
        if (how == 3 && k == 1) in[k] = &row.t; /* one index for each row */
      }
      status = quern_op_infer(op, info->n_in, in, info->n_out, shapes);
      if (status == QUERN_E_ARGUMENT || status == QUERN_E_SHAPE) /* one axis */
        status = quern_op_measure(op, info->n_in, in, info->n_out, shapes, &call);
    }
    if (status) {
      group_fail("%s: %s", info->name, quern_last_error());
    } else {
      group_count(1);
      for (int k = 0; k < info->n_out; k++) {
        int64_t step = 1;
        for (int m = 0; m < shapes[k].ndim; m++) {
          int found = -1;
          for (int d = 0; d < shapes[k].ndim; d++)
            if (shapes[k].strides[d] == step && (found < 0 || shapes[k].shape[d] > 1)) found = d;
          if (found >= 0 && shapes[k].shape[found] > 1) step *= shapes[k].shape[found];
        }
        int64_t n = 1;
        for (int d = 0; d < shapes[k].ndim; d++) n *= shapes[k].shape[d] > 1 ? shapes[k].shape[d] : 1;
        if (step != n) complain(at, info->name, &shapes[k], NULL, 0);
        n_kept += shapes[k].ndim == 2 && shapes[k].strides[0] == 1 && shapes[k].strides[1] == 3;
      }
    }
    quern_op_release(op);
  }
  group_end();
  ok(n_kept > quern_op_count(NULL) / 2, "of most the operands' layout: %d", n_kept);
}

/* ---- Allocated ---- */

static struct {
  int n, n_deleted, without_strides;
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];
} asked;

typedef struct made {
  DLManagedTensorVersioned managed;
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  unsigned char data[];
} made;

static void delete_made(DLManagedTensorVersioned *self) {
  asked.n_deleted++;
  free(self);
}

static int make(DLTensor *prototype, DLManagedTensorVersioned **managed, void *ctx,
                void (*set_error)(void *ctx, const char *kind, const char *message)) {
  int64_t n = 1;
  (void)ctx, (void)set_error;
  asked.n++;
  asked.ndim = prototype->ndim;
  for (int d = 0; d < prototype->ndim; d++) n *= asked.shape[d] = prototype->shape[d];
  made *m = calloc(1, sizeof *m + (size_t)n * prototype->dtype.bits / 8 + 1);
  m->managed.version = (DLPackVersion){1, asked.without_strides ? 0 : 3};
  m->managed.deleter = delete_made;
  m->managed.dl_tensor = *prototype;
  m->managed.dl_tensor.data = m->data;
  m->managed.dl_tensor.shape = m->shape;
  m->managed.dl_tensor.strides = asked.without_strides ? NULL : m->strides;
  for (int d = 0; d < prototype->ndim; d++) m->shape[d] = prototype->shape[d];
  compact_strides(prototype->ndim, m->shape, m->strides);
  *managed = &m->managed;
  return 0;
}

/* The offset of element i in row-major order. */
static int64_t offset_of(const DLTensor *t, int64_t i) {
  int64_t at = 0, step = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    int64_t index = i % t->shape[d];
    at += index * (t->strides ? t->strides[d] : step);
    step *= t->shape[d];
    i /= t->shape[d];
  }
  return at;
}

static void test_allocated(void) {
  quern_op *add = op_of(NULL, "add");
  rng r;
  rng_seed(&r, 3);
  group_begin("call_alloc: asked for in the order of memory, given in that of the result");
  for (int i = 0; i < 400; i++) {
    operand o[2], expected;
    whole w;
    random_case(&r, 2, REF_F32, &w, o);
    for (int k = 0; k < 2; k++) {
      operand_allocate(&o[k], 0, GUARD_NONE);
      operand_fill(&o[k], &r);
    }
    operand_make(&expected, REF_F32, w.ndim, w.shape, NULL, &r);
    DLTensor *in[2] = {&o[0].t, &o[1].t}, *wanted[1] = {&expected.t};
    DLManagedTensorVersioned *out = NULL;
    quern_shape inferred = {.size = sizeof inferred}, shapes = {.size = sizeof shapes};
    memset(&asked, 0, sizeof asked);
    asked.without_strides = i % 3 == 2;
    group_count(1);
    if (quern_op_infer(add, 2, in, 1, &inferred) || quern_op_call(add, 2, in, 1, wanted, NULL) ||
        quern_op_call_alloc(add, 2, in, 1, i % 2 ? &shapes : NULL, &out, i % 5 ? make : NULL, NULL)) {
      group_fail("case %d: %s", i, quern_last_error());
    } else {
      DLTensor *got = &out->dl_tensor;
      int64_t n = 1, lower = INT64_MAX;
      int good = got->ndim == w.ndim, is_permuted = 0;
      for (int d = 0; d < w.ndim; d++) n *= w.shape[d];
      for (int d = 0; d < w.ndim && n; d++)
        if (w.shape[d] > 1) is_permuted |= inferred.strides[d] > lower, lower = inferred.strides[d];
      for (int d = 0; d < w.ndim && good; d++) {
        good &= got->shape[d] == w.shape[d];
        if (w.shape[d] > 1 && n && got->strides && !(asked.without_strides && i % 5))
          good &= got->strides[d] == inferred.strides[d];
        if (i % 2) good &= shapes.strides[d] == inferred.strides[d];
      }
      if (i % 5) { /* the request is dense in its own order */
        int64_t m = 1;
        for (int d = 0; d < asked.ndim; d++) m *= asked.shape[d];
        good &= m == n && asked.n == 1 + (asked.without_strides && is_permuted) && asked.n_deleted == asked.n - 1;
      }
      if (!good) complain(i, "other extents, strides or requests", &inferred, o, 2);
      for (int64_t e = 0; e < n && good; e++)
        good = !memcmp((float *)got->data + offset_of(got, e), (float *)expected.t.data + e, 4);
      if (!good) group_fail("case %d: other values", i);
      quern_managed_release(out);
    }
    for (int k = 0; k < 2; k++) operand_free(&o[k]);
    operand_free(&expected);
  }
  group_end();
  quern_op_release(add);
}

/* ---- Older versions ---- */

/* quern_shape and quern_op_def as they were. */
typedef struct old_shape {
  size_t size;
  DLDevice device;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[QUERN_MAX_NDIM];
} old_shape;

static size_t seen_size;
static int writes; /* whether the registered infer writes strides */

/* Two outputs, of the shape of the input. Steps by out[0].size. */
static quern_status infer_two(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  (void)self, (void)n_in;
  seen_size = out[0].size;
  for (int32_t k = 0; k < n_out; k++) {
    quern_shape *shape = (quern_shape *)(void *)((char *)out + (size_t)k * out[0].size);
    if (shape->size != seen_size) return QUERN_E_ARGUMENT;
    shape->device = in[0]->device;
    shape->dtype = in[0]->dtype;
    shape->ndim = in[0]->ndim;
    for (int32_t d = 0; d < shape->ndim; d++) {
      shape->shape[d] = in[0]->shape[d];
      if (shape->size > sizeof(old_shape) && shape->strides[d] != 0) return QUERN_E_ARGUMENT;
      if (writes) shape->strides[d] = k ? 1000 * (d + 1) : -3 * (shape->ndim - d); /* column-major, row-major; by size alone */
    }
  }
  return QUERN_OK;
}

static quern_status call_two(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                             const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_OK;
}

static void test_versions(void) {
  const int64_t shape[2] = {3, 5}, columns[2] = {1, 3};
  operand x;
  operand_describe(&x, REF_F32, 2, shape, columns);
  DLTensor *in[2] = {&x.t, &x.t};
  quern_op *frexp = op_of(NULL, "frexp");
  is_int(sizeof(old_shape), offsetof(quern_shape, strides), "strides stand behind what there was");

  old_shape old[3];
  memset(old, 0x5a, sizeof old);
  old[0].size = old[1].size = sizeof *old;
  is_int(quern_op_infer(frexp, 1, in, 2, (quern_shape *)(void *)old), QUERN_OK, "shapes of the version without strides");
  ok(old[1].size == sizeof *old && old[1].ndim == 2 && old[1].shape[1] == 5 && old[2].size == (size_t)0x5a5a5a5a5a5a5a5a,
     "  each is written, and nothing behind them");
  DLManagedTensorVersioned *out[2] = {NULL, NULL};
  float data[15] = {0};
  x.t.data = data;
  is_int(quern_op_call_alloc(frexp, 1, in, 2, (quern_shape *)(void *)old, out, NULL, NULL), QUERN_OK, "  allocated for");
  ok(out[0]->dl_tensor.strides[0] == 5 && out[1]->dl_tensor.strides[0] == 5, "  row-major");
  for (int k = 0; k < 2; k++) quern_managed_release(out[k]);
  is_int(quern_op_call_alloc(frexp, 1, in, 2, NULL, out, NULL, NULL), QUERN_OK, "  without shapes");
  ok(out[0]->dl_tensor.strides[1] == 3 && out[1]->dl_tensor.strides[1] == 3, "  as the input");
  for (int k = 0; k < 2; k++) quern_managed_release(out[k]);

  struct longer {
    quern_shape shape;
    uint64_t more[4];
  } longer[2];
  memset(longer, 0x5a, sizeof longer);
  longer[0].shape.size = longer[1].shape.size = sizeof *longer;
  is_int(quern_op_infer(frexp, 1, in, 2, &longer[0].shape), QUERN_OK, "shapes of a later version");
  ok(longer[1].shape.strides[1] == 3 && longer[0].more[0] == 0x5a5a5a5a5a5a5a5a && longer[1].shape.size == sizeof *longer,
     "  likewise");
  old[0].size = old[1].size = sizeof *old - sizeof(size_t);
  is_int(quern_op_infer(frexp, 1, in, 2, (quern_shape *)(void *)old), QUERN_E_VERSION, "a size that never was");
  quern_op_release(frexp);

  quern_ctx *ctx = NULL;
  if (quern_ctx_create(NULL, &ctx)) bail("%s", quern_last_error());
  quern_op_def def = {.size = sizeof def, .n_in = 1, .n_out = 2, .call = call_two, .infer = infer_two};
  const size_t old_def = offsetof(quern_op_def, keeps_layout);
  for (int turn = 0; turn < 3; turn++) {
    static const char *const names[3] = {"acme.old", "acme.new", "acme.silent"};
    def.name = names[turn];
    def.size = turn == 0 ? old_def : sizeof def;
    writes = turn == 1;
    is_int(quern_op_register(ctx, &def), QUERN_OK, "%s", def.name);
    quern_op *op = op_of(ctx, def.name);
    for (int k = 0; k < 2; k++) { /* callers of both versions */
      quern_shape now[2] = {{.size = sizeof *now}, {.size = sizeof *now}};
      old[0].size = old[1].size = sizeof *old;
      is_int(quern_op_infer(op, 1, in, 2, k ? now : (quern_shape *)(void *)old), QUERN_OK, "  inferred, %s",
             k ? "with strides" : "without");
      is_int(seen_size, turn == 0 ? sizeof *old : sizeof *now, "  its function sees the struct of its version");
      if (k)
        ok(now[0].strides[0] == 5 && now[0].strides[1] == 1 && now[1].strides[writes] == (writes ? 3 : 5) && now[1].shape[1] == 5,
           "  the order that it writes, else row-major; dense");
      else
        ok(old[1].shape[1] == 5 && old[1].size == sizeof *old && old[2].size == (size_t)0x5a5a5a5a5a5a5a5a, "  in its place");
    }
    quern_op_release(op);
  }

  /* Without infer: what says so, and what implements an op of the library. */
  def = (quern_op_def){.size = sizeof def, .n_in = 1, .n_out = 1, .call = call_two};
  for (int turn = 0; turn < 4; turn++) {
    static const char *const names[4] = {"acme.older", "acme.row_major", "acme.keeps", "negative"};
    def.name = names[turn];
    def.size = turn == 0 ? old_def : sizeof def;
    def.keeps_layout = turn == 2 || turn == 0;
    is_int(quern_op_register(ctx, &def), QUERN_OK, "%s, without infer", def.name);
    quern_op *op = op_of(ctx, def.name);
    quern_shape got = {.size = sizeof got};
    is_int(quern_op_infer(op, 1, in, 1, &got), QUERN_OK, "  inferred");
    is_int(got.strides[turn < 2 ? 0 : 1], turn < 2 ? 5 : 3, "  %s", turn < 2 ? "row-major" : "the input's layout");
    quern_op_release(op);
  }
  quern_ctx_release(ctx);
  operand_free(&x);
}

int main(void) {
  test_elementwise();
  test_rows();
  test_all();
  test_allocated();
  test_versions();
  return done_testing();
}
