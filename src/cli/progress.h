// A progress line on stderr.
#pragma once

#include <chrono>
#include <string>

namespace gpumemprof {

/// Shows nothing unless stderr is a terminal, and no bar for work that is done within a second.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();  ///< takes the line away again
  Progress(const Progress&) = delete;
  /// Cheap enough to be called for every batch.
  void update(double done);
  /// Instead of a bar, for steps of several seconds whose number nobody knows.
  void note(const std::string& step);

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  bool is_terminal_;
  bool shown_ = false;
  Clock::time_point next_;
};

}  // namespace gpumemprof
