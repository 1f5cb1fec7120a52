#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gpumemprof {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(double done) {
  if (!is_terminal_ || Clock::now() < next_) return;
  constexpr int kWidth = 30;
  const double share = std::clamp(done, 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r%s [%s] %3d %%\x1b[K", what_.c_str(), bar.c_str(),
               static_cast<int>(share * 100));
  shown_ = true;
  next_ = Clock::now() + std::chrono::milliseconds(100);
}

void Progress::note(const std::string& step) {
  if (!is_terminal_) return;
  std::fprintf(stderr, "\r%s: %s\x1b[K", what_.c_str(), step.c_str());
  shown_ = true;
}

}  // namespace gpumemprof
