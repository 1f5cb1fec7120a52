// Batches with the numbers of their blocks, as analyze() gives them to a keeper.
#pragma once

#include <utility>
#include <vector>

#include "page/keeper.h"
#include "trace/event_source.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {

/// `state`: after the events so far.
inline void take_numbered(EventBatch* batch, LiveState* state, Keeper* keeper) {
  LiveObserver none;
  std::vector<uint32_t> numbers;
  state->apply_observed(*batch, none, &numbers);
  batch->block = std::move(numbers);
  keeper->take(*batch);
  batch->block.clear();
}

/// All events of a source that begins with nothing.
inline void take_all(EventSource* source, Keeper* keeper) {
  keeper->begin(nullptr);
  LiveState state;
  EventBatch batch;
  while (*source->next(&batch)) take_numbered(&batch, &state, keeper);
}

}  // namespace gpumemprof
