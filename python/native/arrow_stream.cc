#include "native/arrow_stream.h"

#include <array>
#include <cerrno>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "trace/event.h"

namespace gpumemprof::python {
namespace {

enum Column { kTime, kAction, kAddress, kSize, kStack, kDevice, kThread, kStream, kColumns };

struct ColumnType {
  const char* name;
  const char* format;
  const char* dictionary;  ///< the format of what the indexes stand for; null: plain values
};
// Formats: l int64, C uint8, S uint16, I uint32, L uint64, u string.
constexpr std::array<ColumnType, kColumns> kTypes = {{{"time_ns", "l", nullptr},
                                                      {"action", "C", "u"},
                                                      {"address", "L", nullptr},
                                                      {"size_bytes", "L", nullptr},
                                                      {"stack", "I", nullptr},
                                                      {"device", "S", "u"},
                                                      {"thread", "I", nullptr},
                                                      {"stream", "S", "l"}}};

// Every struct owns its children and its dictionary; a consumer may move any of them away, which
// leaves a null release behind.

template <class Struct>
struct Family {
  Struct dictionary = {};
  std::array<Struct, kColumns> children = {};
  std::array<Struct*, kColumns> pointers = {};

  Family() = default;
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    for (Struct& child : children)
      if (child.release) child.release(&child);
    if (dictionary.release) dictionary.release(&dictionary);
  }
};

struct SchemaParts : Family<ArrowSchema> {};

template <class Struct, class Parts>
void release(Struct* self) {
  delete static_cast<Parts*>(self->private_data);
  self->release = nullptr;
}

/// `parts` belongs to the result.
ArrowSchema schema_of(const char* name, const char* format, SchemaParts* parts) {
  return {.format = format,
          .name = name,
          .flags = ARROW_FLAG_NULLABLE,
          .dictionary = parts->dictionary.release ? &parts->dictionary : nullptr,
          .release = release<ArrowSchema, SchemaParts>,
          .private_data = parts};
}

ArrowSchema column_schema(const ColumnType& type) {
  auto parts = std::make_unique<SchemaParts>();
  if (type.dictionary) parts->dictionary = schema_of("", type.dictionary, new SchemaParts);
  return schema_of(type.name, type.format, parts.release());
}

ArrowSchema batch_schema() {
  auto parts = std::make_unique<SchemaParts>();
  for (size_t i = 0; i < kColumns; ++i) {
    parts->children[i] = column_schema(kTypes[i]);
    parts->pointers[i] = &parts->children[i];
  }
  ArrowSchema schema = schema_of("", "+s", parts.get());
  schema.flags = 0;  // a record batch has no nulls of its own
  schema.n_children = kColumns;
  schema.children = parts.release()->pointers.data();
  return schema;
}

struct ArrayParts : Family<ArrowArray> {
  std::shared_ptr<const Columns> columns;
  std::array<const void*, 3> buffers = {};
  std::vector<uint8_t> valid;     // a bit a value, least significant first
  std::vector<uint16_t> nothing;  // indexes of a column that is not known
  std::vector<int32_t> offsets;
  std::string text;
};

ArrowArray array_of(size_t length, int64_t buffers, ArrayParts* parts) {
  return {.length = static_cast<int64_t>(length),
          .n_buffers = buffers,
          .buffers = parts->buffers.data(),
          .dictionary = parts->dictionary.release ? &parts->dictionary : nullptr,
          .release = release<ArrowArray, ArrayParts>,
          .private_data = parts};
}

ArrowArray strings(const std::vector<std::string>& names) {
  auto parts = std::make_unique<ArrayParts>();
  parts->offsets.push_back(0);
  for (const std::string& name : names) {
    parts->text += name;  // a device's name is short, and there are 65,536 at most
    parts->offsets.push_back(static_cast<int32_t>(parts->text.size()));
  }
  parts->buffers = {nullptr, parts->offsets.data(), parts->text.data()};
  return array_of(names.size(), 3, parts.release());
}

ArrowArray numbers(const std::shared_ptr<const Columns>& columns) {
  auto parts = std::make_unique<ArrayParts>();
  parts->columns = columns;
  parts->buffers = {nullptr, columns->streams.data()};
  return array_of(columns->streams.size(), 2, parts.release());
}

/// Whether the value of a column means something. All that may be null is decided here.
bool valid(const Columns& c, Column column, size_t i) {
  const Action action = static_cast<Action>(c.action[i]);
  switch (column) {
    case kTime:
      return c.has_times;
    case kAddress:
      return action != Action::kOom && action != Action::kSnapshot;
    case kSize:
      return c.size_bytes[i] != 0 || !is_free(action);
    case kStack:
      return c.stack[i] != 0;
    case kThread:
      return c.thread[i] != UINT32_MAX;
    case kStream:
      return c.no_streams.empty();
    default:
      return true;
  }
}

int64_t find_nulls(const Columns& columns, Column column, std::vector<uint8_t>* bits) {
  bits->assign((columns.size() + 7) / 8, 0);
  int64_t nulls = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool is_valid = valid(columns, column, i);
    (*bits)[i / 8] |= static_cast<uint8_t>(is_valid << (i % 8));
    nulls += !is_valid;
  }
  return nulls;
}

