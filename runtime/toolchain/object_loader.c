/* SPDX-License-Identifier: Apache-2.0
 *
 * object_loader.c: see object_loader.h.
 *
 * A section is text, read-only data, or ignored (names, notes, unwind tables, debug information, empty writable
 * sections). Any other allocated section makes the loader refuse the object. Every number in the object is checked
 * before it is used.
 *
 * The image has pages of text, LEAD bytes before the first, and pages of data some way behind them. They are written first,
 * then made executable or read-only, never both writable and executable. All relocations are relative, so they are computed from
 * offsets in the image; its address does not matter. */
#include "toolchain/object_loader.h"
#include "base/threads/transient.h"
#include "toolchain/code_pages.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__LP64__)
#define IS_X86_64 1
#else
#define IS_X86_64 0
#endif

#define PAGE QN_CODE_PAGE         /* of x86-64; the largest alignment as well */
#define LEAD 64u                 /* before the text: -fsanitize=function reads in front of a function */
#define MAX_BYTES (64u << 20)    /* of one section, and of the image */
#define NAME_SIZE 80             /* the most bytes of a name in a message */
#define UNWIND_SECTION 0x70000001u /* SHT_X86_64_UNWIND */
#define KNOWN_FLAGS ((uint64_t)(SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS | SHF_GROUP))

struct qn_loaded {
  qn_code_pages pages;
  void *entry;
};

typedef enum part { NOT_LOADED, TEXT, DATA } part;

typedef struct section {
  Elf64_Shdr header;
  part part;
  uint64_t at; /* in its part; of data, once there are pages, in the image */
} section;

typedef struct string_table {
  const char *text;
  uint64_t size;
} string_table;

typedef struct object {
  const unsigned char *bytes;
  uint64_t size;
  section *sections;
  uint32_t n_sections;
  string_table section_names, symbol_names;
  const unsigned char *symbols; /* n_symbols Elf64_Sym, unaligned */
  uint64_t n_symbols;
  uint32_t symbol_section;
  uint64_t text_size, data_size; /* whole pages */
  qn_code_pages pages;
  char *why;
  size_t why_size;
} object;

/* ---- Words ---- */

__attribute__((format(printf, 2, 3))) static int refuse(object *o, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(o->why, o->why_size, format, args);
  va_end(args);
  return 0;
}

/* The name at that offset, cut and with unprintable bytes replaced, for messages. */
static const char *name_of(const string_table *names, uint64_t offset, char shown[NAME_SIZE]) {
  size_t n = 0;
  for (; offset < names->size && names->text[offset] && n < NAME_SIZE - 1; offset++, n++) {
    const char c = names->text[offset];
    shown[n] = c > ' ' && c <= '~' ? c : '?';
  }
  if (n == 0) shown[n++] = '?';
  shown[n] = 0;
  return shown;
}

static int refuse_section(object *o, const section *s, const char *what) {
  char name[NAME_SIZE];
  return refuse(o, "section %s of the object %s", name_of(&o->section_names, s->header.sh_name, name), what);
}

/* ---- Sections ---- */

static int is_inside(const object *o, uint64_t offset, uint64_t size) {
  return offset <= o->size && size <= o->size - offset;
}

static int read_header(object *o, Elf64_Ehdr *h) {
  if (o->size < sizeof *h) return refuse(o, "the object is shorter than an ELF header");
  memcpy(h, o->bytes, sizeof *h);
  if (memcmp(h->e_ident, ELFMAG, SELFMAG)) return refuse(o, "the object is not an ELF file");
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_machine != EM_X86_64) {
    return refuse(o, "the object is not for x86-64 but for ELF machine %d, class %d", h->e_machine,
                  h->e_ident[EI_CLASS]);
  }
  if (h->e_ident[EI_VERSION] != EV_CURRENT) return refuse(o, "the object is of ELF version %d", h->e_ident[EI_VERSION]);
  if (h->e_ident[EI_OSABI] != ELFOSABI_NONE && h->e_ident[EI_OSABI] != ELFOSABI_GNU) {
    return refuse(o, "the object is for the ABI of another system, number %d", h->e_ident[EI_OSABI]);
  }
  if (h->e_type != ET_REL) return refuse(o, "the ELF file is not a relocatable object but of type %d", h->e_type);
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum >= SHN_LORESERVE) {
    return refuse(o, "the object has %d section headers of %d bytes", h->e_shnum, h->e_shentsize);
  }
  if (!is_inside(o, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr))) {
    return refuse(o, "the object is cut short: its section headers lie outside");
  }
  return 1;
}

