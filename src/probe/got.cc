#include "probe/got.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/system_page.h"
#include "probe/dynamic.h"
#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

// The kinds of relocation that fill an entry with a symbol's address: for calls through the PLT,
// for calls and addresses through the GOT, and for words in data, such as the virtual functions in
// a class's table.
#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobDat = R_X86_64_GLOB_DAT;
constexpr uint32_t kWord = R_X86_64_64;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobDat = R_AARCH64_GLOB_DAT;
constexpr uint32_t kWord = R_AARCH64_ABS64;
#endif

/// What of an object's dynamic section is needed here.
struct Tables {
  uintptr_t base;
  ObjectRange range, relro;
  const Elf64_Sym* symbols;
  const char* names;
  size_t names_size;
  const Elf64_Rela* calls;
  size_t calls_size;
  const Elf64_Rela* others;
  size_t others_size;
  size_t relative_count;  // of `others`, the first: without a symbol. Millions in a large library.
};

/// The first bytes of a name as one word: half a million names are compared with each of ours.
struct Beginning {
  uint64_t word = 0, mask = 0;
};

constexpr uint32_t kMostNames = 96;
struct Job {
  Replacement* table;
  uint32_t count;
  const void* inside;  // of the only object to change; null: all
  Replaced result;
  Beginning beginnings[kMostNames];
};

uint64_t first_bytes(const char* name, size_t size) {
  uint64_t word = 0;
  memcpy(&word, name, size < sizeof(word) ? size : sizeof(word));
  return word;
}

bool read_tables(const dl_phdr_info& info, Tables* out) {
  *out = {};
  out->base = info.dlpi_addr;
  out->range = loaded_range(info);
  const Elf64_Dyn* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) entry = reinterpret_cast<const Elf64_Dyn*>(begin);
    if (segment.p_type == PT_GNU_RELRO) out->relro = {begin, begin + segment.p_memsz};
  }
  if (!entry) return false;
  // The linker has made most of these absolute; where it has not (the kernel's own object, other
  // linkers) they are offsets.
  auto absolute = [&](Elf64_Addr p) { return p < out->base ? p + out->base : p; };
  for (; entry->d_tag != DT_NULL; ++entry) {
    uintptr_t p = absolute(entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        out->symbols = reinterpret_cast<const Elf64_Sym*>(p);
        break;
      case DT_STRTAB:
        out->names = reinterpret_cast<const char*>(p);
        break;
      case DT_STRSZ:
        out->names_size = entry->d_un.d_val;
        break;
      case DT_JMPREL:
        out->calls = reinterpret_cast<const Elf64_Rela*>(p);
        break;
      case DT_PLTRELSZ:
        out->calls_size = entry->d_un.d_val;
        break;
      case DT_RELA:
        out->others = reinterpret_cast<const Elf64_Rela*>(p);
        break;
      case DT_RELASZ:
        out->others_size = entry->d_un.d_val;
        break;
      case DT_RELACOUNT:
        out->relative_count = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        if (entry->d_un.d_val != DT_RELA) return false;
        break;
    }
  }
  return out->symbols && out->names && out->range.contains(out->symbols) &&
         out->range.contains(out->names);
}

/// Whether the linker makes the page read-only when it has filled the tables; it rounds down.
bool becomes_read_only(const Tables& object, uintptr_t page, long size) {
  uintptr_t mask = ~static_cast<uintptr_t>(size - 1);
  return page >= (object.relro.begin & mask) && page < (object.relro.end & mask);
}

/// A page that is to become read-only and still is writable belongs to a library that another
/// thread is loading, which may change the protection before any store of ours. Nobody calls
/// through it yet, so there the kernel stores: that need not be one store, but cannot be a signal.
/// A page that is read-only stays so, and the functions that are called through it at this moment
/// need one store.
bool store(const Tables& object, void** entry, void* hook, Replaced* result) {
  long size = static_cast<long>(system_page());
  uintptr_t page = reinterpret_cast<uintptr_t>(entry) & ~static_cast<uintptr_t>(size - 1);
  bool is_sealed_in_the_end = becomes_read_only(object, page, size);
  int had = protection_of(page);
  if (is_sealed_in_the_end && (had < 0 || had & PROT_WRITE)) {
    if (store_through_kernel(entry, hook)) return result->changed += 1, true;
    had = protection_of(page);  // refused, perhaps as it has become read-only just now
    if (had >= 0 && had & PROT_WRITE) return result->refused += 1, false;
  }
  if (had < 0) had = is_sealed_in_the_end ? PROT_READ : PROT_READ | PROT_WRITE;
  bool is_writable = had & PROT_WRITE;
  if (!is_writable && sys(SYS_mprotect, static_cast<long>(page), size, had | PROT_WRITE) < 0) {
    result->refused += 1;
    return false;
  }
  __atomic_store_n(entry, hook, __ATOMIC_RELEASE);
  if (!is_writable && sys(SYS_mprotect, static_cast<long>(page), size, had) < 0) {
    result->is_protection_lost = true;
  }
  result->changed += 1;
  return true;
}

