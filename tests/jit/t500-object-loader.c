/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t500: objects that the system's compiler makes are loaded and run, or refused with the reason; cut, flipped and
 * forged ones do no harm; what is mapped is never writable and executable, and is unmapped; many share a few mappings, in a
 * forked child, too. */
#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/toolchain/object_loader.h"
#include "tap.h"

static char why[256];

/* ---- Objects ---- */

typedef struct blob {
  unsigned char *bytes; /* malloc'ed, exactly `size`: ASan sees what reads beyond */
  size_t size;
} blob;

static char folder[256];

static blob copy_of(const unsigned char *bytes, size_t size) {
  blob b = {malloc(size ? size : 1), size};
  if (!b.bytes) bail("no memory");
  memcpy(b.bytes, bytes, size);
  return b;
}

static blob read_file(const char *path) {
  static unsigned char bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (!file) bail("%s is not there", path);
  const size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  return copy_of(bytes, n);
}

/* What the system's C compiler makes of `text`, C or assembly ("s"). */
static blob compile(const char *language, const char *flags, const char *text) {
  char path[300], command[1400];
  snprintf(path, sizeof path, "%s/x.%s", folder, language);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file)) bail("%s cannot be written", path);
  snprintf(command, sizeof command,
           "cc -c -O2 -ffreestanding -fno-asynchronous-unwind-tables -fno-stack-protector -fpie %s "
           "-o '%s/x.o' '%s' 2>'%s/said'",
           flags, folder, path, folder);
  if (system(command)) {
    const blob said = (snprintf(path, sizeof path, "%s/said", folder), read_file(path));
    bail("%s: %.*s", command, (int)said.size, (const char *)said.bytes);
  }
  snprintf(path, sizeof path, "%s/x.o", folder);
  return read_file(path);
}

static qn_loaded *load(blob b, const char *symbol) {
  strcpy(why, "nothing was said");
  return qn_object_load(b.bytes, b.size, symbol, why, sizeof why);
}

/* Entries are data pointers to the loader. */
typedef union entry {
  void *address;
  float (*of_float)(float x, int i);
  int (*of_int)(int x);
  const void *(*of_nothing)(void);
} entry;

static entry entry_of(const qn_loaded *loaded) {
  return (entry){.address = qn_object_entry(loaded)};
}

static void refused(blob b, const char *symbol, const char *part, const char *name) {
  qn_loaded *loaded = load(b, symbol);
  if (!ok(!loaded, "refused: %s", name)) why[0] = 0;
  has_str(why, part, "  %s", why);
  qn_object_unload(loaded);
  free(b.bytes);
}

/* ---- Memory ---- */

/* The rights of the mapping that has the address, "" if there is none. */
static const char *rights_at(const void *address) {
  static char rights[8];
  char line[600];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  rights[0] = 0;
  while (fgets(line, sizeof line, maps)) {
    unsigned long from, to;
    char now[8];
    if (sscanf(line, "%lx-%lx %4s", &from, &to, now) != 3) continue;
    if ((uintptr_t)address >= from && (uintptr_t)address < to) strcpy(rights, now);
  }
  fclose(maps);
  return rights;
}

/* How many mappings the process has. */
static int n_all_mappings(void) {
  int n = 0;
  char line[600];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) {
    char now[8];
    if (sscanf(line, "%*s %4s", now) == 1) n += !SANITIZED || (now[0] == 'r' && now[1] != 'w'); /* a sanitizer maps memory to write to */
  }
  fclose(maps);
  return n;
}

/* How many mappings of no file are executable. */
static int n_mappings(void) {
  int n = 0;
  char line[600];
  FILE *maps = fopen("/proc/self/maps", "r");
  if (!maps) bail("no /proc/self/maps");
  while (fgets(line, sizeof line, maps)) {
    char now[8];
    unsigned long inode;
    if (sscanf(line, "%*s %4s %*s %*s %lu", now, &inode) == 2) n += now[2] == 'x' && inode == 0;
  }
  fclose(maps);
  return n;
}

/* ---- What is loaded ---- */

static const char table_text[] =
    "static const float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n"
    "float k(float x, int i) { return table[i & 7] * x + 3.25f; }\n";

static const char two_text[] =
    "__attribute__((noinline, section(\".text.other\"))) static int twice(int x) { return x * 2; }\n"
    "__attribute__((noinline)) int thrice(int x) { return x * 3; }\n"
    "int k(int x) { return twice(x) + thrice(x + 1); }\n";