/* Reads a string table; 0: the section is none. */
static int read_names(const object *o, uint32_t index, string_table *names) {
  if (index == 0 || index >= o->n_sections) return 0;
  const Elf64_Shdr *h = &o->sections[index].header;
  if (h->sh_type != SHT_STRTAB || !is_inside(o, h->sh_offset, h->sh_size)) return 0;
  names->text = (const char *)o->bytes + h->sh_offset;
  names->size = h->sh_size;
  return 1;
}

/* Assigns a section to a part of the image, ignores it, or refuses the object. */
static int classify(object *o, section *s) {
  const Elf64_Shdr *h = &s->header;
  char name[NAME_SIZE];
  if (!(h->sh_flags & SHF_ALLOC)) return 1;
  if (h->sh_flags & SHF_TLS) return refuse_section(o, s, "is thread-local");
  if (h->sh_type == SHT_NOTE || h->sh_type == UNWIND_SECTION) return 1;
  name_of(&o->section_names, h->sh_name, name);
  if (h->sh_type != SHT_PROGBITS && h->sh_type != SHT_NOBITS) {
    return refuse(o, "section %s of the object is of type 0x%x, which is not known here", name, h->sh_type);
  }
  if (h->sh_flags & ~KNOWN_FLAGS) {
    return refuse(o, "section %s of the object has flags 0x%llx, which are not known here", name,
                  (unsigned long long)(h->sh_flags & ~KNOWN_FLAGS));
  }
  if (h->sh_flags & SHF_WRITE) return h->sh_size == 0 ? 1 : refuse_section(o, s, "is writable");
  if (h->sh_addralign > PAGE || (h->sh_addralign & (h->sh_addralign - 1))) {
    return refuse(o, "section %s of the object wants an alignment of %llu", name, (unsigned long long)h->sh_addralign);
  }
  if (h->sh_size > MAX_BYTES) {
    return refuse(o, "section %s of the object has %llu bytes, %u is the limit", name, (unsigned long long)h->sh_size,
                  MAX_BYTES);
  }
  if (h->sh_type == SHT_PROGBITS && !is_inside(o, h->sh_offset, h->sh_size)) {
    return refuse(o, "the object is cut short: section %s lies outside", name);
  }
  if (h->sh_type == SHT_NOBITS && (h->sh_flags & SHF_EXECINSTR)) {
    return refuse_section(o, s, "is executable without contents");
  }
  s->part = h->sh_flags & SHF_EXECINSTR ? TEXT : DATA;
  return 1;
}

/* Notes the symbol table; refuses a second one, or one that is malformed. */
static int read_symbols(object *o, uint32_t index) {
  const Elf64_Shdr *h = &o->sections[index].header;
  if (o->symbol_section) return refuse(o, "the object has two tables of symbols");
  if (h->sh_entsize != sizeof(Elf64_Sym) || h->sh_size % sizeof(Elf64_Sym)) {
    return refuse(o, "the object's symbols are not %zu bytes each", sizeof(Elf64_Sym));
  }
  if (!is_inside(o, h->sh_offset, h->sh_size)) return refuse(o, "the object is cut short: its symbols lie outside");
  if (!read_names(o, h->sh_link, &o->symbol_names)) {
    return refuse(o, "the object has no names for its symbols, or they lie outside");
  }
  o->symbols = o->bytes + h->sh_offset;
  o->n_symbols = h->sh_size / sizeof(Elf64_Sym);
  o->symbol_section = index;
  return 1;
}

