// What is held over time in slices of the wall clock, so that memories can be added up without a
// look at every event.
#include <algorithm>

#include "lake/run.h"
#include "report/describe/facts.h"

namespace gpumemprof {
namespace {

constexpr int kLeastShift = 16;  // 65,536 ns
constexpr uint64_t kMostSlices = 65'536;

class Slices final : public LakeRows {
 public:
  Slices(const LakeRun& run, const LakeMemory& memory) : memory_(memory), table_(*memory.table) {
    const Tables& tables = run.whole().tables();
    const Process& process = process_at(tables, tables.devices[memory.device].process);
    if (!run.whole().is_snapshot() && wall_time(process, 0).known)
      offset_ns_ = process.realtime_offset_ns;
    if (!memory.has_times || table_.times.size() == 0) {
      next_ = table_.moments();
      return;
    }
    const auto [first, last] =
        std::pair(table_.times[0], table_.times[table_.times.size() - 1]);
    for (uint64_t span = last - std::min(first, last); span >> shift_ >= kMostSlices;) ++shift_;
  }

  LakeBatch columns() const override {
    return batch_of("slice slice_ns net_bytes rise_bytes");
  }

  void fill(LakeBatch* batch) override {
    LakeBatch& to = *batch;
    for (size_t rows = 0; next_ < table_.moments() && rows < kMostRows; ++rows) {
      // Moment 0 is what was there before: of no slice.
      const std::optional<int64_t> slice = slice_of(next_);
      uint64_t net = 0, rise = 0;  // modulo 2^64
      do {
        net += next_ == 0 ? table_.level_at(0) : table_.added_bytes(next_);
        if (static_cast<int64_t>(net) > static_cast<int64_t>(rise)) rise = net;
        ++next_;
      } while (next_ < table_.moments() && slice_of(next_) == slice);
      slice ? to[0].add(*slice) : to[0].add_unknown();
      to[1].add(int64_t{1} << shift_);
      to[2].add(static_cast<int64_t>(net));
      to[3].add_unsigned(rise);
    }
  }

 private:
  std::optional<int64_t> slice_of(uint32_t moment) const {
    const auto time_ns = time_of(memory_, moment);
    if (!time_ns) return std::nullopt;
    return static_cast<int64_t>(*time_ns + static_cast<uint64_t>(offset_ns_)) >> shift_;
  }

  const LakeMemory& memory_;
  const BlockTable& table_;
  int64_t offset_ns_ = 0;  // to the wall clock
  int shift_ = kLeastShift;
  uint32_t next_ = 0;
};

}  // namespace

std::unique_ptr<LakeRows> slice_rows(const LakeRun& run, size_t memory) {
  return std::make_unique<Slices>(run, run.memories()[memory]);
}

}  // namespace gpumemprof
