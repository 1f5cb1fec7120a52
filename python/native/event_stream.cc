#include "native/event_stream.h"

#include <array>
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
constexpr std::array<ColumnType, kColumns> kTypes = {{{"time_ns", "l", nullptr},
                                                      {"action", "C", "u"},
                                                      {"address", "L", nullptr},
                                                      {"size_bytes", "L", nullptr},
                                                      {"stack", "I", nullptr},
                                                      {"device", "S", "u"},
                                                      {"thread", "I", nullptr},
                                                      {"stream", "S", "l"}}};

/// Whether the value of a column means something. All that may be null is decided here.
bool is_known(const Columns& c, Column column, size_t i) {
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

const void* values_of(const Columns& c, Column column) {
  const std::array<const void*, kColumns> values = {
      c.time_ns.data(), c.action.data(), c.address.data(), c.size_bytes.data(),
      c.stack.data(),   c.device.data(), c.thread.data(),  c.stream.data()};
  return values[column];
}

struct Texts {
  std::vector<int32_t> offsets{0};
  std::string text;
};

/// What the batch needs beside the columns.
struct EventBatchParts {
  std::shared_ptr<const Columns> columns;
  std::array<std::vector<uint8_t>, kColumns> known;
  std::vector<uint16_t> no_stream;  // indexes of a column that is not known
  Texts actions, devices;
};

std::shared_ptr<const ArrowColumn> dictionary_of(const std::vector<std::string>& names,
                                                 Texts* texts) {
  for (const std::string& name : names) {
    texts->text += name;  // a device's name is short, and there are 65,536 at most
    texts->offsets.push_back(static_cast<int32_t>(texts->text.size()));
  }
  return std::make_shared<ArrowColumn>(ArrowColumn{.format = "u",
                                                   .length = static_cast<int64_t>(names.size()),
                                                   .values = texts->offsets.data(),
                                                   .texts = texts->text.data()});
}

class EventTable final : public ArrowTable {
 public:
  explicit EventTable(std::shared_ptr<const Columns> columns) : columns_(std::move(columns)) {}

  std::vector<ArrowColumn> columns() const override {
    std::vector<ArrowColumn> out;
    for (const ColumnType& type : kTypes) {
      out.push_back({.name = type.name, .format = type.format});
      if (type.dictionary)
        out.back().dictionary =
            std::make_shared<ArrowColumn>(ArrowColumn{.format = type.dictionary});
    }
    return out;
  }

  ArrowBatch next() override {
    if (std::exchange(is_done_, true)) return {};
    const Columns& all = *columns_;
    auto parts = std::make_shared<EventBatchParts>();
    parts->columns = columns_;
    ArrowBatch batch{columns(), parts, static_cast<int64_t>(all.size())};
    for (size_t i = 0; i < kColumns; ++i) {
      const auto column = static_cast<Column>(i);
      ArrowColumn& out = batch.columns[i];
      out.length = batch.length;
      out.nulls = find_nulls(column, &parts->known[i]);
      out.known = parts->known[i].data(), out.values = values_of(all, column);
    }
    batch.columns[kAction].dictionary = dictionary_of(all.actions, &parts->actions);
    batch.columns[kDevice].dictionary = dictionary_of(all.devices, &parts->devices);
    batch.columns[kStream].dictionary = std::make_shared<ArrowColumn>(
        ArrowColumn{.format = "l",
                    .length = static_cast<int64_t>(all.streams.size()),
                    .values = all.streams.data()});
    if (!all.no_streams.empty()) {
      parts->no_stream.resize(all.size());
      batch.columns[kStream].values = parts->no_stream.data();
    }
    return batch;
  }

 private:
  int64_t find_nulls(Column column, std::vector<uint8_t>* bits) const {
    bits->assign((columns_->size() + 7) / 8, 0);
    int64_t nulls = 0;
    for (size_t i = 0; i < columns_->size(); ++i) {
      const bool is = is_known(*columns_, column, i);
      (*bits)[i / 8] |= static_cast<uint8_t>(is << (i % 8));
      nulls += !is;
    }
    return nulls;
  }

  std::shared_ptr<const Columns> columns_;
  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<ArrowTable> arrow_of_events(std::shared_ptr<const Columns> columns) {
  return std::make_unique<EventTable>(std::move(columns));
}

}  // namespace gpumemprof::python
