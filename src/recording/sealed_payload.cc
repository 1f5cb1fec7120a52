#include "recording/sealed_payload.h"

#include <zstd.h>

#include "base/varint.h"
#include "recording/sealed_file.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostDefinitionBytes = 256u << 20;

std::string compressed(std::string_view body) {
  std::string payload;
  put_compressed(&payload, body);
  return payload;
}

/// Reads what is told of some events of a batch: one(event, in) after the step to each.
template <class One>
Status parse_of_events(std::string_view payload, const EventBatch& batch, const char* damaged,
                       One one) {
  auto body = parse_compressed(payload, kMostDefinitionBytes);
  if (!body) return std::unexpected(body.error());
  ByteReader in(*body);
  uint64_t event = 0;
  for (bool is_first = true; in.ok() && !in.at_end(); is_first = false) {
    const uint64_t step = in.varint_at_most(UINT32_MAX);
    event += step;
    if (event >= batch.size() || (step == 0 && !is_first)) in.stop();
    one(static_cast<uint32_t>(event), in);
  }
  if (!in.ok()) return fail(ErrorCode::kBadInput, damaged);
  return {};
}

}  // namespace

void put_compressed(std::string* out, std::string_view bytes) {
  put_varint(out, bytes.size());
  size_t at = out->size();
  out->resize(at + ZSTD_compressBound(bytes.size()));
  size_t n =
      ZSTD_compress(out->data() + at, out->size() - at, bytes.data(), bytes.size(), kZstdLevel);
  out->resize(at + (ZSTD_isError(n) ? 0 : n));
}

Result<std::string> parse_compressed(std::string_view bytes, size_t limit) {
  ByteReader in(bytes);
  uint64_t size = in.varint();
  std::string_view frame = in.bytes(in.left());
  // What we write shrinks to a tenth at the most extreme; a page of zeros would shrink to a
  // thousandth and more.
  limit = std::min<size_t>(limit, (1u << 20) + 512 * frame.size());
  if (!in.ok() || size > limit) return fail(ErrorCode::kBadInput, "an impossible length");
  // A frame says how much it holds; a lie about it must not cost memory.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size) {
    return fail(ErrorCode::kBadInput, "a length that does not match the compressed data");
  }
  std::string out(size, '\0');
  size_t n = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(n) || n != size) return fail(ErrorCode::kBadInput, "damaged compressed data");
  return out;
}

void put_consumed(std::string* out, const ConsumedTable& table) {
  size_t count = 0;
  for (const auto& [stream, list] : table) count += list.size();
  put_varint(out, count);
  uint64_t previous = 0;
  for (const auto& [stream, list] : table) {
    for (const auto& [from, to] : list) {
      put_varint(out, stream - previous), put_varint(out, from), put_varint(out, to - from);
      previous = stream;
    }
  }
}

Result<size_t> parse_consumed(std::string_view bytes, ConsumedTable* table) {
  ByteReader in(bytes);
  uint64_t count = in.count(3), stream = 0;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    stream += in.varint_at_most(UINT32_MAX);
    uint64_t from = in.varint_at_most(UINT64_MAX / 2), size = in.varint_at_most(UINT64_MAX / 2);
    if (stream > UINT32_MAX) in.stop();
    if (in.ok()) (*table)[static_cast<uint32_t>(stream)].add({from, from + size});
  }
  if (!in.ok()) return fail(ErrorCode::kBadInput, "a damaged table of streams");
  return in.offset();
}

std::string encode_definitions(const Tables& tables, const StreamThreads& streams,
                               DefinedSoFar* from) {
  DefinedSoFar to{tables.strings.size(), tables.stacks.frame_count(), tables.stacks.stack_count(),
                  static_cast<uint32_t>(tables.threads.size()),
                  static_cast<uint32_t>(tables.devices.size())};
  if (to == *from) return {};
  std::string body;
  auto begin = [&](uint32_t first, uint32_t end) {
    put_varint(&body, first), put_varint(&body, end - first);
  };
  begin(from->strings, to.strings);
  for (uint32_t i = from->strings; i < to.strings; ++i) put_text(&body, tables.strings.get(i));
  begin(from->frames, to.frames);
  for (uint32_t i = from->frames; i < to.frames; ++i) {
    const Frame& f = tables.stacks.frame(i);
    put_varint(&body, f.file), put_varint(&body, f.function), put_varint(&body, f.line);
  }
  begin(from->stacks, to.stacks);
  for (uint32_t i = from->stacks; i < to.stacks; ++i) {
    put_varint(&body, tables.stacks.node(i).parent), put_varint(&body, tables.stacks.node(i).frame);
  }
  std::vector<uint32_t> stream_of(tables.threads.size(), 0);
  for (auto [stream, thread] : streams) {
    if (thread < stream_of.size()) stream_of[thread] = stream;
  }
  begin(from->threads, to.threads);
  for (uint32_t i = from->threads; i < to.threads; ++i) {
    put_varint(&body, stream_of[i]);
    put_varint(&body, tables.threads[i].tid), put_text(&body, tables.threads[i].name);
  }
  begin(from->devices, to.devices);
  for (uint32_t i = from->devices; i < to.devices; ++i) {
    const Device& d = tables.devices[i];
    put_number(&body, d.type), put_number(&body, d.index);
    put_number(&body, static_cast<uint8_t>(d.layer));
    put_number(&body, static_cast<uint8_t>(d.size_is_requested));
  }
  *from = to;
  return compressed(body);
}

