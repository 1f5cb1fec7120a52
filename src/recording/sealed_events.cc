#include "recording/sealed_events.h"

#include <zstd.h>

#include "base/prefetch.h"
#include "base/varint.h"
#include "recording/sealed_model.h"

namespace gpumemprof {

using namespace sealed;

namespace {

// No event needs more than this in one column: three varints of ten bytes.
constexpr uint64_t kMostColumnBytes = uint64_t{kMostSealedEvents} * 40;

}  // namespace

/// A column of varints taken apart beforehand, so that the next ones can be looked at. Past the
/// end: zeros, !ok.
class Numbers {
 public:
  void take(std::string_view bytes) {
    values_.clear();
    at_ = 0, ok_ = true;
    ByteReader in(bytes);
    while (in.left() > 0 && in.ok()) values_.push_back(in.varint());
    if (!in.ok()) values_.clear();
    values_.resize(values_.size() + kAhead);  // so that peek() needs no bound of its own
  }
  uint64_t next() {
    if (at_ + kAhead >= values_.size()) return ok_ = false, 0;
    return values_[at_++];
  }
  uint64_t peek() const { return values_[at_ + kAhead - 1]; }
  bool ok() const { return ok_; }

 private:
  static constexpr size_t kAhead = 6;
  std::vector<uint64_t> values_;
  size_t at_ = 0;
  bool ok_ = true;
};

struct EventDecoder::Impl {
  Model model;
  Numbers ages;
  std::string columns[kColumns];
  std::vector<uint32_t> thread_list;
  uint64_t last_explicit = 0;
  uint32_t shift = 0;
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  ~Impl() { ZSTD_freeDCtx(zstd); }

  bool head(ByteReader* in, uint32_t count, uint64_t* time);
  bool unpack(ByteReader* in, std::string* column);
  bool events(uint32_t count, uint64_t time, EventBatch* batch);
};

namespace {

/// Readers over the columns of varints, and the small steps of decoding. Fails by answering false.
struct Walk {
  Model& model;
  ByteReader tokens, addresses;
  Numbers& ages;
  ByteReader totals, numbers;
  uint32_t shift;
  uint64_t last_explicit = 0;

