// The tables through which loaded libraries call functions of each other (the PLT's part of the
// GOT, and the tables of virtual functions), changed so that the calls come to us.
//
// A library's relocations name each entry and the symbol that it is for; both are in memory that
// the dynamic linker keeps. An entry is one word and is changed with one store, so a call that is
// made at the same moment goes to one function or the other. Tables that the linker has made
// read-only (RELRO) are writable for the moment of the store and get the protection back that they
// had; into those that it is just about to make so, the kernel stores.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

struct Replacement {
  const char* name;
  void* hook;
  uint32_t count;  // out: entries that lead to the hook now
};

struct Replaced {
  uint32_t changed = 0;             // entries
  uint32_t refused = 0;             // entries whose memory could not be made writable
  bool is_protection_lost = false;  // it could not be given back: a table stays writable
};

/// Changes the entries of all loaded objects except this library. May be repeated: new objects are
/// changed, others stay. Holds the loader's lock on the list of objects for some 10 ms.
Replaced replace_in_loaded_objects(Replacement* table, uint32_t count);

/// The same in the one object that contains `inside`, an address of its code.
Replaced replace_in_object_of(const void* inside, Replacement* table, uint32_t count);

/// Stores one word, returning false where the store would raise a signal. The memory's protection
/// does not matter if /proc/self/mem can be written.
bool store_through_kernel(void** entry, void* value);

/// The protection (PROT_READ…) of the page at `address` according to the kernel; -1 if unknown (no
/// /proc).
int protection_of(uintptr_t address);

}  // namespace gpumemprof::probe
