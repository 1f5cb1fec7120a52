#include "recording/folders.h"

#include <filesystem>
#include <set>

namespace gpumemprof {

std::vector<std::string> folders_of(const std::vector<std::string>& paths) {
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    std::error_code error;
    const size_t slash = path.rfind('/');
    if (std::filesystem::is_directory(path, error)) {
      folders.insert(path);
    } else {
      folders.insert(slash == std::string::npos ? "." : path.substr(0, slash));
    }
  }
  return {folders.begin(), folders.end()};
}

}  // namespace gpumemprof
