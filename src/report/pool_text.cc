#include "report/pool_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/oom_pool.h"
#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRows = 10;

class PoolText {
 public:
  PoolText(const BfcPool& pool, bool color)
      : pool_(pool), picture_(picture_of(pool)), color_(color) {}

  std::string write() {
    write_sums();
    write_bins();
    write_holders("In use, by size of chunk", picture_.by_size);
    write_holders("In use, by operation", picture_.by_operation);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { (out_ += text) += '\n'; }
  void title(std::string_view text) {
    line(color_ ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text));
  }

  void write_sums() {
    title("The pool " + printable(pool_.allocator));
    std::string regions = format_plural(picture_.regions, "region");
    if (!picture_.are_regions_listed) regions = "at least " + regions;
    line(
        fmt::format("  {:>10}  taken of the device, in {}", format_bytes(picture_.bytes), regions));
    std::string in_use = fmt::format("  {:>10}  in {} in use", format_bytes(picture_.bytes_in_use),
                                     format_plural(picture_.chunks_in_use, "chunk"));
    if (picture_.unasked_bytes)
      in_use += ", " + range_text(*picture_.unasked_bytes) + " of it beyond what was asked for";
    line(in_use);
    std::string free = fmt::format("  {:>10}  free, in {}", format_bytes(picture_.free_bytes),
                                   format_plural(picture_.free_chunks, "chunk"));
    if (picture_.free_chunks > 1)
      free += ", the largest " + format_bytes(picture_.largest_free_bytes);
    line(free);
    if (!pool_.is_complete || pool_.more_chunks != 0)
      line("  The list of chunks is not complete: the sums are those of its part.");
  }

  void write_bins() {
    title("Chunks by bin: a request is looked for in its own bin and those with larger chunks");
    line(fmt::format("  {:>10}  {:>8}  {:>8}  {:>10}  {:>10}  {:>12}", "from", "chunks", "in use",
                     "bytes", "free", "largest free"));
    for (const PoolBin& bin : picture_.bins) {
      line(fmt::format("  {:>10}  {:>8}  {:>8}  {:>10}  {:>10}  {:>12}",
                       format_bytes(bin.least_bytes), format_count(bin.chunks),
                       format_count(bin.chunks_in_use), format_bytes(bin.bytes),
                       format_bytes(bin.bytes - bin.bytes_in_use),
                       bin.largest_free_bytes == 0 ? "-" : format_bytes(bin.largest_free_bytes)));
    }
  }

  void write_holders(std::string_view words, const std::vector<PoolHolder>& holders) {
    if (holders.empty()) return;
    title(words);
    const size_t shown = std::min(kMostRows, holders.size());
    for (size_t i = 0; i < shown; ++i) {
      const PoolHolder& holder = holders[i];
      const std::string what = holder.size_bytes != 0     ? "of " + format_bytes(holder.size_bytes)
                               : holder.operation.empty() ? "by what is not told"
                                                          : "by " + printable(holder.operation);
      line(fmt::format("  {:>10}  {} {}", format_bytes(holder.bytes),
                       format_plural(holder.chunks, "chunk"), what));
    }
    if (holders.size() > shown)
      line(fmt::format("  and {} more", format_count(holders.size() - shown)));
  }

  const BfcPool& pool_;
  PoolPicture picture_;
  bool color_;
  std::string out_;
};

}  // namespace

std::string pool_text(const BfcPool& pool, bool color) { return PoolText(pool, color).write(); }

}  // namespace gpumemprof
