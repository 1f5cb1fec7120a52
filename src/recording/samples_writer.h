// The file of samples beside the recorded files: HOST.PID.STARTTICKS.gms, PID being that of `run`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "recording/device_samples.h"

namespace gpumemprof {

/// The extension of sample files; readers of recorded files skip them.
inline constexpr const char* kSamplesSuffix = ".gms";

/// Whose samples they are, and one moment on both clocks.
struct SamplesOrigin {
  std::string host, boot_id;
  uint32_t pid = 0, parent_pid = 0;
  uint64_t start_ticks = 0;
  uint64_t monotonic_ns = 0, realtime_ns = 0;
};

/// Writes each sample at once, so that a killed writer loses none: the growing chunk is rewritten,
/// one sample longer, alternately to one of two places, and its previous version stays whole
/// meanwhile. Not thread-safe.
class SamplesWriter {
 public:
  /// `most_bytes`: the file's limit on the disk; then the oldest chunks are overwritten. 0: no
  /// limit. Errors: kSystem, in particular if the file exists.
  static Result<SamplesWriter> create(const std::string& folder, const SamplesOrigin& origin,
                                      uint64_t most_bytes);

  /// Errors: kSystem. A sample that could not be written is written with the next one; one that is
  /// too large is dropped and counted.
  Status add(const TakenSample& sample);
  const std::string& path() const { return file_->path(); }

 private:
  struct Place {
    uint64_t offset = 0;
    uint64_t sequence = 0;  // of the chunk there; counts where `is_free` does not hold
    uint64_t pages = 0;
    bool is_free = true;
  };
  SamplesWriter(std::unique_ptr<File> file, uint64_t recording_id, uint64_t most_bytes)
      : file_(std::move(file)), recording_id_(recording_id), most_bytes_(most_bytes) {}
  size_t place_for_next();
  Status write_chunk(size_t place);

  std::unique_ptr<File> file_;
  uint64_t recording_id_, most_bytes_;
  SampleChunkEncoder chunk_;
  std::vector<Place> places_;
  size_t current_ = SIZE_MAX;  // where the growing chunk stands; SIZE_MAX: nowhere yet
  uint64_t sequence_ = 0;
  uint64_t first_ordinal_ = 0;  // of the growing chunk
};

/// Distance of the places; the unused rest of a place is a hole.
inline constexpr uint64_t kSamplesPlaceBytes = 256 * 1024;

}  // namespace gpumemprof
