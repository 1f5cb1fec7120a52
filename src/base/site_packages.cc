#include "base/site_packages.h"

#include <algorithm>
#include <filesystem>
#include <functional>

namespace gpumemprof {

std::vector<std::string> site_packages(const std::string& prefix) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator it(fs::path(prefix) / "lib", error), end; !error && it != end;
       it.increment(error)) {
    if (!it->path().filename().string().starts_with("python3")) continue;
    for (const char* name : {"site-packages", "dist-packages"}) {
      const fs::path folder = it->path() / name;
      std::error_code ignored;
      if (fs::is_directory(folder, ignored)) found.push_back(folder.string());
    }
  }
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace gpumemprof
