// Events through the Arrow C stream interface. The structs are those of Arrow's specification (the
// C data and C stream interfaces): their members, order and flags are an ABI and must stay.
#pragma once

#include <cstdint>
#include <memory>

#include "native/columns.h"

// The guards are the specification's, so that this header can meet another one that has the same.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
extern "C" {
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}
#endif

namespace gpumemprof::python {

/// Fills `stream` with one record batch of a column for each member of Columns. `action`, `device`
/// and `stream` are dictionaries of their names or numbers. The values are those of `columns`,
/// which is kept until every part has been released; only the bits that say what is null are made
/// here. Null is what is not known: see valid() in the source.
void fill_arrow_stream(std::shared_ptr<const Columns> columns, ArrowArrayStream* stream);

}  // namespace gpumemprof::python
