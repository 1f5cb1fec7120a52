#include "recording/sealed_marks.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>

#include "base/varint.h"
#include "recording/sealed_payload.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostBytes = 256u << 20;

// Of a mark's head byte: bits 0 to 2 are its kind, 3 and 4 a Place.
enum Place : uint8_t {
  kNowhere = 0,
  kOfAllocation = 1,  // by how many allocations ago
  kTold = 2,          // as one that was told before, by number
  kNew = 3            // zigzag difference from the one told last
};
constexpr uint8_t kOtherThread = 32, kHasValue = 64, kHasText = 128;

// A column a field, as similar numbers side by side shrink best.
enum Column { kHeads, kPositions, kTimes, kAddresses, kValues, kThreads, kTexts, kColumns };

/// The time of the event before a mark, or of the first.
uint64_t time_before(const EventBatch& batch, uint32_t event) {
  if (batch.size() == 0) return 0;
  return batch.time_ns[event == 0 ? 0 : event - 1];
}

struct Expected {
  uint32_t position = 0, thread = 0, text = 0;
  uint64_t address = 0, time_ns = 0;
  std::array<uint64_t, 8> value{};  // by kind
};

class Writer {
 public:
  explicit Writer(const EventBatch& batch) : batch_(batch) {}

  std::string write() {
    for (const Mark& mark : batch_.marks) one(mark);
    std::string body, payload;
    for (const std::string& column : columns_) put_varint(&body, column.size());
    for (const std::string& column : columns_) body += column;
    put_compressed(&payload, body);
    return payload;
  }

 private:
  void one(const Mark& mark) {
    uint8_t head = static_cast<uint8_t>(mark.kind);
    put_varint(&columns_[kPositions], mark.before_event - last_.position);
    last_.position = mark.before_event;
    if (mark.kind != MarkKind::kSaved) {
      put_varint(&columns_[kTimes], zigzag(static_cast<int64_t>(mark.time_ns - last_.time_ns)));
      last_.time_ns = mark.time_ns;
    }
    head |= static_cast<uint8_t>(place(mark) << 3);
    uint64_t& value = last_.value[head & 7];
    if (mark.value != value) {
      head |= kHasValue, value = mark.value;
      put_varint(&columns_[kValues], mark.value);
    }
    if (mark.thread != last_.thread) {
      head |= kOtherThread, last_.thread = mark.thread;
      put_varint(&columns_[kThreads], mark.thread);
    }
    if (mark.text != 0) {
      head |= kHasText;
      put_varint(&columns_[kTexts], zigzag(int64_t{mark.text} - int64_t{last_.text}));
      last_.text = mark.text;
    }
    columns_[kHeads].push_back(static_cast<char>(head));
  }

  Place place(const Mark& mark) {
    for (; seen_ < mark.before_event && seen_ < batch_.size(); ++seen_) {
      if (batch_.action[seen_] == Action::kAlloc) allocs_[batch_.address[seen_]] = ++alloc_count_;
    }
    if (mark.address == 0) return kNowhere;
    std::string* out = &columns_[kAddresses];
    if (auto known = allocs_.find(mark.address); known != allocs_.end()) {
      return put_varint(out, alloc_count_ - known->second), kOfAllocation;
    }
    auto [known, is_new] = told_.try_emplace(mark.address, told_.size());
    if (!is_new) return put_varint(out, known->second), kTold;
    put_varint(out, zigzag(static_cast<int64_t>(mark.address - last_.address)));
    last_.address = mark.address;
    return kNew;
  }

  const EventBatch& batch_;
  std::array<std::string, kColumns> columns_;
  Expected last_;
  size_t seen_ = 0;
  uint64_t alloc_count_ = 0;
  absl::flat_hash_map<uint64_t, uint64_t> allocs_, told_;  // by address
};

/// `has_events`: else addresses of allocations stay 0 and positions are not looked at.
class Reader {
 public:
  Reader(const EventBatch& batch, bool has_events) : batch_(batch), has_events_(has_events) {}