  bool token(uint8_t flag, const Situation& s, uint32_t* token) {
    switch (flag & 3) {
      case kTokenByThree:
        *token = model.by_three[s.three];
        break;
      case kTokenByOne:
        *token = model.by_one[s.one];
        break;
      case kTokenById:
        *token = static_cast<uint32_t>(tokens.varint_at_most(UINT32_MAX));
        break;
      default: {
        uint64_t kind = tokens.varint_at_most((uint64_t{UINT16_MAX} << 4) + 15);
        Token made{static_cast<uint16_t>(kind >> 4), static_cast<Action>(kind & 15), 0, 0, 0};
        made.stack = static_cast<uint32_t>(tokens.varint_at_most(UINT32_MAX));
        if (!is_free(made.action)) made.size_bytes = tokens.varint();
        if ((kind & 15) == 0 || (kind & 15) >= kActionCount) return false;
        *token = static_cast<uint32_t>(model.tokens.size());
        model.tokens.push_back(made);
      }
    }
    return *token != 0 && *token < model.tokens.size();
  }
  uint64_t explicit_address() {
    uint64_t delta = static_cast<uint64_t>(unzigzag(addresses.varint()));
    return last_explicit = ((last_explicit >> shift) + delta) << shift;
  }
  bool alloc(uint8_t flag, ThreadModel* t, uint32_t token, uint64_t* address) {
    const uint32_t key = mix(token, t->last_address);
    switch (flag >> 2 & 7) {
      case kPlaceAgain:
        *address = model.again[key];
        break;
      case kPlaceJustFreed:
        *address = model.just_freed[mix(model.tokens[token].size_bytes, 3)];
        break;
      case kPlaceOfToken:
        *address = model.tokens[token].last_address;
        break;
      case kExplicit:
        *address = explicit_address();
        break;
      default:
        return false;
    }
    remember_alloc(&model, t, token, key, *address);
    return true;
  }
  /// With thousands of live blocks nearly every age leads to a line that no cache holds (42 % of
  /// the time was spent there): ask for the one that a coming free will want, give or take the
  /// allocations until then.
  static void prefetch(const std::vector<Block>& blocks, uint64_t age) {
    if (age < blocks.size()) prefetch_line(&blocks[blocks.size() - 1 - age]);
  }
  bool free(uint8_t flag, uint32_t thread, uint32_t token, const Situation& s, uint64_t* address,
            uint64_t* block_size) {
    ThreadModel& t = model.threads[thread];
    const uint32_t key = mix(s.three, token);
    uint64_t owner = thread, age = 0;
    uint32_t block_token = 0;
    switch (flag >> 2 & 7) {
      case kBlockExpected:
        age = model.age[key];
        break;
      case kBlockByAge:
        age = ages.next(), prefetch(t.blocks, ages.peek());
        break;
      case kBlockOfThread:
        owner = ages.next(), age = ages.next();
        break;
      case kBlockSameAddress:
        *address = model.freed_address[key];
        break;
      case kExplicit:
        *address = explicit_address();
        break;
      default:
        return false;
    }
    const uint8_t code = flag >> 2 & 7;
    if (code != kBlockSameAddress && code != kExplicit) {
      if (owner >= model.threads.size()) return false;
      const auto& blocks = model.threads[owner].blocks;
      if (age == 0 || age > blocks.size()) return false;
      const Block& block = blocks[blocks.size() - age];
      *address = block.address, block_token = block.token;
    }
    *block_size = block_token != 0 ? model.tokens[block_token].size_bytes : 0;
    remember_free(&model, &t, token, key, *address,
                  owner == thread ? static_cast<uint32_t>(age) : 0, block_token);
    return true;
  }
  uint64_t free_size(uint8_t flag, uint64_t block_size, OpModel* op) {
    auto code = static_cast<SizeCode>(flag >> 5 & 3);
    if (code == kSizeExplicit) return numbers.varint();
    if (code == kSizeAsBefore) code = op->free_size;
    op->free_size = code;
    return code == kSizeOfBlock ? block_size : 0;
  }
  void read_totals(uint32_t event, TotalsModel* known, Action action, uint64_t size,
                   EventBatch* batch) {
    uint8_t code = totals.number<uint8_t>();
    known->allocated = expected_allocated(*known, action, size);
    if (code & 1) known->allocated += static_cast<uint64_t>(unzigzag(totals.varint()));
    if (code & 2) known->reserved += static_cast<uint64_t>(unzigzag(totals.varint()));
    batch->totals.push_back({event, known->allocated, known->reserved});
  }
  bool ok() const {
    return tokens.ok() && addresses.ok() && ages.ok() && totals.ok() && numbers.ok();
  }
};

}  // namespace

bool EventDecoder::Impl::unpack(ByteReader* in, std::string* column) {
  uint64_t size = in->varint_at_most(kMostColumnBytes);
  column->clear();
  if (size == 0) return in->ok();
  uint64_t packed = in->varint();
  std::string_view bytes = in->bytes(packed == 0 ? size : packed);
  if (!in->ok()) return false;
  if (packed == 0) return column->assign(bytes), true;
  column->resize(size);
  size_t n = ZSTD_decompressDCtx(zstd, column->data(), size, bytes.data(), bytes.size());
  return !ZSTD_isError(n) && n == size;
}

bool EventDecoder::Impl::head(ByteReader* in, uint32_t count, uint64_t* time) {
  *time = in->varint_at_most(UINT64_MAX / 4);
  shift = static_cast<uint32_t>(in->varint_at_most(63));
  uint64_t threads = in->count(1);
  if (!in->ok() || threads == 0 || threads > count) return false;
  thread_list.resize(threads);
  for (uint32_t& thread : thread_list)
    thread = static_cast<uint32_t>(in->varint_at_most(UINT32_MAX));
  for (std::string& column : columns) {
    if (!unpack(in, &column)) return false;
  }
  for (Column column : {kThreads, kFlags, kStepLow, kStepHigh}) {
    if (columns[column].size() != count) return false;
  }
  model.reset();
  model.threads.resize(threads);
  return in->ok() && in->at_end();
}

bool EventDecoder::Impl::events(uint32_t count, uint64_t time, EventBatch* batch) {
  auto bytes = [&](Column c) { return reinterpret_cast<const uint8_t*>(columns[c].data()); };
  const uint8_t *threads = bytes(kThreads), *flags = bytes(kFlags);
  const uint8_t *low = bytes(kStepLow), *high = bytes(kStepHigh);
  Walk walk{model, ByteReader(columns[kTokens]),       ByteReader(columns[kAddresses]),
            ages,  ByteReader(columns[kTotalsColumn]), ByteReader(columns[kNumbers]),
            shift};
  batch->overwrite(count);
  ages.take(columns[kAges]);
  uint64_t thread = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (threads[i] != 0) thread = threads[i] == 255 ? walk.numbers.varint() : threads[i] - 1u;
    if (thread >= thread_list.size() || (i == 0 && threads[i] == 0)) return false;
    ThreadModel& t = model.threads[thread];
    const Situation situation(t);
    const uint8_t flag = flags[i];
    uint32_t token;
    if (!walk.token(flag, situation, &token)) return false;
    remember_token(&model, situation, token);
    const Token& what = model.tokens[token];
    const Action action = what.action;

    const uint32_t step_key = mix(situation.three, token + 11);
    uint64_t off = high[i];
    if (off == 255) off += walk.numbers.varint_at_most(UINT64_MAX >> 9);
    const uint64_t step =
        expected_step(model, step_key) + static_cast<uint64_t>(unzigzag(off << 8 | low[i]));
    if (step > UINT64_MAX / 4 || time + step > UINT64_MAX / 4) return false;
    remember_step(&model, step_key, step);
    batch->time_ns[i] = time += step;

    OpModel& op = op_model(&model, action, what.device);
    uint64_t address = 0, size = what.size_bytes;
    batch->stack[i] = what.stack, batch->device[i] = what.device;
    const uint16_t device = what.device;
    if (action == Action::kAlloc) {
      if (!walk.alloc(flag, &t, token, &address)) return false;
    } else if (is_free(action)) {
      uint64_t block_size = 0;
      if (!walk.free(flag, static_cast<uint32_t>(thread), token, situation, &address, &block_size))
        return false;
      size = walk.free_size(flag, block_size, &op);
    } else {
      if ((flag >> 2 & 7) == kExplicit) address = walk.explicit_address();
      push_history(&t, token << 1);
    }
    if (flag & kTotalsFlipped) op.has_totals = !op.has_totals;
    if (op.has_totals) walk.read_totals(i, &totals_model(&model, device), action, size, batch);
    batch->address[i] = address, batch->size_bytes[i] = size;
    batch->thread[i] = thread_list[thread], batch->action[i] = action;
  }
  return walk.ok();
}

EventDecoder::EventDecoder() : impl_(std::make_unique<Impl>()) {}
EventDecoder::~EventDecoder() = default;

Status EventDecoder::decode(std::string_view bytes, uint32_t count, EventBatch* batch) {
  if (count == 0 || count > kMostSealedEvents) {
    batch->clear();
    return fail(ErrorCode::kBadInput, "an impossible number of events");
  }
  ByteReader in(bytes);
  uint64_t time = 0;
  if (impl_->head(&in, count, &time) && impl_->events(count, time, batch)) return {};
  batch->clear();
  return fail(ErrorCode::kBadInput, "its events cannot be decoded");
}

}  // namespace gpumemprof