void replace_in(const Tables& object, const Elf64_Rela* first, size_t bytes, Job* job) {
  if (!first || !object.range.contains(first)) return;
  for (size_t i = 0; i < bytes / sizeof(Elf64_Rela); ++i) {
    const Elf64_Rela& relocation = first[i];
    uint32_t type = ELF64_R_TYPE(relocation.r_info);
    bool is_word = type == kWord && relocation.r_addend == 0;
    if (type != kJumpSlot && type != kGlobDat && !is_word) continue;
    const Elf64_Sym& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
    if (symbol.st_name >= object.names_size) continue;
    const char* name = object.names + symbol.st_name;
    const uint64_t word = first_bytes(name, object.names_size - symbol.st_name);
    for (uint32_t k = 0; k < job->count; ++k) {
      Replacement* wanted = &job->table[k];
      const Beginning& beginning = job->beginnings[k];
      if ((word & beginning.mask) != beginning.word || strcmp(name, wanted->name) != 0) continue;
      auto** entry = reinterpret_cast<void**>(object.base + relocation.r_offset);
      if (!object.range.contains(entry)) break;
      void* leads_to = __atomic_load_n(entry, __ATOMIC_RELAXED);
      // Null: a weak symbol without a definition, which the library works without.
      if (leads_to == nullptr) break;
      if (leads_to == wanted->hook || store(object, entry, wanted->hook, &job->result)) {
        wanted->count += 1;
      }
      break;
    }
  }
}

int visit(dl_phdr_info* info, size_t, void* context) {
  auto* job = static_cast<Job*>(context);
  Tables object;
  if (!read_tables(*info, &object)) return 0;
  if (object.range.contains(reinterpret_cast<const void*>(&visit))) return 0;
  if (job->inside && !object.range.contains(job->inside)) return 0;
  replace_in(object, object.calls, object.calls_size, job);
  size_t skipped = object.relative_count * sizeof(Elf64_Rela);
  if (!object.others || skipped > object.others_size) return 0;
  replace_in(object, object.others + object.relative_count, object.others_size - skipped, job);
  return 0;
}

Replaced replace(const void* inside, Replacement* table, uint32_t count) {
  Job job{table, count < kMostNames ? count : kMostNames, inside, {}, {}};
  for (uint32_t i = 0; i < job.count; ++i) {
    table[i].count = 0;
    const size_t size = strlen(table[i].name) + 1;
    job.beginnings[i].word = first_bytes(table[i].name, size);
    job.beginnings[i].mask = size < sizeof(uint64_t) ? (uint64_t{1} << 8 * size) - 1 : ~uint64_t{0};
  }
  dl_iterate_phdr(visit, &job);
  return job.result;
}

}  // namespace

Replaced replace_in_loaded_objects(Replacement* table, uint32_t count) {
  return replace(nullptr, table, count);
}

Replaced replace_in_object_of(const void* inside, Replacement* table, uint32_t count) {
  return replace(inside, table, count);
}

bool store_through_kernel(void** entry, void* value) {
  long fd = sys(SYS_openat, AT_FDCWD, sys_ptr("/proc/self/mem"), O_RDWR | O_CLOEXEC);
  if (fd >= 0) {
    long done = sys(SYS_pwrite64, fd, sys_ptr(&value), sizeof(value), sys_ptr(entry));
    sys(SYS_close, fd);
    if (done == sizeof(value)) return true;
  }
  constexpr int kGetSeccomp = 21;
  if (sys(SYS_prctl, kGetSeccomp) != 0) return false;  // a filter may punish the next one
  iovec from{&value, sizeof(value)}, to{entry, sizeof(value)};
  return sys(SYS_process_vm_writev, sys(SYS_getpid), sys_ptr(&from), 1, sys_ptr(&to), 1) ==
         sizeof(value);
}

int protection_of(uintptr_t address) {
  long fd = sys(SYS_openat, AT_FDCWD, sys_ptr("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  // A line is "begin-end rwxp …"; what follows the letters is skipped.
  char text[4096];
  uint64_t bounds[2] = {};
  int field = 0, letters = 0, protection = 0, found = -1;
  for (long n; found < 0 && (n = sys(SYS_read, fd, sys_ptr(text), sizeof(text))) > 0;) {
    for (long i = 0; i < n && found < 0; ++i) {
      char c = text[i];
      if (c == '\n') {
        bounds[0] = bounds[1] = 0;
        field = letters = protection = 0;
      } else if (field < 2 && (c == '-' || c == ' ')) {
        field += 1;
      } else if (field < 2) {
        bounds[field] =
            bounds[field] << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
      } else if (field == 2 && letters < 3) {
        if (c == 'r') protection |= PROT_READ;
        if (c == 'w') protection |= PROT_WRITE;
        if (c == 'x') protection |= PROT_EXEC;
        if (++letters == 3 && address >= bounds[0] && address < bounds[1]) found = protection;
      }
    }
  }
  sys(SYS_close, fd);
  return found;
}

}  // namespace gpumemprof::probe