  bool read(std::string_view body, std::vector<Mark>* out) {
    ByteReader in(body);
    std::array<uint64_t, kColumns> sizes;
    for (uint64_t& size : sizes) size = in.varint_at_most(body.size());
    for (size_t i = 0; i < kColumns; ++i) columns_[i] = ByteReader(in.bytes(sizes[i]));
    if (!in.ok() || !in.at_end()) return false;
    while (!columns_[kHeads].at_end()) {
      Mark mark;
      if (out->size() >= kMostMarks || !one(&mark)) return false;
      out->push_back(mark);
    }
    for (const ByteReader& column : columns_) {
      if (!column.ok() || !column.at_end()) return false;
    }
    return true;
  }

 private:
  bool one(Mark* mark) {
    const uint8_t head = columns_[kHeads].number<uint8_t>(), kind = head & 7;
    if (kind == 0 || kind > static_cast<uint8_t>(kLastMarkKind)) return false;
    mark->kind = static_cast<MarkKind>(kind);
    const uint64_t position = last_.position + columns_[kPositions].varint_at_most(UINT32_MAX);
    if (position > (has_events_ ? batch_.size() : UINT32_MAX)) return false;
    mark->before_event = last_.position = static_cast<uint32_t>(position);
    if (mark->kind == MarkKind::kSaved) {
      mark->time_ns = time_before(batch_, mark->before_event);
    } else {
      last_.time_ns += static_cast<uint64_t>(unzigzag(columns_[kTimes].varint()));
      if (last_.time_ns > UINT64_MAX / 4) return false;
      mark->time_ns = last_.time_ns;
    }
    if (!place(static_cast<Place>(head >> 3 & 3), mark)) return false;
    if (head & kHasValue) last_.value[kind] = columns_[kValues].varint();
    if (head & kOtherThread) {
      last_.thread = static_cast<uint32_t>(columns_[kThreads].varint_at_most(UINT32_MAX));
    }
    mark->value = last_.value[kind], mark->thread = last_.thread;
    if (head & kHasText) {
      last_.text += static_cast<uint32_t>(unzigzag(columns_[kTexts].varint()));
      mark->text = last_.text;
    }
    return std::all_of(columns_.begin(), columns_.end(), [](const auto& c) { return c.ok(); });
  }

  bool place(Place place, Mark* mark) {
    ByteReader& in = columns_[kAddresses];
    for (; has_events_ && seen_ < mark->before_event; ++seen_) {
      if (batch_.action[seen_] == Action::kAlloc) allocs_.push_back(batch_.address[seen_]);
    }
    switch (place) {
      case kNowhere:
        return true;
      case kOfAllocation: {
        const uint64_t ago = in.varint();
        if (!has_events_) return true;
        if (ago >= allocs_.size()) return false;
        mark->address = allocs_[allocs_.size() - 1 - ago];
        return true;
      }
      case kTold: {
        const uint64_t number = in.varint();
        if (number >= told_.size()) return false;
        mark->address = told_[number];
        return true;
      }
      default:
        last_.address += static_cast<uint64_t>(unzigzag(in.varint()));
        told_.push_back(mark->address = last_.address);
        return true;
    }
  }

  const EventBatch& batch_;
  const bool has_events_;
  std::array<ByteReader, kColumns> columns_{ByteReader({}), ByteReader({}), ByteReader({}),
                                            ByteReader({}), ByteReader({}), ByteReader({}),
                                            ByteReader({})};
  Expected last_;
  size_t seen_ = 0;
  std::vector<uint64_t> allocs_, told_;  // addresses
};

Result<std::vector<Mark>> parse(std::string_view payload, const EventBatch& batch,
                                bool has_events) {
  auto body = parse_compressed(payload, kMostBytes);
  if (!body) return std::unexpected(body.error());
  std::vector<Mark> marks;
  if (!Reader(batch, has_events).read(*body, &marks)) {
    return fail(ErrorCode::kBadInput, "damaged marks");
  }
  return marks;
}

}  // namespace

std::string encode_marks(const EventBatch& batch) { return Writer(batch).write(); }

Status parse_marks(std::string_view payload, EventBatch* batch) {
  auto marks = parse(payload, *batch, true);
  if (!marks) return std::unexpected(marks.error());
  batch->marks = std::move(*marks);
  return {};
}

Result<std::vector<Mark>> parse_marks_alone(std::string_view payload, MarkKind kind) {
  auto marks = parse(payload, {}, false);
  if (!marks) return marks;
  std::erase_if(*marks, [&](const Mark& mark) { return mark.kind != kind; });
  return marks;
}

}  // namespace gpumemprof
