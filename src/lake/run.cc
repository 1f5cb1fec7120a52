#include "lake/run.h"

#include <algorithm>

#include "analysis/replay/snapshot_device.h"
#include "page/keeper_thread.h"
#include "report/json_report.h"

namespace gpumemprof {
namespace {

bool has_times(const WholeRun& whole, uint32_t device) {
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(device));
  if (known && known->snapshot) return known->snapshot->has_times || !whole.is_snapshot();
  return whole.analysis().source.can.times;
}

}  // namespace

Result<std::unique_ptr<LakeRun>> LakeRun::read(const std::vector<std::string>& paths,
                                               const PageReading& reading,
                                               const std::function<void(double)>& on_progress) {
  std::unique_ptr<LakeRun> run(new LakeRun);
  KeeperThread keeper;
  auto whole = WholeRun::read(paths, reading, &keeper, on_progress);
  if (!whole) return std::unexpected(whole.error());
  run->whole_ = std::move(*whole);
  if (!run->whole_->has_events())
    return fail(ErrorCode::kUnsupported, "it has no allocations, only figures: nothing to export");
  auto tables = keeper.finish();
  const size_t devices = std::min(tables.size(), run->whole_->tables().devices.size());
  for (uint32_t device = 0; device < devices; ++device) {
    if (!tables[device]) continue;
    run->memories_.push_back(
        {device, has_times(*run->whole_, device), std::move(tables[device])});
  }
  return run;
}

Result<std::string> LakeRun::report() {
  const auto advice = whole_->advice();
  if (!advice) return std::unexpected(advice.error());
  return json_report(whole_->analysis(), whole_->tables(), -1, *advice);
}

std::unique_ptr<LakeRows> LakeRun::rows(std::string_view table, size_t memory) const {
  if (table == "ranks") return rank_rows(*this);
  if (table == "stacks") return stack_rows(*this);
  if (memory >= memories_.size()) return nullptr;
  if (table == "intervals") return interval_rows(*this, memory);
  if (table == "categories") return category_rows(*this, memory);
  if (table == "samples") return sample_rows(*this, memory);
  if (table == "steps") return step_rows(*this, memory);
  return nullptr;
}

std::vector<StepEnd> step_ends(const LakeRun& run, const LakeMemory& memory) {
  const WholeRun& whole = run.whole();
  const uint32_t process = whole.tables().devices[memory.device].process;
  std::vector<StepEnd> ends;
  for (const CategoryMoment& said : whole.analysis().moments) {
    if (said.kind != CategoryMoment::kStepEnd || said.process != process) continue;
    ends.push_back({moment_at(*memory.table, said.time_ns), &said});
  }
  std::ranges::stable_sort(ends, {}, &StepEnd::moment);
  return ends;
}

uint32_t moment_at(const BlockTable& table, uint64_t time_ns) {
  size_t low = 0, high = table.times.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (table.times[middle] < time_ns)
      low = middle + 1;
    else
      high = middle;
  }
  return static_cast<uint32_t>(low);
}

std::optional<uint64_t> time_of(const LakeMemory& memory, uint32_t moment) {
  if (!memory.has_times || moment == 0 || moment > memory.table->times.size())
    return std::nullopt;
  return memory.table->times[moment - 1];
}

}  // namespace gpumemprof