static void test_works(void) {
  blob b = compile("c", "", table_text);
  errno = 77;
  qn_loaded *loaded = load(b, "k");
  ok(loaded != NULL, "a function with a table and a constant (%s)", loaded ? "loaded" : why);
  is_int(errno, 77, "  errno is kept");
  if (loaded) {
    const entry e = entry_of(loaded);
    ok(e.of_float(2, 2) == 9.25f && e.of_float(-1, 15) == -4.75f, "  its results");
    is_int(qn_object_size(loaded), 8192, "  a page of code and one of data");
    is_str(rights_at(e.address), "r-xp", "  code is not writable");
    qn_object_unload(loaded);
    is_int(errno, 77, "  errno is kept by unloading");
    is_str(rights_at(e.address), "", "  nothing is left of it");
  }
  free(b.bytes);

  b = compile("c", "", table_text);
  unsigned char *odd = malloc(b.size + 1);
  memcpy(odd + 1, b.bytes, b.size);
  loaded = qn_object_load(odd + 1, b.size, "k", NULL, 0);
  ok(loaded && entry_of(loaded).of_float(3, 0) == 6.25f, "from an odd address, without a message");
  qn_object_unload(loaded);
  free(odd);
  free(b.bytes);

  static const struct {
    const char *name, *language, *flags, *text;
    int x, wanted;
  } cases[] = {
      {"two sections of text", "c", "", two_text, 5, 28},
      {"each function in a section", "c", "-ffunction-sections -fdata-sections", two_text, 5, 28},
      {"unwind tables and debug information", "c", "-g -fasynchronous-unwind-tables", two_text, 5, 28},
      {"notes of branch protection", "c", "-fcf-protection", two_text, 5, 28},
      {"position-dependent", "c", "-fno-pie -fno-pic", two_text, 5, 28},
      {"constants that are merged", "s", "",
       ".globl k\n.type k,@function\nk: movslq %edi,%rdi\n lea a(%rip),%rax\n mov (%rax,%rdi,4),%eax\n"
       " add b(%rip),%eax\n add c(%rip),%eax\n"
       " ret\n.section .rodata.cst16,\"aM\",@progbits,16\na: .long 10,20,30,40\n"
       ".section .rodata.cst4,\"aM\",@progbits,4\n.long 1\nb: .long 2\n"
       ".section .rodata.str1.1,\"aMS\",@progbits,1\nc: .string \"\\001\\000\\000\"\n",
       2, 33},
      {"code that leaps through a table of data", "s", "",
       ".globl k\nk: movslq %edi,%rdi\n lea t(%rip),%rax\n movslq (%rax,%rdi,4),%rdx\n add %rdx,%rax\n jmp *%rax\n"
       "one: mov $100,%eax\n ret\ntwo: mov $200,%eax\n ret\n.section .rodata\n.long 0\nt: .long one-t\n.long two-t\n",
       1, 200},
      {"data without contents", "s", "",
       ".globl k\nk: mov z+60(%rip),%eax\n add %edi,%eax\n ret\n.section .zeros,\"a\",@nobits\nz: .zero 64\n", 7, 7},
      {"a label that is no function by type", "s", "", "nop\nk: lea 1(%rdi),%eax\n ret\n", 7, 8},
      {"an executable stack asked for", "s", "",
       ".globl k\nk: lea 1(%rdi),%eax\n ret\n.section .note.GNU-stack,\"x\",@progbits\n", 7, 8},
      {"empty data and bss", "s", "", ".globl k\nk: lea 1(%rdi),%eax\n ret\n.data\n.bss\n", 7, 8},
      {"text aligned to 4096", "s", "", ".globl k\n.p2align 12\nk: lea 1(%rdi),%eax\n ret\n", 7, 8},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    b = compile(cases[i].language, cases[i].flags, cases[i].text);
    loaded = load(b, "k");
    free(b.bytes);
    if (loaded) {
      is_int(entry_of(loaded).of_int(cases[i].x), cases[i].wanted, "%s", cases[i].name);
    } else {
      fail("%s: %s", cases[i].name, why);
    }
    qn_object_unload(loaded);
  }
}

