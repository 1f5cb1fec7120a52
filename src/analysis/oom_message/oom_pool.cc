#include "analysis/oom_message/oom_pool.h"

#include <algorithm>
#include <bit>
#include <map>

#include "analysis/analysis.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr size_t kBins = 21;  // BFCAllocator::kNumBins

/// Below these shares nobody would change anything.
constexpr uint64_t kFreeShare = 20, kUnaskedShare = 10;  // one part in so many

std::string count_of(uint64_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

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

void add_pool(std::shared_ptr<const BfcPool> state, Analysis* analysis) {
  const BfcPool& pool = *state;
  const PoolPicture picture = picture_of(pool);
  if (!analysis->devices.empty()) analysis->devices[0].pool = std::move(state);
  const uint64_t in_pieces = picture.free_bytes - picture.largest_free_bytes;
  // Free memory in one piece is at anybody's disposal, whatever its size.
  if (in_pieces != 0 && in_pieces >= picture.bytes / kFreeShare) {
    analysis->findings.push_back(
        {.kind = FindingKind::kFragmentation,
         .severity = Severity::kWarning,
         .title = format_bytes(picture.free_bytes) + " are free in " +
                  count_of(picture.free_chunks, "chunk") + ", but no more than " +
                  format_bytes(picture.largest_free_bytes) + " in one piece",
         .bytes = in_pieces,
         .evidence = {{"pool_bytes", picture.bytes},
                      {"free_bytes", picture.free_bytes},
                      {"largest_free_bytes", picture.largest_free_bytes},
                      {"free_chunks", picture.free_chunks},
                      {"regions", picture.regions}}});
  }
  if (picture.unasked_bytes && picture.unasked_bytes->least != 0 &&
      picture.unasked_bytes->least >= picture.bytes_in_use / kUnaskedShare) {
    analysis->findings.push_back({.kind = FindingKind::kRounding,
                                  .severity = Severity::kInfo,
                                  .title = "chunks in use hold " +
                                           format_bytes(picture.unasked_bytes->least) +
                                           " more than was requested: a free chunk of less than "
                                           "twice the request is handed out whole",
                                  .bytes = picture.unasked_bytes->least,
                                  .evidence = {{"in_use_bytes", picture.bytes_in_use},
                                               {"chunks_in_use", picture.chunks_in_use}}});
  }
  if (pool.peak_in_use && pool.peak_in_use->least_bytes > picture.bytes_in_use) {
    analysis->findings.push_back(
        {.kind = FindingKind::kEarlierPeak,
         .severity = Severity::kInfo,
         .title = "the pool's peak since the program began was higher: " +
                  format_bytes(pool.peak_in_use->bytes),
         .bytes = pool.peak_in_use->bytes - picture.bytes_in_use,
         .evidence = {{"peak_in_use_bytes", pool.peak_in_use->bytes},
                      {"in_use_bytes", picture.bytes_in_use}}});
  }
}

}  // namespace gpumemprof
