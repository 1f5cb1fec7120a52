// The codec of a sealed chunk's events: columns, predicted from what came before, compressed by
// zstd.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "trace/event.h"

namespace gpumemprof {

inline constexpr uint32_t kMostSealedEvents = 65536;

/// Not thread-safe; keeps its tables' memory and zstd context between chunks, but no state.
class EventEncoder {
 public:
  EventEncoder();
  ~EventEncoder();
  /// Appends the columns of a batch of 1 to kMostSealedEvents events in time order.
  void encode(const EventBatch& batch, std::string* out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Not thread-safe. Input may be hostile: memory stays below what kMostSealedEvents events need.
class EventDecoder {
 public:
  EventDecoder();
  ~EventDecoder();
  /// Clears `batch` and fills it with exactly `count` events. Errors: kBadInput.
  Status decode(std::string_view bytes, uint32_t count, EventBatch* batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumemprof
