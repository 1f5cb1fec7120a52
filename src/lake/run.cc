#include "lake/run.h"

#include <algorithm>

#include "page/keeper_thread.h"
#include "report/json_report.h"

namespace gpumemprof {
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
        {device, run->whole_->has_times(static_cast<uint16_t>(device)), std::move(tables[device])});
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
  if (table == "slices") return slice_rows(*this, memory);
  return nullptr;
}

std::vector<StepEnd> step_ends(const LakeRun& run, const LakeMemory& memory) {
  const WholeRun& whole = run.whole();
  const uint32_t process = whole.tables().devices[memory.device].process;
  std::vector<StepEnd> ends;
  for (const CategoryMoment& said : whole.analysis().moments) {
    if (said.kind != CategoryMoment::kStepEnd || said.process != process) continue;
    ends.push_back({memory.table->moment_at(said.time_ns), &said});
  }
  std::ranges::stable_sort(ends, {}, &StepEnd::moment);
  return ends;
}

std::optional<uint64_t> time_of(const LakeMemory& memory, uint32_t moment) {
  if (!memory.has_times || moment == 0 || moment > memory.table->times.size())
    return std::nullopt;
  return memory.table->times[moment - 1];
}

}  // namespace gpumemprof
