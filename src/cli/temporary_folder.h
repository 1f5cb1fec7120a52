// A place for what a command needs only while it runs.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace gpumemprof {

/// A private folder in TMPDIR, or in /tmp, that goes with the object and everything in it.
class TemporaryFolder {
 public:
  /// `name` is the beginning of its name. Errors: kSystem.
  static Result<TemporaryFolder> make(const std::string& name);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  ///< empty: it was moved from
};

}  // namespace gpumemprof
