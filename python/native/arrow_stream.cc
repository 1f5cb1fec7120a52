#include "native/arrow_stream.h"

#include <cerrno>
#include <new>

namespace gpumemprof::python {
namespace {

// Every struct owns its children and its dictionary; a consumer may move any of them away, which
// leaves a null release behind.

template <class Struct>
struct Family {
  std::vector<Struct> children;
  std::vector<Struct*> pointers;
  Struct dictionary = {};

  Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    for (Struct& child : children)
      if (child.release) child.release(&child);
    if (dictionary.release) dictionary.release(&dictionary);
  }
  Struct** point_at_children() {
    for (Struct& child : children) pointers.push_back(&child);
    return pointers.data();
  }
  Struct* told_dictionary() { return dictionary.release ? &dictionary : nullptr; }
};

struct SchemaParts : Family<ArrowSchema> {
  std::string name;
};

struct ArrayParts : Family<ArrowArray> {
  std::shared_ptr<const void> owner;
  std::vector<const void*> buffers;
};

template <class Struct, class Parts>
void release_part(Struct* self) {
  delete static_cast<Parts*>(self->private_data);
  self->release = nullptr;
}

ArrowSchema schema_of(const ArrowColumn& column) {
  auto parts = std::make_unique<SchemaParts>();
  parts->name = column.name;
  if (column.dictionary) parts->dictionary = schema_of(*column.dictionary);
  ArrowSchema schema = {.format = column.format,
                        .name = parts->name.c_str(),
                        .flags = ARROW_FLAG_NULLABLE,
                        .dictionary = parts->told_dictionary(),
                        .release = release_part<ArrowSchema, SchemaParts>,
                        .private_data = parts.get()};
  parts.release();
  return schema;
}

/// Of a record batch, which has no nulls of its own.
ArrowSchema schema_of(const std::vector<ArrowColumn>& columns) {
  auto parts = std::make_unique<SchemaParts>();
  parts->children.reserve(columns.size());
  for (const ArrowColumn& column : columns) parts->children.push_back(schema_of(column));
  ArrowSchema schema = {.format = "+s",
                        .name = "",
                        .n_children = static_cast<int64_t>(columns.size()),
                        .children = parts->point_at_children(),
                        .release = release_part<ArrowSchema, SchemaParts>,
                        .private_data = parts.get()};
  parts.release();
  return schema;
}

ArrowArray array_of(const ArrowColumn& column, const std::shared_ptr<const void>& owner) {
  auto parts = std::make_unique<ArrayParts>();
  parts->owner = owner;
  parts->buffers = {column.nulls == 0 ? nullptr : column.known, column.values};
  if (column.texts) parts->buffers.push_back(column.texts);
  if (column.dictionary) parts->dictionary = array_of(*column.dictionary, owner);
  ArrowArray array = {.length = column.length,
                      .null_count = column.nulls,
                      .n_buffers = static_cast<int64_t>(parts->buffers.size()),
                      .buffers = parts->buffers.data(),
                      .dictionary = parts->told_dictionary(),
                      .release = release_part<ArrowArray, ArrayParts>,
                      .private_data = parts.get()};
  parts.release();
  return array;
}

ArrowArray array_of(const ArrowBatch& batch) {
  auto parts = std::make_unique<ArrayParts>();
  parts->buffers = {nullptr};
  parts->children.reserve(batch.columns.size());
  for (const ArrowColumn& column : batch.columns)
    parts->children.push_back(array_of(column, batch.owner));
  ArrowArray array = {.length = batch.length,
                      .n_buffers = 1,
                      .n_children = static_cast<int64_t>(batch.columns.size()),
                      .buffers = parts->buffers.data(),
                      .children = parts->point_at_children(),
                      .release = release_part<ArrowArray, ArrayParts>,
                      .private_data = parts.get()};
  parts.release();
  return array;
}

ArrowTable& table_of(ArrowArrayStream* stream) {
  return *static_cast<ArrowTable*>(stream->private_data);
}

/// The callers are C: out of memory becomes the code that the specification has for it.
template <class Action>
int without_exceptions(const Action& action) {
  try {
    action();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return without_exceptions([&] { *out = schema_of(table_of(stream).columns()); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  return without_exceptions([&] {
    const ArrowBatch batch = table_of(stream).next();
    *out = batch.length == 0 ? ArrowArray{} : array_of(batch);  // a null release: the end
  });
}

}  // namespace

void fill_arrow_stream(std::unique_ptr<ArrowTable> table, ArrowArrayStream* stream) {
  *stream = {.get_schema = get_schema,
             .get_next = get_next,
             .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
             .release = release_part<ArrowArrayStream, ArrowTable>,
             .private_data = table.release()};
}

}  // namespace gpumemprof::python
