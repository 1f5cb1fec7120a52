// What the page needs of a run beyond its blocks and tables: small, and kept in the index.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/categories/categories.h"

namespace gpumemprof {

/// Annotations of a program beside the history of its memory, on one device.
struct PageAnnotation {
  uint32_t device = 0;  ///< index in Tables::devices
  uint32_t name = 0;    ///< StringTable id
  uint64_t time_ns = 0;
  bool is_begin = false;
};

struct PageFacts {
  nlohmann::ordered_json run;  ///< the file's part of the answer `run`, an object
  uint64_t start_time_ns = 0;  ///< of all devices: what times are told after; 0 without any
  bool has_addresses = false;
  std::vector<int64_t> streams;  ///< of all devices
  std::vector<CategoryMoment> moments;
  std::vector<PageAnnotation> annotations;
};

}  // namespace gpumemprof
