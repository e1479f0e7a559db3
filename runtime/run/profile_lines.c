/* SPDX-License-Identifier: Apache-2.0
 *
 * profile_lines.c: see profile_lines.h. */
#include "run/profile_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads/clock.h"
#include "base/jit_environment.h"
#include "base/threads/thread_shield.h"
#include "core/base/kernel_abi.h"
#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"

/* The columns of the two kinds of line. docs/profile.md describes them. */
#define HEADER "quern_profile,event,pid,op,device,tier,threads,ms,dtypes,shapes,kernel,text\n"
#define TOTALS_HEADER "quern_profile,event,pid,op,calls,ms,percent,mean_ms,max_ms,text\n"
#define MOST_LINE 2048
#define MOST_TOTALS 4096 /* ops; the calls of others are counted together */

/* The calls of one op, or of one expression. */
typedef struct total {
  struct total *next;
  atomic_int_fast64_t calls, ns, most_ns;
  char op[sizeof((qn_profile_subject *)0)->op], text[sizeof((qn_profile_subject *)0)->text];
} total;

struct qn_profile {
  struct qn_profile *next;
  int fd;
  _Atomic(total *) totals;
  atomic_int n_totals;
  total others;
  char where[]; /* "1": standard error; else the file's path */
};

static _Atomic(qn_profile *) profiles;

int64_t qn_profile_now(void) { return qn_clock_ns(); }

/* ---- Writing ---- */

/* Writes the line by one write(), so that lines of threads and processes do not mix. In a cut line a newline replaces the last character. */
static void write_line(const qn_profile *profile, qn_strbuf *buf) {
  const int kept_errno = errno, shield = qn_thread_shield();
  if (buf->length >= buf->size) {
    buf->length = buf->size - 1;
    buf->text[buf->length - 1] = '\n';
  }
  while (write(profile->fd, buf->text, buf->length) < 0 && errno == EINTR) {}
  qn_thread_unshield(shield);
  errno = kept_errno;
}

static void write_text(const qn_profile *profile, const char *text) {
  char line[MOST_LINE];
  qn_strbuf buf = {line, sizeof line, 0};
  qn_strbuf_add(&buf, "%s", text);
  write_line(profile, &buf);
}

/* Milliseconds; no locale changes its point. */
static void add_ms(qn_strbuf *buf, int64_t ns) { qn_strbuf_add(buf, ",%lld.%06lld", (long long)(ns / 1000000), (long long)(ns % 1000000)); }

/* ---- Totals ---- */

static int by_time(const void *a, const void *b) {
  const int64_t x = atomic_load(&(*(total *const *)a)->ns), y = atomic_load(&(*(total *const *)b)->ns);
  return (x < y) - (x > y);
}

static void write_total(const qn_profile *profile, const total *at, int64_t all_ns) {
  char line[MOST_LINE];
  qn_strbuf buf = {line, sizeof line, 0};
  const int64_t calls = atomic_load(&at->calls), ns = atomic_load(&at->ns);
  const int64_t permille = all_ns ? (int64_t)(1000.0 * (double)ns / (double)all_ns + 0.5) : 0;
  if (!calls) return;
  qn_strbuf_add(&buf, "quern_profile,total,%d,%s,%lld", (int)getpid(), at->op, (long long)calls);
  add_ms(&buf, ns);
  qn_strbuf_add(&buf, ",%d.%d", (int)(permille / 10), (int)(permille % 10));
  add_ms(&buf, ns / calls);
  add_ms(&buf, atomic_load(&at->most_ns));
  qn_strbuf_add(&buf, ",%s\n", at->text);
  write_line(profile, &buf);
}

/* Writes one line for each op, by time, the longest first. Without memory for the sort, the last op added comes first. */
static void write_totals(qn_profile *profile) {
  const size_t most = (size_t)atomic_load(&profile->n_totals) + 1;
  total **rows = malloc(most * sizeof rows[0]);
  size_t n = 0;
  int64_t all_ns = 0, calls = atomic_load(&profile->others.calls);
  for (total *at = atomic_load(&profile->totals); at; at = at->next) {
    all_ns += atomic_load(&at->ns);
    calls += atomic_load(&at->calls);
    if (rows && n < most) rows[n++] = at;
  }
  all_ns += atomic_load(&profile->others.ns);
  if (calls) write_text(profile, TOTALS_HEADER);
  if (rows) qsort(rows, n, sizeof rows[0], by_time);
  for (size_t k = 0; k < n; k++) write_total(profile, rows[k], all_ns);
  for (total *at = rows ? NULL : atomic_load(&profile->totals); at; at = at->next) write_total(profile, at, all_ns);
  write_total(profile, &profile->others, all_ns);
  free(rows);
}

