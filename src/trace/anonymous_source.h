// Any EventSource with its names replaced, so that reports and exports need not know about it.
#pragma once

#include <memory>

#include "trace/anonymizer.h"
#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Sizes, times, addresses, lines, process and thread numbers are kept. The text of a loss may
/// contain any name, so a fixed sentence replaces it; its count is kept. Several sources may share
/// one Anonymizer, so that a name has the same replacement in all of them.
class AnonymousSource : public EventSource {
 public:
  AnonymousSource(std::unique_ptr<EventSource> source, std::shared_ptr<Anonymizer> names);

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return tables_; }
  Result<bool> next(EventBatch* batch) override;
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return before_.get(); }
  double progress() const override { return source_->progress(); }

 private:
  void take_stacks();
  void take_processes();
  uint32_t take_string(std::string text) { return tables_.strings.intern(text); }

  std::unique_ptr<EventSource> source_;
  std::shared_ptr<Anonymizer> names_;
  SourceInfo info_;
  Tables tables_;
  Loss loss_;
  std::unique_ptr<LiveState> before_;
  std::vector<uint32_t> frames_;  ///< by frame id of the source: ours
  std::vector<uint32_t> stacks_;  ///< by stack id of the source: ours
};

}  // namespace gpumemprof