static void test_alignment(void) {
  for (int align = 1; align <= 8192; align *= 2) {
    char text[400];
    snprintf(text, sizeof text,
             ".globl k\n.type k,@function\nk: lea t(%%rip),%%rax\n ret\n.section .rodata,\"a\"\n.byte 1\n"
             ".section .rodata.t,\"a\"\n.balign %d\nt: .byte 99\n",
             align);
    blob b = compile("s", "", text);
    if (align > 4096) {
      refused(b, "k", "alignment of 8192", "data aligned beyond a page");
      continue;
    }
    qn_loaded *loaded = load(b, "k");
    const unsigned char *t = loaded ? entry_of(loaded).of_nothing() : NULL;
    ok(t && (uintptr_t)t % (unsigned)align == 0 && *t == 99, "data aligned to %d (%s)", align, loaded ? "loaded" : why);
    is_str(t ? rights_at(t) : "", "r--p", "  is read-only");
    qn_object_unload(loaded);
    free(b.bytes);
  }
}

/* ---- What is refused ---- */

static void test_refused(void) {
  static const struct {
    const char *name, *language, *flags, *text, *symbol, *part;
  } cases[] = {
      {"a function from outside", "c", "", "float wanderer(float); float k(float x) { return wanderer(x) + 1; }", "k",
       "needs wanderer, which it does not define"},
      {"data from outside", "c", "-fno-pie -fno-pic", "extern float far; float k(float x) { return far + x; }", "k",
       "needs far,"},
      {"the global offset table", "c", "-fPIC", "const int table[4] = {1, 2, 3, 4}; int k(int i) { return table[i]; }",
       "k", "the object "}, /* the relocation or _GLOBAL_OFFSET_TABLE_, whichever comes first */
      {"an address of 64 bits", "s", "", ".globl k\nk: ret\n.section .rodata\n.quad k\n", "k", "relocation of type 1 "},
      {"data that are relocated", "c", "-fPIC",
       "static int a(int x) { return x; } static int b(int x) { return -x; }\n"
       "static int (*const t[2])(int) = {a, b}; int k(int i) { return t[i & 1](i); }",
       "k", ".data.rel.ro"},
      {"a variable", "c", "", "static int n = 4; int k(int x) { return n += x; }", "k",
       "section .data of the object is writable"},
      {"a variable of zeros", "c", "", "static int n; int k(int x) { return n += x; }", "k",
       "section .bss of the object is writable"},
      {"common storage", "s", "", ".globl k\nk: ret\n.comm shared,4,4\n", "k", "shared is common"},
      {"a thread's variable", "c", "", "static _Thread_local int n = 3; int k(int x) { return n += x; }", "k",
       "thread-local"},
      {"an indirect function", "s", "", ".globl k\n.type k,@gnu_indirect_function\nk: ret\n", "k",
       "k is an indirect function"},
      {"a constructor", "s", "", ".globl k\nk: ret\n.section .init_array,\"aw\",@init_array\n.quad 0\n", "k",
       "section .init_array of the object is of type 0xe"},
      {"code that is writable", "s", "", ".section .hot,\"awx\"\n.globl k\nk: ret\n", "k",
       ".hot of the object is writable"},
      {"another function", "c", "", table_text, "l", "has no function l"},
      {"part of its name", "c", "", "int kernel(int x) { return x; }", "kern", "has no function kern"},
      {"no name", "c", "", table_text, "", "has no function"},
      {"data for a function", "c", "", "const int t = 3; int k(int x) { return x + t; }", "t", "t is not a function"},
      {"a label of data for a function", "s", "", ".globl k\nk: ret\n.section .rodata\nt: .long 1\n", "t",
       "t is not a function"},
      {"the end of the text for a function", "s", "", ".globl k\nk: ret\nt:\n", "t", "t is not a function"},
      {"a number for a function", "s", "", ".globl k\n.globl t\nk: ret\nt = 5\n", "t", "t is in no section"},
      {"a relocation by a number", "s", "", ".globl k\nk: jmp t\n.globl t\nt = 5\n", "k",
       "section"}, /* t is in no section, or there is no t any more */
      {"a relocation by debug information", "s", "",
       ".globl k\nk: mov d(%rip),%eax\n ret\n.section .debug_x\nd: .long 1\n", "k", "not loaded"},
      {"an address of 32 bits", "s", "", ".globl k\nk: mov $k,%eax\n ret\n", "k", "relocation of type 10 "},
      {"a jump of 8 bits", "s", "",
       ".globl k\nk: jmp l\n.section .text.l,\"ax\"\nl: ret\n.section .text.m,\"ax\"\n.byte l-.\n", "k",
       "relocation of type 15 "},
      {"too much of nothing", "s", "", ".globl k\nk: ret\n.section .zeros,\"a\",@nobits\n.zero 67108865\n", "k",
       "67108864 is the limit"},
      {"too much of it altogether", "s", "", ".globl k\nk: ret\n.section .zeros,\"a\",@nobits\n.zero 67108864\n", "k",
       "more than 67108864 bytes"},
      {"text of nothing", "s", "", ".globl k\nk: ret\n.section .hole,\"ax\",@nobits\n.zero 4\n", "k",
       "executable without contents"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    refused(compile(cases[i].language, cases[i].flags, cases[i].text), cases[i].symbol, cases[i].part, cases[i].name);
  }
}

static void set(blob b, size_t offset, uint64_t value, size_t size) {
  if (offset + size > b.size) bail("no byte %zu in an object of %zu", offset, b.size);
  memcpy(b.bytes + offset, &value, size);
}

/* Where the header of the first section of that type is, at or after header `from`. */
static size_t section_header(blob b, uint32_t type, size_t from) {
  Elf64_Ehdr h;
  memcpy(&h, b.bytes, sizeof h);
  for (size_t i = from; i < h.e_shnum; i++) {
    Elf64_Shdr s;
    memcpy(&s, b.bytes + h.e_shoff + i * sizeof s, sizeof s);
    if (s.sh_type == type) return h.e_shoff + i * sizeof s;
  }
  bail("the object has no section of type %u", type);
}

static uint64_t section_offset(blob b, size_t header) {
  Elf64_Shdr s;
  memcpy(&s, b.bytes + header, sizeof s);
  return s.sh_offset;
}

#define EHDR(field) offsetof(Elf64_Ehdr, field), sizeof(((Elf64_Ehdr *)0)->field)
#define SHDR(field) offsetof(Elf64_Shdr, field), sizeof(((Elf64_Shdr *)0)->field)
#define SYM(field) offsetof(Elf64_Sym, field), sizeof(((Elf64_Sym *)0)->field)
#define RELA(field) offsetof(Elf64_Rela, field), sizeof(((Elf64_Rela *)0)->field)

/* A field of the good object is set to something else. */
static void test_forged(void) {
  /* In the file's header; in that of the first such section; in its first relocation or second symbol. */
  enum { IN_HEADER, IN_SECTION, IN_ITEM };
  static const struct {
    int where;
    uint32_t type;
    size_t offset, size;
    uint64_t value;
    const char *part;
  } cases[] = {
      {IN_HEADER, 0, 0, 1, 0x7e, "not an ELF file"},
      {IN_HEADER, 0, EI_CLASS, 1, ELFCLASS32, "class 1"},
      {IN_HEADER, 0, EI_DATA, 1, ELFDATA2MSB, "not for x86-64"},
      {IN_HEADER, 0, EI_VERSION, 1, 2, "version 2"},
      {IN_HEADER, 0, EI_OSABI, 1, ELFOSABI_FREEBSD, "another system, number 9"},
      {IN_HEADER, 0, EHDR(e_machine), EM_AARCH64, "machine 183"},
      {IN_HEADER, 0, EHDR(e_type), ET_DYN, "of type 3"},
      {IN_HEADER, 0, EHDR(e_shentsize), 63, "63 bytes"},
      {IN_HEADER, 0, EHDR(e_shnum), 0, "has 0 section headers"},
      {IN_HEADER, 0, EHDR(e_shnum), 0xffff, "has 65535 section headers"},
      {IN_HEADER, 0, EHDR(e_shnum), 0xfe00, "section headers lie outside"},
      {IN_HEADER, 0, EHDR(e_shoff), UINT64_MAX - 63, "section headers lie outside"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_offset), UINT64_MAX - 3, "section .text lies outside"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_size), UINT64_MAX - 3, "is the limit"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_addralign), 48, "alignment of 48"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_addralign), 1ull << 63, "alignment of 9223372036854775808"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_flags), SHF_ALLOC | SHF_EXECINSTR | SHF_COMPRESSED, "flags 0x800"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_flags), SHF_ALLOC, "k is not a function"},
      {IN_SECTION, SHT_PROGBITS, SHDR(sh_size), 3, "relocation outside of it"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_entsize), 23, "not 24 bytes each"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_size), 25, "not 24 bytes each"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_size), 24, "has no function k"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_size), 24ull << 50, "symbols lie outside"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_link), 0, "no names for its symbols"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_link), 0xffffffff, "no names for its symbols"},
      {IN_SECTION, SHT_SYMTAB, SHDR(sh_type), SHT_PROGBITS, "has no function k"},
      {IN_SECTION, SHT_RELA, SHDR(sh_entsize), 16, "without addends"},
      {IN_SECTION, SHT_RELA, SHDR(sh_type), SHT_REL, "without addends"},
      {IN_SECTION, SHT_RELA, SHDR(sh_size), 24 << 20, "relocations lie outside"},
      {IN_SECTION, SHT_RELA, SHDR(sh_link), 1, "no symbols to relocate by"},
      {IN_SECTION, SHT_RELA, SHDR(sh_info), 0xffffffff, "relocates no section"},
      {IN_ITEM, SHT_RELA, RELA(r_offset), UINT64_MAX, "relocation outside of it"},
      {IN_ITEM, SHT_RELA, RELA(r_offset), 1 << 20, "relocation outside of it"},
      {IN_ITEM, SHT_RELA, RELA(r_addend), INT64_MAX, "reaches too far"},
      {IN_ITEM, SHT_RELA, RELA(r_addend), 1ull << 63, "reaches too far"},
      {IN_ITEM, SHT_RELA, RELA(r_addend), 1ull << 31, "reaches too far"},
      {IN_ITEM, SHT_RELA, offsetof(Elf64_Rela, r_info), 4, R_X86_64_GOTPCRELX, "relocation of type 41"},
      {IN_ITEM, SHT_RELA, RELA(r_info), 2, "without a symbol"},
      {IN_ITEM, SHT_RELA, RELA(r_info), 0xffffffffull << 32 | 2, "without a symbol"},
      {IN_ITEM, SHT_RELA, RELA(r_info), 1ull << 32 | 0xffffffff, "relocation of type 4294967295"},
      {IN_ITEM, SHT_SYMTAB, SYM(st_info), 10, "is an indirect function"},
      {IN_ITEM, SHT_SYMTAB, SYM(st_info), 9, "of type 9"},
      {IN_ITEM, SHT_SYMTAB, SYM(st_shndx), 0, "does not define"},
  };
  blob good = compile("c", "", table_text);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    blob b = copy_of(good.bytes, good.size);
    size_t at = cases[i].offset;
    if (cases[i].where == IN_SECTION) at += section_header(b, cases[i].type, 1);
    if (cases[i].where == IN_ITEM) {
      at += section_offset(b, section_header(b, cases[i].type, 1)) +
            (cases[i].type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0);
    }
    set(b, at, cases[i].value, cases[i].size);
    refused(b, "k", cases[i].part, "a forged number");
  }
  free(good.bytes);
}

