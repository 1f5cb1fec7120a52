// Writes profile.proto of https://github.com/google/pprof, gzipped.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/export/event_export.h"
#include "trace/tables.h"

namespace gpumemprof {

using PprofTypes = std::vector<std::pair<const char*, const char*>>;  ///< type and unit
using PprofLabels = std::vector<std::pair<std::string_view, std::string>>;

/// Stacks of several tables go into one profile: what has the same function, file and line is one
/// place. Not thread-safe.
class PprofWriter {
 public:
  /// In the order of every sample's values; `shown` is the type that a viewer opens.
  PprofWriter(const PprofTypes& types, std::string_view shown);

  /// Of the stacks of the samples that follow. The tables must outlive them.
  void set_tables(const Tables& tables);
  /// Stack 0 is the unknown one. Values beyond 2^63 - 1 are written as that.
  void sample(uint32_t stack, const std::vector<uint64_t>& values, const PprofLabels& labels = {});
  void comment(std::string_view text);
  void set_time(int64_t since_1970_ns);
  void set_duration(uint64_t duration_ns);
  /// Ends the message. Errors: kSystem without memory, and those of the sink.
  Status finish(const TextSink& sink);

 private:
  int64_t string(std::string_view text);
  uint64_t location_of(uint32_t frame);
  uint64_t location(uint64_t function, uint32_t line);
  uint64_t function(std::string_view name, std::string_view file);

  const Tables* tables_ = nullptr;
  std::string out_;
  protozero::pbf_writer writer_;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, int64_t> strings_;
  absl::flat_hash_map<uint32_t, uint64_t> frames_;  // of tables_: the location of each
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, uint64_t> locations_;  // by function and line
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint64_t> functions_;    // by name and file
};

}  // namespace gpumemprof
