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

/// What a folder's files of samples end in; a reader of recorded files passes them over.
inline constexpr const char* kSamplesSuffix = ".gms";

/// Whose samples they are, and one moment on both clocks.
struct SamplesOrigin {
  std::string host, boot_id;
  uint32_t pid = 0, parent_pid = 0;
  uint64_t start_ticks = 0;
  uint64_t monotonic_ns = 0, realtime_ns = 0;
};

/// Writes each sample at once, so that whoever kills the writer takes nothing with him: the chunk
/// that grows is written anew, a sample longer, to the other one of two places in turn, and what
/// was there before stays whole until it is. Not thread-safe.
class SamplesWriter {
 public:
  /// `most_bytes`: of the file on the disk; then the oldest chunks are written over. 0: no limit.
  /// Errors: kSystem, in particular where the file exists.
  static Result<SamplesWriter> create(const std::string& folder, const SamplesOrigin& origin,
                                      uint64_t most_bytes);

  /// Errors: kSystem. A sample that could not be written comes with the next one that can; one that
  /// is too large is left out and counted.
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

/// Stride of the places; what a chunk does not fill of it is a hole.
inline constexpr uint64_t kSamplesPlaceBytes = 256 * 1024;

}  // namespace gpumemprof