static void at_exit(void) {
  for (qn_profile *at = atomic_load(&profiles); at; at = at->next) write_totals(at);
}

static void forget(total *at) {
  atomic_store(&at->calls, 0);
  atomic_store(&at->ns, 0);
  atomic_store(&at->most_ns, 0);
}

/* A forked child counts its own calls only. */
static void after_profile_fork_in_child(void) {
  for (qn_profile *profile = atomic_load(&profiles); profile; profile = profile->next) {
    for (total *at = atomic_load(&profile->totals); at; at = at->next) forget(at);
    forget(&profile->others);
  }
}

static total *find_total(total *at, const total *end, const qn_profile_subject *subject) {
  while (at != end && (strcmp(at->op, subject->op) || strcmp(at->text, subject->text))) at = at->next;
  return at == end ? NULL : at;
}

static total *total_of(qn_profile *profile, const qn_profile_subject *subject) {
  total *first = atomic_load_explicit(&profile->totals, memory_order_acquire), *known = find_total(first, NULL, subject);
  if (known) return known;
  total *made = atomic_load(&profile->n_totals) < MOST_TOTALS ? calloc(1, sizeof *made) : NULL;
  if (!made) return &profile->others;
  memcpy(made->op, subject->op, sizeof made->op);
  memcpy(made->text, subject->text, sizeof made->text);
  made->next = first;
  while (!atomic_compare_exchange_weak(&profile->totals, &made->next, made)) {
    known = find_total(made->next, first, subject); /* of another thread, since then */
    if (known) {
      free(made);
      return known;
    }
  }
  atomic_fetch_add(&profile->n_totals, 1);
  return made;
}

static void count(total *at, int64_t ns) {
  int_fast64_t most = atomic_load(&at->most_ns);
  atomic_fetch_add(&at->calls, 1);
  atomic_fetch_add(&at->ns, ns);
  while (ns > most && !atomic_compare_exchange_weak(&at->most_ns, &most, ns)) {}
}

/* ---- Destinations ---- */

static qn_profile *find_profile(qn_profile *at, const char *where) {
  while (at && strcmp(at->where, where) != 0) at = at->next;
  return at;
}

/* Opens the destination. NULL: it cannot be opened, which is logged, or there is no memory. */
static qn_profile *make_profile(const char *where, const qn_log *log) {
  const size_t size = strlen(where) + 1;
  qn_profile *made = calloc(1, sizeof *made + size);
  if (!made) return NULL;
  memcpy(made->where, where, size);
  strcpy(made->others.op, "others");
  made->fd = STDERR_FILENO;
  if (strcmp(where, "1") != 0) made->fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (made->fd >= 0) return made;
  qn_log_say(log, QN_LOG_WARNING, "profile: %.160s cannot be written (error %d): there is none", where, errno);
  free(made);
  return NULL;
}

static void free_profile(qn_profile *profile) {
  if (profile->fd != STDERR_FILENO) close(profile->fd);
  free(profile);
}

/* Writes the header, unless it is a file with text already. The first call also registers the handlers of exit and fork. */
static void begin(const qn_profile *profile) {
  static atomic_int is_armed;
  struct stat facts;
  const int is_file = profile->fd != STDERR_FILENO;
  if (!is_file || fstat(profile->fd, &facts) != 0 || facts.st_size == 0) write_text(profile, HEADER);
  if (atomic_exchange(&is_armed, 1)) return;
  atexit(at_exit);
  pthread_atfork(NULL, NULL, after_profile_fork_in_child);
}

/* Adds it to the list, unless another thread has added one of its destination. */
static qn_profile *add_profile(qn_profile *made) {
  qn_profile *first = atomic_load(&profiles);
  do {
    qn_profile *known = find_profile(first, made->where);
    if (known) {
      free_profile(made);
      return known;
    }
    made->next = first;
  } while (!atomic_compare_exchange_weak(&profiles, &first, made));
  begin(made);
  return made;
}

qn_profile *qn_profile_open(const char *where, const qn_log *log) {
  if (!where) where = qn_environment_profile();
  if (!where || !*where || strcmp(where, "0") == 0) return NULL;
  qn_profile *profile = find_profile(atomic_load(&profiles), where);
  if (profile) return profile;
  const int kept_errno = errno, shield = qn_thread_shield();
  if ((profile = make_profile(where, log))) profile = add_profile(profile);
  qn_thread_unshield(shield);
  errno = kept_errno;
  return profile;
}