/* Cut, flipped, and with odd numbers in it: loaded or refused with a word, nothing else. */
static int is_harmless(const unsigned char *bytes, size_t size) {
  blob b = copy_of(bytes, size);
  qn_loaded *loaded = load(b, "k");
  const int sane =
      loaded ? strcmp(rights_at(qn_object_entry(loaded)), "r-xp") == 0 : why[0] && strcmp(why, "nothing was said");
  qn_object_unload(loaded);
  free(b.bytes);
  return sane;
}

static void test_damage(const char *name, blob b) {
  static const uint64_t odd[] = {0,      1,          3,          0x7f,       0x80,      0xff,       0x7fff,
                                 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX};
  const int before = n_mappings();
  group_begin("%s, cut", name);
  for (size_t n = 0; n < b.size; n++) {
    group_count(1);
    if (!is_harmless(b.bytes, n)) group_fail("cut to %zu bytes", n);
  }
  group_end();
  group_begin("%s, bits flipped", name);
  for (size_t i = 0; i < b.size; i++) {
    for (int bit = 0; bit <= 8; bit++) {
      const unsigned char flip = (unsigned char)(bit == 8 ? 0xff : 1 << bit);
      b.bytes[i] ^= flip;
      group_count(1);
      if (!is_harmless(b.bytes, b.size)) group_fail("byte %zu, 0x%x flipped", i, flip);
      b.bytes[i] ^= flip;
    }
  }
  group_end();
  group_begin("%s, odd numbers", name);
  rng r;
  rng_seed(&r, 500);
  for (int i = 0; i < 4000; i++) {
    blob c = copy_of(b.bytes, b.size);
    for (uint64_t k = rng_below(&r, 3) + 1; k > 0; k--) {
      const size_t size = (size_t)1 << rng_below(&r, 4);
      set(c, rng_below(&r, (c.size - 8) / size) * size, odd[rng_below(&r, sizeof odd / sizeof *odd)], size);
    }
    group_count(1);
    if (!is_harmless(c.bytes, c.size)) group_fail("case %d", i);
    free(c.bytes);
  }
  group_end();
  is_int(n_mappings(), before, "  no mappings are left of it");
  free(b.bytes);
}