static int read_sections(object *o) {
  Elf64_Ehdr h;
  if (!read_header(o, &h)) return 0;
  o->sections = calloc(h.e_shnum, sizeof *o->sections);
  if (!o->sections) {
    qn_transient_note(ENOMEM);
    return refuse(o, "no memory for the object's sections");
  }
  o->n_sections = h.e_shnum;
  for (uint32_t i = 0; i < o->n_sections; i++) {
    memcpy(&o->sections[i].header, o->bytes + h.e_shoff + i * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
  }
  read_names(o, h.e_shstrndx, &o->section_names); /* for messages only: a missing name is shown as ? */
  for (uint32_t i = 1; i < o->n_sections; i++) {
    if (o->sections[i].header.sh_type == SHT_SYMTAB && !read_symbols(o, i)) return 0;
    if (!classify(o, &o->sections[i])) return 0;
  }
  return 1;
}

/* Places the sections of a part from *end on, and moves *end behind them. */
static int lay_out_part(object *o, part which, uint64_t *end) {
  for (uint32_t i = 1; i < o->n_sections; i++) {
    section *s = &o->sections[i];
    if (s->part != which) continue;
    const uint64_t align = s->header.sh_addralign ? s->header.sh_addralign : 1;
    s->at = (*end + align - 1) & -align;
    *end = s->at + s->header.sh_size; /* no overflow: both are at most 64 MiB and a page */
    if (*end > MAX_BYTES) return refuse(o, "the object needs more than %u bytes of memory", MAX_BYTES);
  }
  return 1;
}

static uint64_t whole_pages(uint64_t bytes) { return (bytes + PAGE - 1) & -(uint64_t)PAGE; }

static int lay_out(object *o) {
  uint64_t text = LEAD, data = 0;
  if (!lay_out_part(o, TEXT, &text) || !lay_out_part(o, DATA, &data)) return 0;
  o->text_size = whole_pages(text);
  o->data_size = whole_pages(data);
  if (o->text_size + o->data_size <= MAX_BYTES) return 1;
  return refuse(o, "the object needs more than %u bytes of memory", MAX_BYTES);
}

/* ---- Symbols ---- */

static Elf64_Sym symbol_at(const object *o, uint64_t index) {
  Elf64_Sym symbol;
  memcpy(&symbol, o->symbols + index * sizeof symbol, sizeof symbol);
  return symbol;
}

static int refuse_symbol(object *o, const Elf64_Sym *symbol, const char *what) {
  char name[NAME_SIZE];
  return refuse(o, "the object's symbol %s %s", name_of(&o->symbol_names, symbol->st_name, name), what);
}

/* The symbol's address in the image. */
static int resolve(object *o, const Elf64_Sym *symbol, uint64_t *at) {
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= o->n_sections) {
    return refuse_symbol(o, symbol, "is in no section");
  }
  const section *s = &o->sections[symbol->st_shndx];
  if (s->part == NOT_LOADED) return refuse_symbol(o, symbol, "is in a section that is not loaded");
  if (symbol->st_value > s->header.sh_size) return refuse_symbol(o, symbol, "lies outside its section");
  *at = s->at + symbol->st_value;
  return 1;
}

/* Refuses symbols of unknown kinds, whether referred to or not. */
static int check_symbol(object *o, const Elf64_Sym *symbol) {
  char name[NAME_SIZE];
  const int type = ELF64_ST_TYPE(symbol->st_info);
  if (type == STT_GNU_IFUNC) return refuse_symbol(o, symbol, "is an indirect function");
  if (type == STT_TLS) return refuse_symbol(o, symbol, "is thread-local");
  if (symbol->st_shndx == SHN_COMMON || type == STT_COMMON) {
    return refuse_symbol(o, symbol, "is common storage, which is writable");
  }
  if (type > STT_FILE) {
    return refuse(o, "the object's symbol %s is of type %d, which is not known here",
                  name_of(&o->symbol_names, symbol->st_name, name), type);
  }
  if (symbol->st_shndx == SHN_UNDEF) {
    return refuse(o, "the object needs %s, which it does not define", name_of(&o->symbol_names, symbol->st_name, name));
  }
  return 1;
}

