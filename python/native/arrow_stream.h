// Tables through the Arrow C stream interface, a batch at a time. The structs are those of Arrow's
// specification (the C data and C stream interfaces): their members, order and flags are an ABI and
// must stay.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

/// A column of a batch, or without values its name and type. Pointers are into what
/// ArrowBatch::owner keeps.
struct ArrowColumn {
  std::string name;
  const char* format = "l";  ///< of the specification: l int64, C uint8, S uint16, I, L, u string
  int64_t length = 0, nulls = 0;
  const void* known = nullptr;   ///< a bit a value, least significant first; unused without nulls
  const void* values = nullptr;  ///< of a string column its offsets
  const void* texts = nullptr;   ///< of a string column
  std::shared_ptr<const ArrowColumn> dictionary;  ///< what the values are indexes of
};

struct ArrowBatch {
  std::vector<ArrowColumn> columns;
  std::shared_ptr<const void> owner;
  int64_t length = 0;
};

class ArrowTable {
 public:
  virtual ~ArrowTable() = default;
  virtual std::vector<ArrowColumn> columns() const = 0;
  /// The next rows; none at the end.
  virtual ArrowBatch next() = 0;
};

/// Takes the table over. Any thread may read the stream, one at a time, without the GIL; batches
/// outlive it.
void fill_arrow_stream(std::unique_ptr<ArrowTable> table, ArrowArrayStream* stream);

}  // namespace gpumemprof::python
