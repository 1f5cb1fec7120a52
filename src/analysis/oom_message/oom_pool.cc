#include "analysis/oom_message/oom_pool.h"

#include <algorithm>
#include <bit>
#include <map>

namespace gpumemprof {
namespace {

constexpr size_t kBins = 21;  // BFCAllocator::kNumBins

size_t bin_of(uint64_t size_bytes) {
  const uint64_t units = std::max<uint64_t>(size_bytes / kBfcUnitBytes, 1);
  return std::min<size_t>(static_cast<size_t>(std::bit_width(units)) - 1, kBins - 1);
}

void most_bytes_first(std::vector<PoolHolder>* holders) {
  std::ranges::stable_sort(*holders, std::ranges::greater(), &PoolHolder::bytes);
}

void count_regions(const BfcPool& pool, PoolPicture* picture) {
  picture->are_regions_listed = !pool.regions.empty();
  picture->regions = pool.regions.size();
  if (picture->are_regions_listed) return;
  uint64_t end = 0;
  for (const BfcChunk& chunk : pool.chunks) {
    picture->regions += picture->regions == 0 || chunk.address != end;
    end = chunk.address + chunk.size_bytes;
  }
}

}  // namespace

PoolPicture picture_of(const BfcPool& pool) {
  PoolPicture picture;
  std::vector<PoolBin> bins(kBins);
  std::map<uint64_t, PoolHolder> sizes;
  std::vector<PoolHolder> operations(pool.operations.size());
  for (const BfcChunk& chunk : pool.chunks) {
    PoolBin& bin = bins[bin_of(chunk.size_bytes)];
    ++bin.chunks;
    bin.bytes += chunk.size_bytes;
    picture.bytes += chunk.size_bytes;
    if (!chunk.in_use) {
      ++picture.free_chunks;
      picture.free_bytes += chunk.size_bytes;
      bin.largest_free_bytes = std::max(bin.largest_free_bytes, chunk.size_bytes);
      picture.largest_free_bytes = std::max(picture.largest_free_bytes, chunk.size_bytes);
      continue;
    }
    ++bin.chunks_in_use;
    bin.bytes_in_use += chunk.size_bytes;
    ++picture.chunks_in_use;
    picture.bytes_in_use += chunk.size_bytes;
    PoolHolder& same = sizes[chunk.size_bytes];
    same.size_bytes = chunk.size_bytes;
    for (PoolHolder* holder : {&same, &operations[chunk.operation]}) {
      ++holder->chunks;
      holder->bytes += chunk.size_bytes;
    }
  }
  for (size_t i = 0; i < kBins; ++i) {
    bins[i].least_bytes = kBfcUnitBytes << i;
    if (bins[i].chunks != 0) picture.bins.push_back(bins[i]);
  }
  for (auto& [size, holder] : sizes) picture.by_size.push_back(holder);
  for (size_t i = 0; i < operations.size() && operations.size() > 1; ++i) {
    operations[i].operation = pool.operations[i];
    if (operations[i].chunks != 0) picture.by_operation.push_back(std::move(operations[i]));
  }
  most_bytes_first(&picture.by_size);
  most_bytes_first(&picture.by_operation);
  count_regions(pool, &picture);
  // Of a state that was cut off nothing can be subtracted.
  if (!pool.is_complete || pool.more_chunks != 0) return picture;
  if (pool.limit) picture.growth_bytes = range_of(*pool.limit) - exactly(picture.bytes);
  if (pool.requested)
    picture.unasked_bytes = exactly(picture.bytes_in_use) - range_of(*pool.requested);
  return picture;
}

}  // namespace gpumemprof