std::string encode_device_names(const Tables& tables, uint32_t first) {
  std::string payload;
  for (uint32_t i = first; i < tables.devices.size(); ++i) {
    const std::string& name = tables.devices[i].name;
    if (!name.empty()) put_varint(&payload, i), put_text(&payload, name);
  }
  return payload;
}

std::string encode_requested(const EventBatch& batch) {
  std::string body;
  uint32_t previous = 0;
  for (const RequestedSize& one : batch.requested) {
    put_varint(&body, one.event - previous);
    put_varint(&body, zigzag(static_cast<int64_t>(batch.size_bytes[one.event] - one.bytes)));
    previous = one.event;
  }
  return compressed(body);
}

Status parse_requested(std::string_view payload, EventBatch* batch) {
  const auto one = [&](uint32_t event, ByteReader& in) {
    const uint64_t less = static_cast<uint64_t>(unzigzag(in.varint()));
    if (in.ok()) batch->requested.push_back({event, batch->size_bytes[event] - less});
  };
  return parse_of_events(payload, *batch, "damaged requested sizes", one);
}

namespace {

// Of a detail's second byte.
constexpr uint8_t kIsDelayed = 1, kHasPlace = 2, kHasDeviceFree = 4;

}  // namespace

std::string encode_details(const EventBatch& batch) {
  std::string body;
  uint32_t previous = 0;
  for (const AllocatorDetail& one : batch.details) {
    const bool has_place = one.stream != 0 || one.pool != std::pair<int64_t, int64_t>{0, 0};
    put_varint(&body, one.event - previous);
    put_number(&body, static_cast<uint8_t>((one.is_delayed_free ? kIsDelayed : 0) |
                                           (has_place ? kHasPlace : 0) |
                                           (one.has_device_free ? kHasDeviceFree : 0)));
    if (has_place) {
      put_varint(&body, zigzag(one.stream));
      put_varint(&body, zigzag(one.pool.first)), put_varint(&body, zigzag(one.pool.second));
    }
    if (one.has_device_free) put_varint(&body, one.device_free_bytes);
    previous = one.event;
  }
  return compressed(body);
}

Status parse_details(std::string_view payload, EventBatch* batch) {
  const auto read = [&](uint32_t event, ByteReader& in) {
    AllocatorDetail one{.event = event};
    const uint8_t holds = in.number<uint8_t>();
    one.is_delayed_free = holds & kIsDelayed;
    if (holds & kHasPlace) {
      one.stream = unzigzag(in.varint());
      one.pool.first = unzigzag(in.varint()), one.pool.second = unzigzag(in.varint());
    }
    if (holds & kHasDeviceFree) one.has_device_free = true, one.device_free_bytes = in.varint();
    if (in.ok()) batch->details.push_back(one);
  };
  return parse_of_events(payload, *batch, "damaged details of an allocator", read);
}

std::string encode_allocators(const Tables& tables) {
  std::string payload;
  for (const FollowedAllocator& one : tables.allocators) {
    put_number(&payload, one.type), put_number(&payload, one.index);
    put_number(&payload, static_cast<uint8_t>(one.is_followed));
    put_varint(&payload, one.device_bytes);
    put_text(&payload, one.torch_version), put_text(&payload, one.settings);
    put_text(&payload, one.why_not);
  }
  return payload;
}

