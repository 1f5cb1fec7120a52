// Wordings: bfc_allocator.cc of TensorFlow 1.0 to 2.21 and of XLA.
#include "readers/bfc_log.h"

#include <algorithm>
#include <charconv>

#include "readers/bfc_limits.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostLine = 4096;  // the end of a longer one is not looked at

constexpr std::string_view kDump = "BFCAllocator dump for ";

std::string_view after(std::string_view line, std::string_view words) {
  const size_t at = line.find(words);
  return at == line.npos ? std::string_view() : line.substr(at + words.size());
}

std::optional<uint64_t> number(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

/// "12.00MiB", "128.00MiB", or plain bytes, as older releases print them.
std::optional<PrintedSize> size_at(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return std::nullopt;
  text.remove_prefix(begin);
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_plain =
      digits != 0 && (digits == text.size() || text[digits] == ' ' || text[digits] == '\r');
  if (!is_plain) return parse_printed_size(text);
  const auto bytes = number(text);
  return bytes ? std::optional(exact_size(*bytes)) : std::nullopt;
}

uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

void BfcLogScanner::feed(std::string_view piece) {
  while (!piece.empty()) {
    const size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (line_.size() < kMostLine) line_ += part.substr(0, kMostLine - line_.size());
    offset_ += part.size();
    if (end == piece.npos) return;
    read_line(line_, line_offset_);
    line_.clear();
    line_offset_ = ++offset_;
    piece.remove_prefix(end + 1);
  }
}

std::vector<PlacedPool> BfcLogScanner::finish() {
  // What is left has no end of line: a number in it may be the beginning of another one.
  end();
  return std::move(pools_);
}

void BfcLogScanner::begin(std::string_view allocator, uint64_t offset) {
  end();
  if (pools_.size() == kMostPlacedPools) {
    first_left_out_ = std::min(first_left_out_, offset);
    return;
  }
  is_open_ = true;
  pools_.push_back({.offset = offset});
  const size_t length = allocator.find_first_of(" \t\r");
  pools_.back().pool.allocator = allocator.substr(0, std::min(length, kMostBfcNameBytes));
}

void BfcLogScanner::end() {
  is_open_ = has_limit_ = false;
  pool_bytes_ = 0;
  operations_.clear();
}

void BfcLogScanner::read_line(std::string_view line, uint64_t offset) {
  if (const std::string_view name = after(line, kDump); !name.empty()) return begin(name, offset);
  if (!is_open_) {
    // Releases before the dump had a title: it begins with the first bin.
    if (line.find("Bin (256): ") == line.npos) return;
    begin("", offset);
    if (!is_open_) return;
  }
  if (read_statistics(line)) return;
  if (const auto bin = after(line, "Bin ("); !bin.empty()) return read_bin(bin);
  if (const auto region = after(line, "Next region of size "); !region.empty()) {
    if (const auto size = number(region);
        size && pools_.back().pool.regions.size() < kMostBfcChunks)
      pools_.back().pool.regions.push_back(*size);
    return;
  }
  for (std::string_view word : {"InUse at ", "Chunk at "}) {
    if (const auto chunk = after(line, word); !chunk.empty()) return read_chunk(chunk, true);
  }
  for (std::string_view word : {"Free  at ", "Free at "}) {
    if (const auto chunk = after(line, word); !chunk.empty()) return read_chunk(chunk, false);
  }
}

void BfcLogScanner::read_bin(std::string_view words) {
  const auto requested = after(words, " in use in bin. ");
  if (requested.find("client-requested in use in bin") == requested.npos) return;
  const auto size = size_at(requested);
  if (!size) return;
  std::optional<PrintedSize>& sum = pools_.back().pool.requested;
  if (!sum) sum = PrintedSize{};
  sum->bytes = add(sum->bytes, size->bytes);
  sum->least_bytes = add(sum->least_bytes, size->least_bytes);
  sum->most_bytes = add(sum->most_bytes, size->most_bytes);
}

/// "7fd341ffe040 of size 12582912 by op MatMul action_count 7 step 3 next 19"
void BfcLogScanner::read_chunk(std::string_view words, bool in_use) {
  BfcPool& pool = pools_.back().pool;
  if (words.starts_with("0x")) words.remove_prefix(2);
  const auto address = number(words, 16);
  const auto size = number(after(words, " of size "));
  if (!address || !size || has_limit_) return;
  // A sum beyond all addresses is no sum of chunks.
  if (chunks_ == kMostBfcChunks || *size > kMostBfcBytes - pool_bytes_) {
    ++pool.more_chunks;
    return;
  }
  ++chunks_;
  pool_bytes_ += *size;
  BfcChunk chunk{.address = *address, .size_bytes = *size, .in_use = in_use};
  std::string_view name = after(words, " by op ");
  name = name.substr(0, std::min(name.find(' '), kMostBfcNameBytes));
  if (!name.empty() && name != "UNKNOWN") {
    auto known = operations_.find(name);
    if (known == operations_.end() && operations_.size() < kMostBfcOperations) {
      known = operations_.emplace(name, static_cast<uint32_t>(pool.operations.size())).first;
      pool.operations.emplace_back(name);
    }
    if (known != operations_.end()) chunk.operation = known->second;
  }
  pool.chunks.push_back(chunk);
}

/// What follows the chunks. The blank line or the picture of the occupancy ends it.
bool BfcLogScanner::read_statistics(std::string_view line) {
  BfcPool& pool = pools_.back().pool;
  if (const auto limit = after(line, "memory_limit_: "); !limit.empty()) {
    pool.limit = size_at(limit.substr(0, limit.find_first_of(" \r")));
    has_limit_ = pool.is_complete = true;
    return true;
  }
  if (line.find("Sum Total of in-use chunks: ") != line.npos)
    return has_limit_ = pool.is_complete = true;
  const auto take = [&](std::string_view word, std::optional<PrintedSize>* size) {
    if (!line.starts_with(word)) return false;
    // A limit that was told to the byte is not replaced by one that was rounded.
    auto told = size_at(line.substr(word.size()));
    if (told && (!*size || told->least_bytes == told->most_bytes)) *size = std::move(told);
    return true;
  };
  if (!has_limit_) return false;
  if (take("Limit: ", &pool.limit) || take("InUse: ", &pool.in_use) ||
      take("MaxInUse: ", &pool.peak_in_use)) {
    return true;
  }
  if (line.starts_with("NumAllocs: ")) {
    if (const auto count = size_at(line.substr(11))) pool.allocations = count->bytes;
    return true;
  }
  if (!take("MaxAllocSize: ", &pool.largest_allocation)) return false;
  end();  // the last line of all releases
  return true;
}

}  // namespace gpumemprof