/* ---- Lines ---- */

/* "f32"; of a dtype that the library has not DLPack's name for it, without blanks. */
static void add_dtype(qn_strbuf *buf, DLDataType type) {
  char text[QN_TENSOR_DTYPE_CHARS];
  const unsigned bits = type.bits;
  const int is_plain = type.code < QN_DTYPE_N_CODES && bits && !(bits & (bits - 1)) && type.lanes == 1;
  const uint8_t dtype = is_plain ? qn_dtype_of_dlpack[type.code][__builtin_ctz(bits)] : QN_DTYPE_NONE;
  if (dtype != QN_DTYPE_NONE) {
    qn_strbuf_add(buf, "%s", qn_dtype_infos[dtype].name);
    return;
  }
  qn_tensor_dtype_text(type, text);
  for (char *c = text; *c; c++) *c = *c == ' ' || *c == ',' ? '_' : *c;
  qn_strbuf_add(buf, "%s", text);
}

/* "1000x3"; "()" for a tensor of no dimensions. */
static void add_shape(qn_strbuf *buf, const DLTensor *tensor) {
  if (tensor->ndim < 0 || tensor->ndim > QUERN_MAX_NDIM || (tensor->ndim && !tensor->shape)) {
    qn_strbuf_add(buf, "?");
    return;
  }
  if (!tensor->ndim) qn_strbuf_add(buf, "()");
  for (int32_t d = 0; d < tensor->ndim; d++) qn_strbuf_add(buf, d ? "x%lld" : "%lld", (long long)tensor->shape[d]);
}

/* Copies text that may have several lines and quotes, in quotes. */
static void quote(const char *text, char *to, size_t size) {
  size_t n = 0;
  to[n++] = '"';
  for (; *text && n < size - 2; text++) to[n++] = *text == '"' ? '\'' : (unsigned char)*text < ' ' ? ' ' : *text;
  to[n++] = '"';
  to[n] = 0;
}

void qn_profile_describe(const quern_op_info *info, DLTensor *const *in, DLTensor *const *out, int has_text,
                         qn_profile_subject *subject) {
  qn_strbuf op = {subject->op, sizeof subject->op, 0}, dtypes = {subject->dtypes, sizeof subject->dtypes, 0};
  qn_strbuf shapes = {subject->shapes, sizeof subject->shapes, 0};
  memset(subject, 0, sizeof *subject);
  qn_strbuf_add(&op, "%s", info->name);
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    const DLTensor *tensor = k < info->n_in ? in[k] : out[k - info->n_in];
    const char *before = k == info->n_in ? k ? " > " : "> " : k ? " " : "";
    qn_strbuf_add(&dtypes, "%s", before);
    qn_strbuf_add(&shapes, "%s", before);
    if (tensor) {
      add_dtype(&dtypes, tensor->dtype);
      add_shape(&shapes, tensor);
      subject->device = tensor->device;
    }
  }
  if (has_text) quote(info->formula, subject->text, sizeof subject->text);
}

/* The value of the first line of that key in an explanation, or "-". */
static void add_value(qn_strbuf *buf, const char *explanation, const char *key) {
  const size_t n = strlen(key);
  for (const char *at = explanation; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    if (strncmp(at, key, n) != 0 || strncmp(at + n, ": ", 2) != 0) continue;
    at += n + 2;
    qn_strbuf_add(buf, ",%.*s", (int)strcspn(at, ",\n"), at);
    return;
  }
  qn_strbuf_add(buf, ",-");
}

void qn_profile_add(qn_profile *profile, const char *event, const qn_profile_subject *subject, const char *explanation, int64_t ns) {
  char line[MOST_LINE], device[QN_DEVICE_CHARS];
  qn_strbuf buf = {line, sizeof line, 0};
  qn_strbuf_add(&buf, "quern_profile,%s,%d,%s,%s", event, (int)getpid(), subject->op, qn_device_text(subject->device, device));
  add_value(&buf, explanation, "tier");
  add_value(&buf, explanation, "threads");
  add_ms(&buf, ns);
  qn_strbuf_add(&buf, ",%s,%s", subject->dtypes, subject->shapes);
  add_value(&buf, explanation, "variant");
  qn_strbuf_add(&buf, ",%s\n", subject->text);
  write_line(profile, &buf);
  count(total_of(profile, subject), ns);
}