static int is_named(const object *o, const Elf64_Sym *symbol, const char *name, size_t length) {
  const string_table *names = &o->symbol_names;
  return symbol->st_name < names->size && length < names->size - symbol->st_name &&
         memcmp(names->text + symbol->st_name, name, length + 1) == 0;
}

/* Checks all symbols; finds the function of that name. */
static int find_entry(object *o, const char *name, uint64_t *at) {
  const size_t length = strlen(name);
  int found = 0;
  for (uint64_t i = 1; i < o->n_symbols; i++) {
    const Elf64_Sym symbol = symbol_at(o, i);
    const int type = ELF64_ST_TYPE(symbol.st_info);
    if (!check_symbol(o, &symbol)) return 0;
    if (found || type > STT_FUNC || !is_named(o, &symbol, name, length)) continue;
    if (!resolve(o, &symbol, at)) return 0;
    const section *s = &o->sections[symbol.st_shndx];
    if (type == STT_OBJECT || s->part != TEXT || symbol.st_value == s->header.sh_size) {
      return refuse_symbol(o, &symbol, "is not a function");
    }
    found = 1;
  }
  return found ? 1 : refuse(o, "the object has no function %.*s", NAME_SIZE - 1, name);
}

/* ---- Relocations ---- */

static int apply(object *o, const section *target, const Elf64_Rela *r) {
  char name[NAME_SIZE];
  uint64_t at = 0;
  int64_t value;
  const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
  const uint64_t index = ELF64_R_SYM(r->r_info);
  if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) {
    return refuse(o, "the object has a relocation of type %u in section %s; PC32 and PLT32 are known here", type,
                  name_of(&o->section_names, target->header.sh_name, name));
  }
  if (target->header.sh_size < 4 || r->r_offset > target->header.sh_size - 4) {
    return refuse_section(o, target, "has a relocation outside of it");
  }
  if (index == 0 || index >= o->n_symbols) return refuse_section(o, target, "has a relocation without a symbol");
  const Elf64_Sym symbol = symbol_at(o, index);
  if (!resolve(o, &symbol, &at)) return 0;
  const uint64_t from = target->at + r->r_offset;
  if (__builtin_add_overflow((int64_t)at - (int64_t)from, r->r_addend, &value) || value != (int32_t)value) {
    return refuse_section(o, target, "has a relocation that reaches too far");
  }
  const uint32_t word = (uint32_t)value;
  memcpy(o->pages.text + from, &word, sizeof word);
  return 1;
}

static int relocate(object *o) {
  for (uint32_t i = 1; i < o->n_sections; i++) {
    const section *s = &o->sections[i];
    const Elf64_Shdr *h = &s->header;
    if (h->sh_type != SHT_RELA && h->sh_type != SHT_REL) continue;
    if (h->sh_info >= o->n_sections) return refuse_section(o, s, "relocates no section");
    const section *target = &o->sections[h->sh_info];
    if (target->part == NOT_LOADED || h->sh_size == 0) continue;
    if (h->sh_type == SHT_REL || h->sh_entsize != sizeof(Elf64_Rela) || h->sh_size % sizeof(Elf64_Rela)) {
      return refuse_section(o, s, "has relocations without addends");
    }
    if (target->header.sh_type == SHT_NOBITS) return refuse_section(o, target, "has relocations but no contents");
    if (!o->symbol_section || h->sh_link != o->symbol_section) {
      return refuse_section(o, s, "has no symbols to relocate by");
    }
    if (!is_inside(o, h->sh_offset, h->sh_size)) return refuse(o, "the object is cut short: relocations lie outside");
    for (uint64_t k = 0; k < h->sh_size; k += sizeof(Elf64_Rela)) {
      Elf64_Rela r;
      memcpy(&r, o->bytes + h->sh_offset + k, sizeof r);
      if (!apply(o, target, &r)) return 0;
    }
  }
  return 1;
}

