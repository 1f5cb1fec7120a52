#include "probe/symbol_range.h"

#include <elf.h>
#include <string.h>

namespace gpumemprof::probe {
namespace {

struct Query {
  const void* inside;
  const char* name;
  ObjectRange found;
};

/// DT_GNU_HASH: four words, a Bloom filter that only saves time, buckets (the first symbol of
/// each), and of every symbol from `first` on its hash, whose lowest bit ends a bucket.
struct HashTable {
  uint32_t bucket_count, first, filter_words, filter_shift;
  const uint32_t* buckets() const {
    return reinterpret_cast<const uint32_t*>(this + 1) + 2 * size_t{filter_words};
  }
  const uint32_t* hashes() const { return buckets() + bucket_count; }
};

uint32_t gnu_hash(const char* name) {
  uint32_t hash = 5381;
  for (; *name; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

int look(dl_phdr_info* info, size_t, void* context) {
  auto* query = static_cast<Query*>(context);
  const ObjectRange range = loaded_range(*info);
  if (!range.contains(query->inside)) return 0;
  const Elf64_Dyn* entry = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const Elf64_Dyn*>(info->dlpi_addr + segment.p_vaddr);
    }
  }
  const HashTable* table = nullptr;
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  for (; entry && entry->d_tag != DT_NULL; ++entry) {
    uintptr_t p = entry->d_un.d_ptr;
    if (p < info->dlpi_addr) p += info->dlpi_addr;  // as got.cc: not all linkers make it absolute
    if (entry->d_tag == DT_GNU_HASH) table = reinterpret_cast<const HashTable*>(p);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const Elf64_Sym*>(p);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(p);
  }
  if (!range.contains(table) || !range.contains(symbols) || !range.contains(names)) return 1;
  if (table->bucket_count == 0) return 1;
  const uint32_t hash = gnu_hash(query->name);
  uint32_t index = table->buckets()[hash % table->bucket_count];
  if (index < table->first) return 1;  // an empty bucket
  for (;; ++index) {
    const uint32_t other = table->hashes()[index - table->first];
    const Elf64_Sym& symbol = symbols[index];
    if ((other | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && symbol.st_size > 0 &&
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        strcmp(names + symbol.st_name, query->name) == 0) {
      const uintptr_t begin = info->dlpi_addr + symbol.st_value;
      query->found = {begin, begin + symbol.st_size};
      return 1;
    }
    if (other & 1) return 1;
  }
}

}  // namespace

ObjectRange function_range(const void* inside, const char* name) {
  Query query{inside, name, {}};
  dl_iterate_phdr(look, &query);
  return query.found;
}

}  // namespace gpumemprof::probe
