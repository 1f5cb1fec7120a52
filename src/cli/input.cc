#include "cli/input.h"

#include <filesystem>

#include "cli/progress.h"

namespace gpumemprof {

Result<Input> open_input_showing_progress(const std::vector<std::string>& paths, bool seal) {
  Progress progress("reading");
  return open_input(paths,
                    {.seal = seal, .on_progress = [&](double done) { progress.update(done); }});
}

std::string working_folder() {
  std::error_code error;
  std::string path = std::filesystem::current_path(error).string();
  return error ? std::string() : path;
}

}  // namespace gpumemprof
