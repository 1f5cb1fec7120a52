#include "native/lake_stream.h"

#include <cerrno>
#include <new>
#include <utility>
#include <vector>

namespace gpumemprof::python {
namespace {

// Every struct owns its children; a consumer may move any of them away, which leaves a null
// release behind.

template <class Struct>
struct LakeFamily {
  std::vector<Struct> children;
  std::vector<Struct*> pointers;

  LakeFamily() = default;
  LakeFamily(const LakeFamily&) = delete;
  LakeFamily& operator=(const LakeFamily&) = delete;
  ~LakeFamily() {
    for (Struct& child : children)
      if (child.release) child.release(&child);
  }
};

struct TableSchema : LakeFamily<ArrowSchema> {
  std::string name;
};

struct TableArrays : LakeFamily<ArrowArray> {
  std::shared_ptr<const LakeBatch> batch;
  std::vector<const void*> buffers;
};

template <class Struct, class Parts>
void release_part(Struct* self) {
  delete static_cast<Parts*>(self->private_data);
  self->release = nullptr;
}

ArrowSchema table_schema(const LakeBatch& columns) {
  auto whole = std::make_unique<TableSchema>();
  whole->children.reserve(columns.size());
  for (const LakeColumn& column : columns) {
    auto parts = std::make_unique<TableSchema>();
    parts->name = column.name;
    whole->children.push_back({.format = column.is_text ? "u" : "l",
                               .name = parts->name.c_str(),
                               .flags = ARROW_FLAG_NULLABLE,
                               .release = release_part<ArrowSchema, TableSchema>,
                               .private_data = parts.get()});
    parts.release();
  }
  for (ArrowSchema& child : whole->children) whole->pointers.push_back(&child);
  ArrowSchema schema = {.format = "+s",
                        .name = "",
                        .n_children = static_cast<int64_t>(whole->children.size()),
                        .children = whole->pointers.data(),
                        .release = release_part<ArrowSchema, TableSchema>,
                        .private_data = whole.get()};
  whole.release();
  return schema;
}

ArrowArray column_values(const std::shared_ptr<const LakeBatch>& batch, const LakeColumn& column) {
  auto parts = std::make_unique<TableArrays>();
  parts->batch = batch;
  const void* known = column.unknown == 0 ? nullptr : column.known.data();
  if (column.is_text)
    parts->buffers = {known, column.offsets.data(), column.texts.data()};
  else
    parts->buffers = {known, column.numbers.data()};
  ArrowArray array = {.length = column.rows,
                      .null_count = column.unknown,
                      .n_buffers = static_cast<int64_t>(parts->buffers.size()),
                      .buffers = parts->buffers.data(),
                      .release = release_part<ArrowArray, TableArrays>,
                      .private_data = parts.get()};
  parts.release();
  return array;
}

ArrowArray table_values(const std::shared_ptr<const LakeBatch>& batch) {
  auto whole = std::make_unique<TableArrays>();
  whole->buffers = {nullptr};
  whole->children.reserve(batch->size());
  for (const LakeColumn& column : *batch) whole->children.push_back(column_values(batch, column));
  for (ArrowArray& child : whole->children) whole->pointers.push_back(&child);
  ArrowArray array = {.length = static_cast<int64_t>(rows_of(*batch)),
                      .n_buffers = 1,
                      .n_children = static_cast<int64_t>(whole->children.size()),
                      .buffers = whole->buffers.data(),
                      .children = whole->pointers.data(),
                      .release = release_part<ArrowArray, TableArrays>,
                      .private_data = whole.get()};
  whole.release();
  return array;
}

struct TableStream {
  std::shared_ptr<const void> owner;  // outlives the rows
  std::unique_ptr<LakeRows> rows;
};

TableStream& table_of(ArrowArrayStream* stream) {
  return *static_cast<TableStream*>(stream->private_data);
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

int get_table_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return without_exceptions([&] { *out = table_schema(table_of(stream).rows->columns()); });
}

int get_next_rows(ArrowArrayStream* stream, ArrowArray* out) {
  return without_exceptions([&] {
    auto batch = std::make_shared<LakeBatch>(table_of(stream).rows->columns());
    table_of(stream).rows->fill(batch.get());
    *out = rows_of(*batch) == 0 ? ArrowArray{} : table_values(batch);  // a null release: the end
  });
}

}  // namespace

void fill_lake_stream(std::unique_ptr<LakeRows> rows, std::shared_ptr<const void> owner,
                      ArrowArrayStream* stream) {
  *stream = {.get_schema = get_table_schema,
             .get_next = get_next_rows,
             .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
             .release = release_part<ArrowArrayStream, TableStream>,
             .private_data = new TableStream{std::move(owner), std::move(rows)}};
}

}  // namespace gpumemprof::python
