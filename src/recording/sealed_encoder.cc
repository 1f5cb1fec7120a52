#include <absl/container/flat_hash_map.h>
#include <zstd.h>

#include <algorithm>
#include <bit>

#include "base/varint.h"
#include "recording/sealed_events.h"
#include "recording/sealed_model.h"
#include "recording/sealed_payload.h"

namespace gpumemprof {

using namespace sealed;

namespace {

struct TokenKey {
  uint64_t size_bytes;
  uint32_t stack;
  uint32_t kind;  // action << 16 | device
  bool operator==(const TokenKey&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const TokenKey& k) {
    return H::combine(std::move(h), k.size_bytes, k.stack, k.kind);
  }
};

struct Owner {
  uint32_t thread, index;
};

}  // namespace

struct EventEncoder::Impl {
  Model model;
  std::string columns[kColumns];
  absl::flat_hash_map<TokenKey, uint32_t> token_ids;
  absl::flat_hash_map<uint64_t, Owner> owners;         // live blocks of the chunk, by address
  absl::flat_hash_map<uint32_t, uint32_t> thread_ids;  // thread -> index in the chunk
  std::vector<uint32_t> thread_list;
  uint64_t last_explicit = 0;
  uint32_t shift = 0;
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  ~Impl() { ZSTD_freeCCtx(zstd); }