enum { N = 1000, FEW = 60 }; /* kernels; the most mappings that they may take: two thousand, were each for itself */
static qn_loaded *loaded_many[N];

static int works(int i) { return loaded_many[i] && entry_of(loaded_many[i]).of_float(1, i) == (float)(i % 8) + 4.25f; }

static int all_work(void) {
  int good = 1;
  for (int i = 0; i < N; i++) good &= !loaded_many[i] || works(i);
  return good;
}

/* Unloads those of which `is_meant`. */
static void unload_some(int (*is_meant)(int i)) {
  for (int i = 0; i < N; i++) {
    if (!is_meant(i)) continue;
    qn_object_unload(loaded_many[i]);
    loaded_many[i] = NULL;
  }
}
static int load_missing(blob b) {
  int good = 1;
  for (int i = 0; i < N; i++)
    if (!loaded_many[i]) good &= (loaded_many[i] = load(b, "k")) != NULL;
  return good;
}
static int is_any(int i) { return i >= 0; }
static int is_odd(int i) { return i % 2; }
static int is_third(int i) { return i % 3 == 0; }

/* In a forked child: kernels of the parent run, are unloaded, and others are loaded; then new ones come and go. 0: all is well. */
static int use_in_child(blob b, int most, int executable) {
  if (!all_work()) return 1;
  unload_some(is_third);
  if (!load_missing(b) || !all_work()) return 2;
  for (int round = 0; round < 20; round++) {
    unload_some(round % 2 ? is_odd : is_third);
    if (!load_missing(b) || !all_work()) return 3;
  }
  if (n_all_mappings() > most) {
    fprintf(stderr, "# %d mappings in the child, %d wanted\n", n_all_mappings(), most);
    return 4;
  }
  unload_some(is_any);
  return n_mappings() == executable ? 0 : 5;
}

