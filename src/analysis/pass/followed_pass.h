// A pass over a recording some of whose allocators were followed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "recording/followed_source.h"

namespace gpumemprof {

struct FollowedPass {
  FollowedSource* source;  ///< from which the events come
  /// By device: what its blocks are where the program tells nothing of them.
  std::map<uint16_t, std::vector<RuledBlock>> rules = {};
};

}  // namespace gpumemprof