  void reset() {
    model.reset();
    for (std::string& column : columns) column.clear();
    token_ids.clear(), owners.clear(), thread_ids.clear(), thread_list.clear();
    last_explicit = 0;
  }
  uint32_t thread_of(const EventBatch& batch, size_t i, uint32_t previous);
  uint32_t token_of(const EventBatch& batch, size_t i, const Situation& s, uint8_t* flag);
  void put_address(uint64_t address);
  void alloc(uint32_t thread, uint32_t token, uint64_t address, uint8_t* flag);
  uint64_t free(uint32_t thread, uint32_t token, const Situation& s, uint64_t address,
                uint8_t* flag);
  void free_size(uint64_t size, uint64_t block_size, OpModel* op, uint8_t* flag);
  void step(uint32_t key, uint64_t step);
  void totals(const DeviceTotals& totals, TotalsModel* known, Action action, uint64_t size);
  void events(const EventBatch& batch);
};

uint32_t EventEncoder::Impl::thread_of(const EventBatch& batch, size_t i, uint32_t previous) {
  auto [known, added] =
      thread_ids.try_emplace(batch.thread[i], static_cast<uint32_t>(thread_list.size()));
  if (added) thread_list.push_back(batch.thread[i]), model.threads.emplace_back();
  uint32_t thread = known->second;
  if (thread == previous) {
    columns[kThreads].push_back(0);
  } else if (thread < 254) {
    columns[kThreads].push_back(static_cast<char>(1 + thread));
  } else {
    columns[kThreads].push_back(static_cast<char>(255));
    put_varint(&columns[kNumbers], thread);
  }
  return thread;
}

uint32_t EventEncoder::Impl::token_of(const EventBatch& batch, size_t i, const Situation& s,
                                      uint8_t* flag) {
  const Action action = batch.action[i];
  TokenKey key{is_free(action) ? 0 : batch.size_bytes[i], batch.stack[i],
               static_cast<uint32_t>(action) << 16 | batch.device[i]};
  auto [known, added] = token_ids.try_emplace(key, static_cast<uint32_t>(model.tokens.size()));
  const uint32_t token = known->second;
  if (added) {
    *flag |= kTokenNew;
    model.tokens.push_back({batch.device[i], action, key.stack, key.size_bytes, 0});
    std::string* out = &columns[kTokens];
    put_varint(out, static_cast<uint64_t>(action) | uint64_t{batch.device[i]} << 4);
    put_varint(out, key.stack);
    if (!is_free(action)) put_varint(out, key.size_bytes);
  } else if (model.by_three[s.three] == token) {
    *flag |= kTokenByThree;
  } else if (model.by_one[s.one] == token) {
    *flag |= kTokenByOne;
  } else {
    *flag |= kTokenById;
    put_varint(&columns[kTokens], token);
  }
  remember_token(&model, s, token);
  return token;
}

void EventEncoder::Impl::put_address(uint64_t address) {
  int64_t delta = static_cast<int64_t>((address >> shift) - (last_explicit >> shift));
  put_varint(&columns[kAddresses], zigzag(delta));
  last_explicit = address;
}

void EventEncoder::Impl::alloc(uint32_t thread, uint32_t token, uint64_t address, uint8_t* flag) {
  ThreadModel& t = model.threads[thread];
  const uint32_t key = mix(token, t.last_address);
  uint8_t code = kExplicit;
  if (model.again[key] == address) {
    code = kPlaceAgain;
  } else if (model.just_freed[mix(model.tokens[token].size_bytes, 3)] == address) {
    code = kPlaceJustFreed;
  } else if (model.tokens[token].last_address == address) {
    code = kPlaceOfToken;
  } else {
    put_address(address);
  }
  *flag |= static_cast<uint8_t>(code << 2);
  owners[address] = {thread, static_cast<uint32_t>(t.blocks.size())};
  remember_alloc(&model, &t, token, key, address);
}

/// Answers the size of the block, 0 where it is not of this chunk.
uint64_t EventEncoder::Impl::free(uint32_t thread, uint32_t token, const Situation& s,
                                  uint64_t address, uint8_t* flag) {
  ThreadModel& t = model.threads[thread];
  const uint32_t key = mix(s.three, token);
  uint32_t age = 0, block_token = 0, owner = 0;
  auto known = owners.find(address);
  if (known != owners.end()) {
    owner = known->second.thread;
    const auto& blocks = model.threads[owner].blocks;
    age = static_cast<uint32_t>(blocks.size()) - known->second.index;
    block_token = blocks[known->second.index].token;
  }
  uint8_t code;
  if (age != 0 && owner == thread && model.age[key] == age) {
    code = kBlockExpected;
  } else if (age != 0 && owner == thread) {
    code = kBlockByAge;
    put_varint(&columns[kAges], age);
  } else if (model.freed_address[key] == address) {
    code = kBlockSameAddress;
    age = block_token = 0;
  } else if (age != 0) {
    code = kBlockOfThread;
    put_varint(&columns[kAges], owner), put_varint(&columns[kAges], age);
  } else {
    code = kExplicit;
    put_address(address);
  }
  *flag |= static_cast<uint8_t>(code << 2);
  const uint64_t size = block_token != 0 ? model.tokens[block_token].size_bytes : 0;
  remember_free(&model, &t, token, key, address, owner == thread ? age : 0, block_token);
  return size;
}

void EventEncoder::Impl::free_size(uint64_t size, uint64_t block_size, OpModel* op, uint8_t* flag) {
  auto says = [&](SizeCode code) {
    return code == kSizeZero ? size == 0 : code == kSizeOfBlock && size == block_size;
  };
  SizeCode code = says(op->free_size)  ? kSizeAsBefore
                  : size == 0          ? kSizeZero
                  : size == block_size ? kSizeOfBlock
                                       : kSizeExplicit;
  if (code == kSizeExplicit) put_varint(&columns[kNumbers], size);
  if (code == kSizeZero || code == kSizeOfBlock) op->free_size = code;
  *flag |= static_cast<uint8_t>(code << 5);
}

void EventEncoder::Impl::step(uint32_t key, uint64_t step) {
  uint64_t off =
      zigzag(static_cast<int64_t>(step) - static_cast<int64_t>(expected_step(model, key)));
  remember_step(&model, key, step);
  columns[kStepLow].push_back(static_cast<char>(off & 255));
  off >>= 8;
  columns[kStepHigh].push_back(static_cast<char>(std::min<uint64_t>(off, 255)));
  if (off >= 255) put_varint(&columns[kNumbers], off - 255);
}

void EventEncoder::Impl::totals(const DeviceTotals& totals, TotalsModel* known, Action action,
                                uint64_t size) {
  const uint64_t expected = expected_allocated(*known, action, size);
  std::string* out = &columns[kTotalsColumn];
  out->push_back(static_cast<char>((totals.allocated_bytes != expected) |
                                   (totals.reserved_bytes != known->reserved) << 1));
  auto put = [&](uint64_t is, uint64_t was) {
    put_varint(out, zigzag(static_cast<int64_t>(is - was)));
  };
  if (totals.allocated_bytes != expected) put(totals.allocated_bytes, expected);
  if (totals.reserved_bytes != known->reserved) put(totals.reserved_bytes, known->reserved);
  *known = {totals.allocated_bytes, totals.reserved_bytes};
}

void EventEncoder::Impl::events(const EventBatch& batch) {
  uint32_t thread = UINT32_MAX;
  uint64_t time = batch.time_ns[0];
  size_t next_totals = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    uint8_t flag = 0;
    const Action action = batch.action[i];
    thread = thread_of(batch, i, thread);
    const Situation situation(model.threads[thread]);
    const uint32_t token = token_of(batch, i, situation, &flag);
    step(mix(situation.three, token + 11), batch.time_ns[i] - time);
    time = batch.time_ns[i];
    OpModel& op = op_model(&model, action, batch.device[i]);
    if (action == Action::kAlloc) {
      alloc(thread, token, batch.address[i], &flag);
    } else if (is_free(action)) {
      uint64_t block_size = free(thread, token, situation, batch.address[i], &flag);
      free_size(batch.size_bytes[i], block_size, &op, &flag);
      if (action == Action::kFreeCompleted) owners.erase(batch.address[i]);
    } else {
      if (batch.address[i] != 0) flag |= kExplicit << 2, put_address(batch.address[i]);
      push_history(&model.threads[thread], token << 1);
    }
    const bool has = next_totals < batch.totals.size() && batch.totals[next_totals].event == i;
    if (has != op.has_totals) flag |= kTotalsFlipped, op.has_totals = has;
    if (has) {
      totals(batch.totals[next_totals++], &totals_model(&model, batch.device[i]), action,
             batch.size_bytes[i]);
      while (next_totals < batch.totals.size() && batch.totals[next_totals].event == i)
        ++next_totals;
    }
    columns[kFlags].push_back(static_cast<char>(flag));
  }
}

EventEncoder::EventEncoder() : impl_(std::make_unique<Impl>()) {}
EventEncoder::~EventEncoder() = default;

void EventEncoder::encode(const EventBatch& batch, std::string* out) {
  Impl& self = *impl_;
  self.reset();
  uint64_t bits = 0;
  for (uint64_t address : batch.address) bits |= address;
  self.shift = bits == 0 ? 0 : static_cast<uint32_t>(std::countr_zero(bits));
  self.events(batch);
  put_varint(out, batch.time_ns[0]);
  put_varint(out, self.shift);
  put_varint(out, self.thread_list.size());
  for (uint32_t thread : self.thread_list) put_varint(out, thread);
  for (const std::string& column : self.columns) {
    put_varint(out, column.size());
    if (column.empty()) continue;
    std::string packed(ZSTD_compressBound(column.size()), '\0');
    size_t n = ZSTD_compressCCtx(self.zstd, packed.data(), packed.size(), column.data(),
                                 column.size(), kZstdLevel);
    bool smaller = !ZSTD_isError(n) && n < column.size();
    packed.resize(smaller ? n : 0);
    put_varint(out, packed.size());  // 0: as it is
    out->append(smaller ? packed : column);
  }
}

}  // namespace gpumemprof