static void test_many(void) {
  blob b = compile("c", "", table_text);
  const int executable = n_mappings(), before = n_all_mappings();
  ok(load_missing(b), "%d kernels side by side", N);
  ok(all_work(), "  each works");
  const int between = n_all_mappings();
  ok(between - before <= FEW, "  in %d mappings", between - before);
  unload_some(is_odd);
  ok(n_all_mappings() <= between, "every other one unloaded: %d mappings", n_all_mappings() - before);
  ok(all_work(), "  the others work");
  ok(load_missing(b) && all_work(), "  new ones in their stead");
  ok(n_all_mappings() <= between + 2, "  in as many mappings: %d", n_all_mappings() - before);

  fflush(stdout);
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) _exit(use_in_child(b, between + FEW, executable)); /* has its own beside its parent's */
  for (int round = 0; round < 4; round++) {
    unload_some(is_third);
    if (!load_missing(b) || !all_work()) fail("round %d in the parent", round);
  }
  waitpid(pid, &status, 0);
  is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 0, "a child has its parent's kernels, and loads others");
  ok(all_work(), "  which changes nothing here");
  unload_some(is_any);
  is_int(n_mappings(), executable, "nothing is left of them");
  qn_object_unload(NULL);
  free(b.bytes);
}

/* Of a kernel that was unloaded traps remain beside the others, and of its data zeros or nothing. */
static void test_remains(void) {
  blob b = compile("c", "", table_text), t = compile("s", "", ".globl k\nk: lea t(%rip),%rax\n ret\n.section .rodata\nt: .byte 99\n");
  qn_loaded *first = load(t, "k"), *second = load(b, "k");
  if (!first || !second) bail("%s", why);
  const unsigned char *code = qn_object_entry(first), *data = entry_of(first).of_nothing();
  is_int(*data, 99, "data of a kernel");
  qn_object_unload(first);
  is_str(rights_at(code), "r-xp", "after unloading beside another one its pages stay");
  ok(*code == 0xcc && *data == 0, "  without its bytes: 0x%x, %d", *code, *data);
  first = load(t, "k");
  ok(first && qn_object_entry(first) == (const void *)code && entry_of(first).of_nothing() == data && *data == 99, "  the next one takes them");
  qn_object_unload(first);
  qn_object_unload(second);
  free(b.bytes);
  free(t.bytes);
}

