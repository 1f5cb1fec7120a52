#include "report/json/sections.h"

#include <algorithm>

#include "analysis/oom_message/oom_pool.h"
#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

nlohmann::ordered_json pool_json(const BfcPool& pool) {
  constexpr size_t kMostRows = 1000;
  const PoolPicture picture = picture_of(pool);
  Json bins = Json::array(), sizes = Json::array(), operations = Json::array();
  for (const PoolBin& bin : picture.bins) {
    bins.push_back({{"least_bytes", bin.least_bytes},
                    {"chunks", bin.chunks},
                    {"chunks_in_use", bin.chunks_in_use},
                    {"bytes", bin.bytes},
                    {"bytes_in_use", bin.bytes_in_use},
                    {"largest_free_bytes", bin.largest_free_bytes}});
  }
  for (size_t i = 0; i < std::min(kMostRows, picture.by_size.size()); ++i) {
    const PoolHolder& same = picture.by_size[i];
    sizes.push_back(
        {{"size_bytes", same.size_bytes}, {"chunks", same.chunks}, {"bytes", same.bytes}});
  }
  for (size_t i = 0; i < std::min(kMostRows, picture.by_operation.size()); ++i) {
    const PoolHolder& same = picture.by_operation[i];
    operations.push_back({{"operation", text_or_null(same.operation)},
                          {"chunks", same.chunks},
                          {"bytes", same.bytes}});
  }
  return {{"complete", pool.is_complete && pool.more_chunks == 0},
          {"bytes", picture.bytes},
          {"regions", picture.regions},
          {"regions_are_listed", picture.are_regions_listed},
          {"bytes_in_use", picture.bytes_in_use},
          {"chunks_in_use", picture.chunks_in_use},
          {"free_bytes", picture.free_bytes},
          {"free_chunks", picture.free_chunks},
          {"largest_free_bytes", picture.largest_free_bytes},
          {"growth_bytes", range_json(picture.growth_bytes)},
          {"unasked_bytes", range_json(picture.unasked_bytes)},
          {"allocations", or_null(pool.allocations)},
          {"bins", bins},
          {"in_use_by_size", sizes},
          {"more_sizes", picture.by_size.size() - sizes.size()},
          {"in_use_by_operation", operations}};
}

}  // namespace gpumemprof
