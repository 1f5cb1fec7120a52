// The state that TensorFlow's pool allocator prints when it runs out of memory: hundreds of
// thousands of lines where the model is large.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "readers/bfc_pool.h"

namespace gpumemprof {

/// A state and the place in the text where it begins.
struct PlacedPool {
  uint64_t offset = 0;
  BfcPool pool;
};
inline constexpr size_t kMostPlacedPools = 16;

/// Finds states in a text that comes in pieces of any size; what stands in front of a line's own
/// words (time, file) is of no matter, and lines of other threads in between are passed over.
/// Memory is bounded: at most kMostBfcChunks chunks in all.
class BfcLogScanner {
 public:
  void feed(std::string_view piece);
  /// Everything found; call once, last.
  std::vector<PlacedPool> finish();
  /// Where the first state begins that was left out; UINT64_MAX where none was.
  uint64_t first_left_out() const { return first_left_out_; }

 private:
  void read_line(std::string_view line, uint64_t offset);
  void begin(std::string_view allocator, uint64_t offset);
  bool read_statistics(std::string_view words);
  void read_chunk(std::string_view words, bool in_use);
  void read_bin(std::string_view words);
  void end();

  std::string line_;  // what came of the last line so far
  uint64_t line_offset_ = 0;
  uint64_t offset_ = 0;
  std::vector<PlacedPool> pools_;
  size_t chunks_ = 0;        // kept in all pools
  uint64_t pool_bytes_ = 0;  // the sum of the open pool's chunks
  uint64_t first_left_out_ = UINT64_MAX;
  bool is_open_ = false;
  bool has_limit_ = false;  // the line behind all chunks was seen
  std::map<std::string, uint32_t, std::less<>> operations_;
};

}  // namespace gpumemprof