Status parse_allocators(std::string_view payload, uint32_t process, ProcessEntries* entries) {
  ByteReader in(payload);
  while (in.ok() && !in.at_end()) {
    FollowedAllocator one{.process = process};
    one.type = in.number<int8_t>(), one.index = in.number<int8_t>();
    one.is_followed = in.number<uint8_t>() == 1;
    one.device_bytes = in.varint();
    one.torch_version = printable_ascii(in.text()), one.settings = printable_ascii(in.text());
    one.why_not = printable_ascii(in.text());
    if (in.ok()) entries->add_allocator(one);
  }
  if (!in.ok()) return fail(ErrorCode::kBadInput, "damaged facts of an allocator");
  return {};
}

std::string encode_steps(const EventBatch& batch) {
  std::string body;
  absl::flat_hash_map<uint32_t, int64_t> step_of;  // by thread
  uint64_t previous = 0, last = 0;
  for (size_t i = 0; i < batch.step.size(); ++i) {
    if (is_free(batch.action[i])) continue;
    int64_t& known = step_of.try_emplace(batch.thread[i], kNoStep).first->second;
    if (batch.step[i] == known) continue;
    known = batch.step[i];
    put_varint(&body, (i - previous) << 1 | (known != kNoStep));
    previous = i;
    if (known == kNoStep) continue;
    put_varint(&body, zigzag(static_cast<int64_t>(static_cast<uint64_t>(known) - last)));
    last = static_cast<uint64_t>(known);
  }
  return compressed(body);
}

Status parse_steps(std::string_view payload, EventBatch* batch) {
  auto body = parse_compressed(payload, kMostDefinitionBytes);
  if (!body) return std::unexpected(body.error());
  ByteReader in(*body);
  absl::flat_hash_map<uint32_t, int64_t> step_of;
  uint64_t change = 0, last = 0;
  bool is_known = false;
  const auto next_change = [&](bool is_first) {
    if (in.at_end()) return change = UINT64_MAX, void();
    const uint64_t word = in.varint_at_most(uint64_t{UINT32_MAX} << 1);
    if (word >> 1 == 0 && !is_first) in.stop();
    change += word >> 1, is_known = word & 1;
    if (is_known) last += static_cast<uint64_t>(unzigzag(in.varint()));
    if (change >= batch->size()) in.stop();
  };
  next_change(true);
  if (change == UINT64_MAX) return {};
  batch->step.assign(batch->size(), kNoStep);
  for (size_t i = 0; i < batch->size() && in.ok(); ++i) {
    if (is_free(batch->action[i])) {
      if (i == change) in.stop();  // it has none
      continue;
    }
    int64_t& known = step_of.try_emplace(batch->thread[i], kNoStep).first->second;
    if (i == change) {
      known = is_known ? static_cast<int64_t>(last) : kNoStep;
      next_change(false);
    }
    batch->step[i] = known;
  }
  if (!in.ok()) return batch->step.clear(), fail(ErrorCode::kBadInput, "damaged steps");
  return {};
}

Status parse_device_names(std::string_view payload, FileIds* ids) {
  ByteReader in(payload);
  while (in.ok() && !in.at_end()) {
    uint64_t id = in.varint_at_most(UINT16_MAX);
    std::string name = plain_device_name(in.text());
    if (name.size() > format::kMaxDeviceName) in.stop();
    if (in.ok()) ids->device_names[id] = std::move(name);
  }
  if (!in.ok()) return fail(ErrorCode::kBadInput, "damaged names of devices");
  return {};
}

namespace {

/// The position of an explicit id in a table of the file's ids. Ids before it that no chunk defines
/// (theirs is damaged) become `unknown`. Each id costs at least a byte, apart from such a gap,
/// which is bounded here.
template <class T>
bool grow_to(std::vector<T>* ids, uint64_t first, T unknown) {
  constexpr uint64_t kMostGap = 1u << 18, kMostIds = 1u << 26;
  if (first > ids->size() + kMostGap || first > kMostIds) return false;
  if (first > ids->size()) ids->resize(first, unknown);
  return true;
}
template <class T>
void define(std::vector<T>* ids, uint64_t id, T value) {
  if (id < ids->size()) {
    (*ids)[id] = value;
  } else {
    ids->push_back(value);
  }
}
uint32_t mapped(const std::vector<uint32_t>& ids, uint64_t id) {
  return id < ids.size() ? ids[id] : 0;
}

class DefinitionParser {
 public:
  DefinitionParser(std::string_view body, uint32_t process, Tables* tables, FileIds* ids)
      : in_(body), process_(process), tables_(tables), ids_(ids) {}

  bool parse() {
    each(&ids_->strings, 1, 0u, [&] { return tables_->strings.intern(in_.text()); });
    each(&ids_->frames, 3, 0u, [&] {
      Frame frame;
      frame.file = mapped(ids_->strings, in_.varint());
      frame.function = mapped(ids_->strings, in_.varint());
      frame.line = static_cast<uint32_t>(in_.varint_at_most(UINT32_MAX));
      return tables_->stacks.intern_frame(frame);
    });
    each(&ids_->stacks, 2, 0u, [&] {
      uint32_t parent = mapped(ids_->stacks, in_.varint());
      return tables_->stacks.push(parent, mapped(ids_->frames, in_.varint()));
    });
    each(&ids_->threads, 3, UINT32_MAX, [&] {
      uint32_t stream = static_cast<uint32_t>(in_.varint_at_most(UINT32_MAX));
      uint32_t tid = static_cast<uint32_t>(in_.varint_at_most(UINT32_MAX));
      const std::string_view name = in_.text().substr(0, 64);
      if (is_known(ids_->threads, UINT32_MAX)) return ids_->threads[id_];
      tables_->threads.push_back({process_, tid, std::string(name)});
      uint32_t thread = static_cast<uint32_t>(tables_->threads.size() - 1);
      ids_->thread_of_stream.try_emplace(stream, thread);
      return thread;
    });
    each(&ids_->devices, 4, uint16_t{UINT16_MAX}, [&] {
      Device device{process_};
      device.type = in_.number<int8_t>(), device.index = in_.number<int8_t>();
      uint8_t layer = in_.number<uint8_t>();
      device.layer =
          layer <= uint8_t(Layer::kDriver) ? static_cast<Layer>(layer) : Layer::kFramework;
      device.size_is_requested = in_.number<uint8_t>() != 0;
      if (auto name = ids_->device_names.find(id_); name != ids_->device_names.end()) {
        device.name = name->second;
      }
      if (is_known(ids_->devices, uint16_t{UINT16_MAX})) return ids_->devices[id_];
      if (tables_->devices.size() >= UINT16_MAX) in_.stop();
      tables_->devices.push_back(device);
      return static_cast<uint16_t>(tables_->devices.size() - 1);
    });
    return in_.ok() && in_.at_end();
  }

 private:
  template <class T, class One>
  void each(std::vector<T>* ids, size_t least_bytes, T unknown, One one) {
    uint64_t first = in_.varint(), count = in_.count(least_bytes);
    if (!in_.ok() || !grow_to(ids, first, unknown)) return in_.stop();
    for (id_ = first; id_ < first + count && in_.ok(); ++id_) {
      T value = one();
      if (in_.ok()) define(ids, id_, value);
    }
  }

  /// Chunks that were merged into one may still be there, too: the first one counts.
  template <class T>
  bool is_known(const std::vector<T>& ids, T unknown) const {
    return id_ < ids.size() && ids[id_] != unknown;
  }

  ByteReader in_;
  uint64_t id_ = 0;  // the file's, of what is read now
  uint32_t process_;
  Tables* tables_;
  FileIds* ids_;
};

}  // namespace

Status parse_definitions(std::string_view payload, uint32_t process, Tables* tables, FileIds* ids) {
  auto body = parse_compressed(payload, kMostDefinitionBytes);
  if (!body) return std::unexpected(body.error());
  if (!DefinitionParser(*body, process, tables, ids).parse()) {
    return fail(ErrorCode::kBadInput, "damaged definitions");
  }
  return {};
}

std::string encode_footer(const Footer& footer) {
  std::string payload;
  put_number(&payload, footer.header);
  put_number(&payload, footer.state);
  put_number(&payload, footer.events);
  put_number(&payload, footer.lost);
  return payload;
}

Result<Footer> parse_footer(std::string_view payload) {
  ByteReader in(payload);
  Footer footer{};
  footer.header = in.number<format::FileHeader>();
  footer.state = in.number<format::FileState>();
  footer.events = in.number<uint64_t>();
  footer.lost.damaged_records = in.number<uint64_t>();
  footer.lost.damaged_bytes = in.number<uint64_t>();
  if (!in.ok()) return fail(ErrorCode::kBadInput, "a footer that is too short");
  footer.tells_missing = !in.at_end();
  if (!footer.tells_missing) return footer;
  footer.lost.missing_events = in.number<uint64_t>();
  footer.lost.is_open_ended = in.number<uint64_t>();
  if (!in.ok()) return fail(ErrorCode::kBadInput, "a footer that is too short");
  return footer;
}

}  // namespace gpumemprof