/* Kernels that are too large to share. */
static void test_large(void) {
  static const char *const texts[] = {".globl k\nk: lea t(%rip),%rax\n ret\n.zero 100000\n.section .rodata\nt: .byte 99\n",
                                      ".globl k\nk: lea t(%rip),%rax\n ret\n.section .rodata\n.zero 100000\nt: .byte 99\n",
                                      ".globl k\nk: lea t(%rip),%rax\n ret\n.zero 60000\n.section .rodata\n.zero 60000\nt: .byte 99\n"};
  for (int i = 0; i < 3; i++) {
    const int before = n_all_mappings();
    qn_loaded *some[12];
    blob b = compile("s", "", texts[i]);
    int good = 1;
    for (int k = 0; k < 12; k++) some[k] = load(b, "k"), good &= some[k] && *(const char *)entry_of(some[k]).of_nothing() == 99;
    ok(good, "twelve large kernels (%s)", why);
    ok(n_all_mappings() - before <= 25, "  in %d mappings", n_all_mappings() - before);
    for (int k = 0; k < 12; k++) qn_object_unload(some[k]);
    ok(n_all_mappings() <= before + 1, "  of which nothing is left");
    free(b.bytes);
  }
}

/* In a child to which the kernel grants no executable memory. */
static void test_no_exec(void) {
#if defined(__x86_64__)
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4 /* PROT_EXEC */, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  blob b = compile("c", "", table_text);
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(9);
    const int before = n_mappings();
    qn_loaded *loaded = load(b, "k");
    _exit(loaded ? 1 : !strstr(why, "no executable memory") ? 2 : n_mappings() > before ? 3 : 0);
  }
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 9) {
    skip(1, "no seccomp here");
  } else {
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 0,
           "where the system grants no executable memory all is refused");
  }
  free(b.bytes);
#endif
}

/* In a child that has all the mappings that it may have. */
static void test_no_mappings(void) {
  enum { PAIRS = 70000 };
  blob b = compile("c", "", table_text);
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    char *area = mmap(NULL, (size_t)PAIRS * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int n = 0;
    if (area == MAP_FAILED) _exit(9);
    while (n < PAIRS && mprotect(area + n * (size_t)8192, 4096, PROT_READ) == 0) n++;
    if (n == PAIRS) _exit(9);
    if (load(b, "k") || !strstr(why, "mappings of at most")) _exit(1);
    munmap(area, (size_t)PAIRS * 8192);
    _exit(load(b, "k") ? 0 : 2);
  }
  waitpid(pid, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 9)
    skip(1, "no limit of mappings here");
  else
    is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 0, "where no mapping is left the reason says so");
  free(b.bytes);
}

int main(void) {
#if !defined(__x86_64__) || !defined(__LP64__)
  ok(!qn_object_load("", 0, "k", why, sizeof why), "nothing is loaded on this machine");
  has_str(why, "x86-64 only", "  %s", why);
  return done_testing();
#endif
  if (system("cc --version >/dev/null 2>&1")) skip_all("no C compiler of the name cc");
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/quern-t500.XXXXXX", base && *base && strlen(base) < 200 ? base : "/tmp");
  if (!mkdtemp(folder)) bail("no folder %s", folder);
  test_works();
  test_alignment();
  test_refused();
  test_forged();
  test_damage("a function with a table", compile("c", "", table_text));
  test_damage("two sections", compile("c", "-ffunction-sections -fasynchronous-unwind-tables", two_text));
  test_many();
  test_remains();
  test_large();
  test_no_exec();
  test_no_mappings();
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  ok(system(command) == 0, "the folder is removed");
  return done_testing();
}