const void* values_of(const Columns& c, Column column) {
  const std::array<const void*, kColumns> values = {
      c.time_ns.data(), c.action.data(), c.address.data(), c.size_bytes.data(),
      c.stack.data(),   c.device.data(), c.thread.data(),  c.stream.data()};
  return values[column];
}

ArrowArray column_array(const std::shared_ptr<const Columns>& columns, Column column) {
  auto parts = std::make_unique<ArrayParts>();
  parts->columns = columns;
  const int64_t nulls = find_nulls(*columns, column, &parts->valid);
  parts->buffers = {nulls == 0 ? nullptr : parts->valid.data(), values_of(*columns, column)};
  if (column == kStream && !columns->no_streams.empty()) {
    parts->nothing.resize(columns->size());
    parts->buffers[1] = parts->nothing.data();
  }
  if (column == kAction) parts->dictionary = strings(columns->actions);
  if (column == kDevice) parts->dictionary = strings(columns->devices);
  if (column == kStream) parts->dictionary = numbers(columns);
  ArrowArray array = array_of(columns->size(), 2, parts.release());
  array.null_count = nulls;
  return array;
}

ArrowArray batch_array(const std::shared_ptr<const Columns>& columns) {
  auto parts = std::make_unique<ArrayParts>();
  for (size_t i = 0; i < kColumns; ++i) {
    parts->children[i] = column_array(columns, static_cast<Column>(i));
    parts->pointers[i] = &parts->children[i];
  }
  ArrowArray array = array_of(columns->size(), 1, parts.get());
  array.n_children = kColumns;
  array.children = parts.release()->pointers.data();
  return array;
}

struct StreamParts {
  std::shared_ptr<const Columns> columns;
  bool is_done = false;
};

StreamParts& parts_of(ArrowArrayStream* stream) {
  return *static_cast<StreamParts*>(stream->private_data);
}

/// The callers are C: out of memory becomes the code that the specification has for it.
int or_no_memory(const std::function<void()>& action) {
  try {
    action();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int get_schema(ArrowArrayStream*, ArrowSchema* out) {
  return or_no_memory([&] { *out = batch_schema(); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  StreamParts& parts = parts_of(stream);
  if (std::exchange(parts.is_done, true)) {
    *out = {};  // a null release: the end
    return 0;
  }
  return or_no_memory([&] { *out = batch_array(parts.columns); });
}

const char* get_last_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
  delete &parts_of(stream);
  stream->release = nullptr;
}

}  // namespace

void fill_arrow_stream(std::shared_ptr<const Columns> columns, ArrowArrayStream* stream) {
  *stream = {.get_schema = get_schema,
             .get_next = get_next,
             .get_last_error = get_last_error,
             .release = release_stream,
             .private_data = new StreamParts{std::move(columns)}};
}

}  // namespace gpumemprof::python
