#include "cli/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gpumemprof {

Result<TemporaryFolder> TemporaryFolder::make(const std::string& name) {
  const char* parent = std::getenv("TMPDIR");
  std::string path = std::string(parent && *parent ? parent : "/tmp") + '/' + name + "-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return fail(ErrorCode::kSystem, path + ": cannot be made: " + strerror(errno));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gpumemprof
