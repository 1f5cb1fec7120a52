// Any EventSource with its names replaced, so that reports and exports need not know about it.
#pragma once

#include <memory>

#include "trace/anonymous_tables.h"
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
  const Tables& tables() const override { return ours_.tables(); }
  Result<bool> next(EventBatch* batch) override;
  const Loss& loss() const override { return loss_; }
  const LiveState* state_before_first_event() const override { return before_.get(); }
  double progress() const override { return source_->progress(); }

 private:
  std::unique_ptr<EventSource> source_;
  AnonymousTables ours_;
  SourceInfo info_;
  Loss loss_;
  std::unique_ptr<LiveState> before_;
};

}  // namespace gpumemprof
