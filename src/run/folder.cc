#include "run/folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/folder.h"

namespace gpumemprof {
namespace {

/// A disk that is full or read-only is no wrong request.
ErrorCode code_of(int error) {
  const bool is_disk = error == ENOSPC || error == EDQUOT || error == EROFS;
  return is_disk ? ErrorCode::kSystem : ErrorCode::kUsage;
}

constexpr size_t kMaxNameBytes = 64;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view what_runs(const std::vector<std::string>& command) {
  if (command.empty()) return "program";
  std::string_view program = base_name(command[0]);
  if (!program.starts_with("python")) return program;
  for (size_t i = 1; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with('-')) continue;  // -u, -O, …; after -c there is no name to take
    if (command[i - 1] == "-c" || command[i - 1] == "-W" || command[i - 1] == "-X") return program;
    std::string_view script = base_name(command[i]);
    if (script.ends_with(".py")) script.remove_suffix(3);
    return script;
  }
  return program;
}

bool is_meta(std::string_view name) { return name.starts_with("meta.") && name.ends_with(".json"); }

bool is_ours(std::string_view name) {
  return name.ends_with(".gmp") || name.ends_with(".gmp.tmp") || name.ends_with(".gms") ||
         is_meta(name) || name.starts_with(".meta.");  // another rank's, on its way
}

struct Contents {
  bool empty = true;
  bool ours = false;
};

std::optional<Contents> look_into(const std::string& folder) {
  Contents contents;
  const bool is_read = each_name(folder, [&](std::string_view name) {
    if (name == "." || name == "..") return;
    contents.empty = false;
    contents.ours = contents.ours || is_ours(name);
  });
  return is_read ? std::optional(contents) : std::nullopt;
}

/// Makes the folders above `path`, and removes them again unless kept.
class Parents {
 public:
  Status make(const std::string& path);
  void keep() { made_.clear(); }
  ~Parents() {
    for (; !made_.empty(); made_.pop_back()) rmdir(made_.back().c_str());
  }

 private:
  std::vector<std::string> made_;
};

Status Parents::make(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    std::string parent = path.substr(0, slash);
    struct stat st;
    if (stat(parent.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) continue;
    if (mkdir(parent.c_str(), 0777) == 0) {
      made_.push_back(std::move(parent));
    } else if (errno != EEXIST) {
      return fail(code_of(errno), parent + ": cannot create the folder: " + strerror(errno));
    }
  }
  return {};
}

}  // namespace

std::string default_folder_name(const std::vector<std::string>& command, int64_t unix_seconds,
                                int pid) {
  std::string name;
  for (char c : what_runs(command).substr(0, kMaxNameBytes)) {
    if (isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-') name += c;
  }
  if (name.empty()) name = "program";
  time_t seconds = static_cast<time_t>(unix_seconds);
  tm local = {};
  localtime_r(&seconds, &local);
  char stamp[32];
  strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  return "gpumemprof-" + name + '-' + stamp + '-' + std::to_string(pid);
}

Result<std::string> prepare_folder(const std::string& folder) {
  std::string path = folder;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path.empty()) return fail(ErrorCode::kUsage, "-o needs the name of a folder");
  Parents parents;
  if (auto made = parents.make(path); !made) return std::unexpected(made.error());
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      return fail(code_of(errno), path + ": cannot create the folder: " + strerror(errno));
    }
    struct stat st;
    if (stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) {
      return fail(ErrorCode::kUsage, path + ": is a file: -o names a folder");
    }
    // Whoever owns it could put files of their own in place of these. Root may lend its hand.
    if (st.st_uid != geteuid() && geteuid() != 0)
      return fail(ErrorCode::kUsage, path + ": belongs to another user: name a folder of your own");
    auto contents = look_into(path);
    if (!contents) return fail(ErrorCode::kUsage, path + ": cannot be read: " + strerror(errno));
    if (!contents->empty && !contents->ours) {
      return fail(ErrorCode::kUsage,
                  path + ": has files that are not a recording: name a new folder");
    }
  }
  char* real = realpath(path.c_str(), nullptr);
  if (!real) return fail(ErrorCode::kUsage, path + ": " + strerror(errno));
  std::string result = real;
  free(real);
  if (access(result.c_str(), W_OK | X_OK) != 0) {
    return fail(code_of(errno), path + ": cannot be written: " + strerror(errno));
  }
  parents.keep();
  return result;
}

Result<bool> is_recording_folder(const std::string& folder) {
  auto contents = look_into(folder);
  if (contents) return contents->ours;
  return fail(ErrorCode::kNotFound,
              errno == ENOTDIR ? "is a file, not a recording folder" : strerror(errno));
}

std::vector<std::string> files_of_recording(const std::string& folder) {
  return names_in(folder, [](std::string_view name) {
    return is_ours(name) || name == "oom_dumps" || name.starts_with("holders.") ||
           name.starts_with("operations.") || name.starts_with("uncaught.");
  });
}

std::vector<std::string> meta_files(const std::string& folder) { return names_in(folder, is_meta); }

std::vector<std::string> recorded_files(const std::string& folder) {
  return names_in(folder, [](std::string_view name) { return name.ends_with(".gmp"); });
}

std::vector<std::string> processes_named_by(std::string_view file) {
  std::vector<std::string> out;
  file.remove_suffix(std::min(file.size(), std::string_view(".gmp").size()));
  for (int way = 0; way < 2; ++way) {
    const size_t last = file.rfind('.');
    if (last == file.npos || last == 0) break;
    const size_t before = file.rfind('.', last - 1);
    if (before == file.npos) break;
    out.emplace_back(file.substr(before + 1));
    file = file.substr(0, last);
  }
  return out;
}

std::vector<std::string> oom_bundles(const std::string& folder) {
  return names_in(folder + "/oom_dumps",
                  [](std::string_view name) { return name.starts_with("oom_dump_"); });
}

std::vector<std::string> uncaught_errors(const std::string& folder) {
  return names_in(folder, [](std::string_view name) { return name.starts_with("uncaught."); });
}

}  // namespace gpumemprof
