#include "trace/anonymous_source.h"

#include <numeric>

namespace gpumemprof {

AnonymousSource::AnonymousSource(std::unique_ptr<EventSource> source,
                                 std::shared_ptr<Anonymizer> names)
    : source_(std::move(source)), ours_(std::move(names)), info_(source_->info()) {
  info_.path = ours_.input(info_.path);
  ours_.take_stacks(source_->tables());
  ours_.take_processes(source_->tables());
  const LiveState* before = source_->state_before_first_event();
  if (before == nullptr) return;
  std::vector<uint32_t> threads(tables().threads.size());
  std::iota(threads.begin(), threads.end(), 0);
  std::vector<uint16_t> devices(before->devices().size());
  std::iota(devices.begin(), devices.end(), uint16_t{0});
  before_ = std::make_unique<LiveState>();
  // Cannot fail: every device is in the map, and none was there before.
  (void)before_->absorb(*before,
                        {.stacks = ours_.stacks(), .threads = threads, .devices = devices});
}

Result<bool> AnonymousSource::next(EventBatch* batch) {
  Result<bool> more = source_->next(batch);
  const Tables& from = source_->tables();
  ours_.take_stacks(from);
  const bool is_end = !more || !*more;
  if (is_end || from.devices.size() != tables().devices.size() ||
      from.processes.size() != tables().processes.size() ||
      from.threads.size() != tables().threads.size()) {
    ours_.take_processes(from);
  }
  for (Mark& mark : batch->marks) mark.text = ours_.take_words(from.strings.get(mark.text));
  for (uint32_t& stack : batch->stack) stack = ours_.stack(stack);
  if (is_end) {
    loss_ = source_->loss();
    withhold_reasons(&loss_.reasons);
  }
  return more;
}

}  // namespace gpumemprof
