
#include "readers/bfc_dump/read.h"
#include "readers/tensorflow_device.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

class BfcDumpSource final : public EventSource {
 public:
  BfcDumpSource(BfcPool pool, std::string path, uint64_t file_bytes)
      : pool_(std::make_shared<const BfcPool>(std::move(pool))) {
    info_.path = std::move(path);
    info_.kind = SourceKind::kTensorflowBfcDump;
    info_.bytes = file_bytes;
    info_.can = {.addresses = true, .stacks = pool_->operations.size() > 1};
    tables_.devices.push_back(tensorflow_device(pool_->allocator));
    tables_.processes.push_back({.stacks = info_.can.stacks
                                               ? "none: a dump has operation names only"
                                               : "none: a dump has no stacks"});
    for (const BfcChunk& chunk : pool_->chunks) {
      if (!chunk.in_use) continue;
      live_bytes_ += chunk.size_bytes;
      before_.adopt(0, chunk.address,
                    {chunk.size_bytes, LiveBlock::kUnknownTime, stack_of(chunk), UINT32_MAX});
    }
    loss_.add(0, 0,
              "a memory dump is one moment, not a history: it has no earlier frees, no times and "
              "no lines");
  }

  std::shared_ptr<const BfcPool> pool() const { return pool_; }
  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return &before_; }
  double progress() const override { return is_done_ ? 1 : 0; }

  Result<bool> next(EventBatch* batch) override {
    batch->clear();
    if (is_done_) return false;
    is_done_ = true;
    batch->time_ns.push_back(0);
    batch->address.push_back(0);
    batch->size_bytes.push_back(live_bytes_);
    batch->stack.push_back(0);
    batch->thread.push_back(UINT32_MAX);
    batch->device.push_back(0);
    batch->action.push_back(Action::kSnapshot);
    return true;
  }

 private:
  uint32_t stack_of(const BfcChunk& chunk) {
    if (chunk.operation == 0) return 0;
    const Frame frame{tables_.strings.intern(kOperationFile),
                      tables_.strings.intern(pool_->operations[chunk.operation]), 0};
    return tables_.stacks.push(0, tables_.stacks.intern_frame(frame));
  }

  std::shared_ptr<const BfcPool> pool_;
  SourceInfo info_;
  Tables tables_;
  Loss loss_;
  LiveState before_;
  uint64_t live_bytes_ = 0;
  bool is_done_ = false;
};

}  // namespace

Result<std::unique_ptr<EventSource>> read_bfc_dump_source(File& file) {
  auto size = file.size();
  if (!size) return std::unexpected(size.error());
  auto pool = read_bfc_dump(file);
  if (!pool) return std::unexpected(pool.error());
  return std::make_unique<BfcDumpSource>(std::move(*pool), file.path(), *size);
}

std::shared_ptr<const BfcPool> pool_of(const EventSource& source) {
  const auto* dump = dynamic_cast<const BfcDumpSource*>(&source);
  return dump != nullptr ? dump->pool() : nullptr;
}

}  // namespace gpumemprof