/* ---- Memory ---- */

/* The image is filled from the first page of the text on: data lies so far behind it as its pages do. */
static int fill(object *o) {
  const uint64_t data_at = (uint64_t)(o->pages.data - o->pages.text);
  memset(o->pages.text, QN_CODE_TRAP, o->text_size);
  memset(o->pages.data, 0, o->data_size);
  for (uint32_t i = 1; i < o->n_sections; i++) {
    section *s = &o->sections[i];
    if (s->part == DATA) s->at += data_at;
    if (s->part == NOT_LOADED || s->header.sh_type == SHT_NOBITS || s->header.sh_size == 0) continue;
    memcpy(o->pages.text + s->at, o->bytes + s->header.sh_offset, s->header.sh_size);
  }
  return relocate(o);
}

/* The number in a file of /proc/sys; -1: not known. */
static long number_in(const char *path) {
  long n = -1;
  FILE *file = fopen(path, "re");
  if (file && fscanf(file, "%ld", &n) != 1) n = -1;
  if (file) fclose(file);
  return n;
}

/* Refuses for a mapping that the system has refused, with errno. A lack is often one of mappings, not of memory. */
static int refuse_mapping(object *o, const char *what) {
  const int error = errno;
  long n = 0;
  qn_transient_note(error);
  FILE *maps = error == ENOMEM ? fopen("/proc/self/maps", "re") : NULL;
  for (int c; maps && (c = getc(maps)) != EOF;) n += c == '\n';
  if (maps) fclose(maps);
  const long most = n ? number_in("/proc/sys/vm/max_map_count") : -1;
  errno = error;
  if (most > 0 && n >= most - 16)
    return refuse(o, "the process has %ld mappings of at most %ld (vm.max_map_count): %s: %m", n, most, what);
  return refuse(o, "%s: %m", what);
}

static int seal(object *o) {
  if (qn_code_pages_seal(&o->pages)) return 1;
  return refuse_mapping(o, errno == ENOMEM ? "no memory for executable pages: mprotect" : "this system grants no executable memory: mprotect");
}

/* Takes pages for the image and makes it ready. */
static int map(object *o) {
  if (!qn_code_pages_take(o->text_size, o->data_size, &o->pages)) return refuse_mapping(o, "no memory for the object's code: mmap");
  if (fill(o) && seal(o)) return 1;
  qn_code_pages_give(&o->pages);
  return 0;
}

/* ---- Outside ---- */

static int load(object *o, const char *symbol, qn_loaded *loaded) {
  uint64_t entry = 0;
  if (!IS_X86_64) return refuse(o, "objects are loaded on x86-64 only");
  if (!read_sections(o) || !lay_out(o) || !find_entry(o, symbol, &entry) || !map(o)) return 0;
  *loaded = (qn_loaded){o->pages, o->pages.text + entry};
  return 1;
}

qn_loaded *qn_object_load(const void *bytes, size_t size, const char *symbol, char *why, size_t why_size) {
  const int kept_errno = errno;
  object o = {.bytes = bytes, .size = size, .why = why, .why_size = why_size};
  qn_loaded *loaded = malloc(sizeof *loaded);
  if (!loaded) {
    refuse(&o, "no memory for a loaded object");
    qn_transient_note(ENOMEM);
  } else if (!load(&o, symbol, loaded)) {
    free(loaded);
    loaded = NULL;
  }
  free(o.sections);
  errno = kept_errno;
  return loaded;
}

void *qn_object_entry(const qn_loaded *loaded) {
  return loaded->entry;
}

size_t qn_object_size(const qn_loaded *loaded) {
  return loaded->pages.text_size + loaded->pages.data_size;
}

void qn_object_unload(qn_loaded *loaded) {
  const int kept_errno = errno;
  if (!loaded) return;
  qn_code_pages_give(&loaded->pages);
  free(loaded);
  errno = kept_errno;
}
