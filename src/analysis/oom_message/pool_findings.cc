#include "analysis/oom_message/pool_findings.h"

#include "analysis/oom_message/oom_pool.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// Below these shares nobody would change anything.
constexpr uint64_t kFreeShare = 20, kUnaskedShare = 10;  // one part in so many

std::string count_of(uint64_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace

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
