#include "readers/pprof/read.h"

#include "readers/pprof/gunzip.h"
#include "readers/pprof/profile.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

using pprof::Profile;
using pprof::Row;

// About what a live block costs.
constexpr uint64_t kBlockCost = 64;

/// What is live is the state before the first event, and that each device was looked at is the only
/// event.
class PprofSource final : public EventSource {
 public:
  PprofSource(Profile profile, LiveState state, std::string path, uint64_t file_bytes)
      : tables_(std::move(profile.tables)), state_(std::move(state)) {
    info_.path = std::move(path);
    info_.kind = SourceKind::kJaxMemoryProfile;
    info_.bytes = file_bytes;
    info_.can = {.stacks = true};
    loss_.add(0, 0,
              "a JAX memory profile is one moment: it has live memory, no history and so no peak");
    if (profile.negative_samples != 0) {
      loss_.add(0, 0,
                std::to_string(profile.negative_samples) +
                    " samples with negative buffers or bytes are left out");
    }
  }

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return &state_; }
  double progress() const override { return 1; }
  Result<bool> next(EventBatch* batch) override {
    batch->clear();
    for (; looked_at_ < tables_.devices.size(); ++looked_at_) {
      batch->time_ns.push_back(0);
      batch->address.push_back(0);
      batch->size_bytes.push_back(0);
      batch->stack.push_back(0);
      batch->thread.push_back(UINT32_MAX);
      batch->device.push_back(static_cast<uint16_t>(looked_at_));
      batch->action.push_back(Action::kSnapshot);
    }
    return batch->size() != 0;
  }

 private:
  SourceInfo info_;
  Tables tables_;
  Loss loss_;
  LiveState state_;
  size_t looked_at_ = 0;
};

/// As many blocks as there are buffers, of sizes that add up to the bytes of the sample.
Status add_blocks(const Profile& profile, MemoryBudget* budget, LiveState* state) {
  uint64_t address = 0;  // a number of its own for each; no report shows it
  for (const Row& row : profile.rows) {
    const uint64_t count = row.count == 0 && row.bytes != 0 ? 1 : row.count;
    if (count > UINT64_MAX / kBlockCost || !budget->take(count * kBlockCost)) {
      return fail_at(row.offset, "the profile needs more memory than its size allows");
    }
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t bytes = row.bytes / count + (i < row.bytes % count ? 1 : 0);
      state->adopt(row.device, ++address, {bytes, LiveBlock::kUnknownTime, row.stack, UINT32_MAX});
    }
  }
  return {};
}

Result<std::string> read_bytes(File& file, const PprofLimits& limits, uint64_t* file_bytes,
                               bool* is_compressed) {
  auto bytes = read_protobuf_file(file);
  if (!bytes) return bytes;
  *file_bytes = bytes->size();
  *is_compressed = pprof::is_gzip(*bytes);
  return *is_compressed ? pprof::gunzip(*bytes, limits.profile_bytes) : std::move(bytes);
}

}  // namespace

Result<std::unique_ptr<EventSource>> read_pprof(File& file, const PprofLimits& limits) {
  uint64_t file_bytes = 0;
  bool is_compressed = false;
  auto bytes = read_bytes(file, limits, &file_bytes, &is_compressed);
  if (!bytes) return std::unexpected(bytes.error());
  MemoryBudget budget(limits.memory_bytes != 0 ? limits.memory_bytes
                                               : 8 * bytes->size() + (64 << 20));
  auto profile = pprof::parse_profile(*bytes, &budget);
  LiveState state;
  Status blocks =
      profile ? add_blocks(*profile, &budget, &state) : std::unexpected(profile.error());
  if (!blocks) {
    Error error = blocks.error();
    if (is_compressed) error.message += ", in the decompressed profile";
    return std::unexpected(std::move(error));
  }
  return std::make_unique<PprofSource>(std::move(*profile), std::move(state), file.path(),
                                       file_bytes);
}

}  // namespace gpumemprof
