// The class of a C++ object with virtual functions, from the type information of its virtual table
// (Itanium C++ ABI, 2.9.4): loads from read-only data, no lock.
#pragma once

#include <stddef.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

/// As type_info::name() returns it, "N5torch8autograd4NodeE"; null if `type_info` is null.
inline const char* mangled_type(const void* type_info) {
  const char* name = type_info ? load<const char*>(type_info, 8) : nullptr;
  return name && *name == '*' ? name + 1 : name;  // a name that is only compared by its address
}

/// That of the object's class; null if it was compiled without type information.
inline const char* mangled_class(const void* object) {
  const char* table = load<const char*>(object, 0);
  return mangled_type(load<const void*>(table - sizeof(void*), 0));
}

/// The last part of a mangled class name: "AddmmBackward0" of
/// "N5torch8autograd9generated14AddmmBackward0E", without template arguments. The length; 0 for a
/// text of another form. Reads at most 1,000 bytes.
size_t last_part(const char* mangled, char* out, size_t size);

}  // namespace gpumemprof::probe
