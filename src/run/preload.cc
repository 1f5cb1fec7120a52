#include "run/preload.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/site_packages.h"
#include "run/driver.h"

namespace gpumemprof {
namespace {

constexpr std::array<std::string_view, 10> kSettingNames = {
    "GPUMEMPROF_DIR",           "GPUMEMPROF_ARENA",          "GPUMEMPROF_STACKS",
    "GPUMEMPROF_FREE_STACKS",   "GPUMEMPROF_NO_CPU",         "GPUMEMPROF_MAX_DISK",
    "GPUMEMPROF_EXPLAIN_LEAKS", "GPUMEMPROF_NO_ATTRIBUTION", "GPUMEMPROF_DRIVER",
    "GPUMEMPROF_PACKAGE"};

bool is_readable_file(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(path.c_str(), R_OK) == 0;
}

std::string absolute(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (!real) return path;
  std::string result = real;
  free(real);
  return result;
}

bool lists(std::string_view preload, std::string_view path) {
  for (size_t begin = 0; begin < preload.size();) {
    size_t end = std::min(preload.find_first_of(" :", begin), preload.size());
    if (preload.substr(begin, end - begin) == path) return true;
    begin = end + 1;
  }
  return false;
}

/// Of a folder of packages: the folder itself or, where a build is used in place, the one that the
/// first line of the .pth file names; empty where there is no package.
std::string package_in(const std::string& folder) {
  const auto is_there = [](const std::string& path) {
    return is_readable_file(path + "/_gpumemprof_recorded/__init__.py");
  };
  if (is_there(folder)) return absolute(folder);
  std::ifstream list(folder + "/gpumemprof.pth");
  std::string named;
  if (std::getline(list, named) && named.starts_with('/') && is_there(named)) return named;
  return {};
}

/// The folder of a library of an outer recording, from LD_PRELOAD; its entry goes.
std::string take_outer(std::string* preload, const char* library) {
  const std::string ending = std::string("/") + library;
  for (size_t begin = 0; begin < preload->size();) {
    const size_t end = std::min(preload->find_first_of(" :", begin), preload->size());
    const std::string entry = preload->substr(begin, end - begin);
    if (entry.ends_with(ending)) {
      const size_t from = begin == 0 ? 0 : begin - 1;
      preload->erase(from, begin == 0 ? end + 1 : end - from);
      return entry.substr(0, entry.size() - ending.size());
    }
    begin = end + 1;
  }
  return {};
}

/// LD_LIBRARY_PATH with our links in front and those of an outer recording gone.
std::string library_path(std::string path, const std::string& outer, const std::string& own) {
  if (!outer.empty() && path == outer) path.clear();
  if (!outer.empty() && path.starts_with(outer + ':')) path.erase(0, outer.size() + 1);
  if (own.empty()) return path;
  return path.empty() ? own : own + ':' + path;
}

}  // namespace

Result<std::string> find_probe(const char* override_path, const std::string& executable) {
  if (override_path && *override_path) {
    if (is_readable_file(override_path)) return absolute(override_path);
    return fail(ErrorCode::kSystem,
                std::string(override_path) + ": GPUMEMPROF_PROBE does not name a readable library");
  }
  std::string folder = executable.substr(0, executable.rfind('/'));
  for (const char* place : {"/", "/../lib/", "/../lib/gpumemprof/"}) {
    std::string path = folder + place + kProbeLibrary;
    if (is_readable_file(path)) return absolute(path);
  }
  return fail(ErrorCode::kSystem,
              std::string(kProbeLibrary) + ": not found in " + folder +
                  ", ../lib or ../lib/gpumemprof: install it again, or name it in "
                  "GPUMEMPROF_PROBE");
}

std::string host_library_beside(const std::string& probe) {
  const std::string path = probe.substr(0, probe.rfind('/') + 1) + kHostLibrary;
  return is_readable_file(path) ? path : "";
}

std::string find_package(const std::string& executable) {
  const std::string folder = executable.substr(0, executable.rfind('/'));
  for (const std::string& packages : site_packages(folder + "/..")) {
    if (std::string found = package_in(packages); !found.empty()) return found;
  }
  return {};
}

bool path_needs_alias(const std::string& path) {
  return path.find_first_of(" :$") != std::string::npos;
}

std::string folder_for_aliases() {
  const char* tmp = getenv("TMPDIR");
  return tmp && *tmp == '/' && !path_needs_alias(tmp) ? tmp : "/tmp";
}

Result<ProbePath> ProbePath::make(const std::string& probe) {
  ProbePath result;
  result.path_ = probe;
  if (!path_needs_alias(probe)) return result;
  const std::string base = folder_for_aliases();
  std::string folder = base + "/gpumemprof-XXXXXX";
  if (!mkdtemp(folder.data())) {
    return fail(ErrorCode::kSystem,
                base + ": cannot create a folder for the probe: " + strerror(errno));
  }
  result.folder_ = folder;
  result.path_ = folder + '/' + kProbeLibrary;
  if (symlink(probe.c_str(), result.path_.c_str()) != 0) {
    return fail(ErrorCode::kSystem, result.path_ + ": " + strerror(errno));
  }
  return result;
}

ProbePath::ProbePath(ProbePath&& other) noexcept
    : path_(std::move(other.path_)), folder_(std::exchange(other.folder_, {})) {}

ProbePath::~ProbePath() {
  if (folder_.empty()) return;
  unlink(path_.c_str());
  rmdir(folder_.c_str());
}

std::vector<std::string> probe_environment(const std::vector<std::string>& environment,
                                           const ProbeSettings& settings) {
  std::vector<std::string> result;
  std::string preload, search;
  bool had_search = false;
  for (const std::string& entry : environment) {
    std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name == "LD_PRELOAD" && entry.size() > name.size()) {
      preload = entry.substr(name.size() + 1);
      continue;
    }
    if (name == "LD_LIBRARY_PATH" && entry.size() > name.size()) {
      search = entry.substr(name.size() + 1);
      had_search = true;
      continue;
    }
    bool ours = false;
    for (std::string_view setting : kSettingNames) ours = ours || name == setting;
    if (!ours) result.push_back(entry);
  }
  const std::string outer = take_outer(&preload, kDriverProxyLibrary);
  take_outer(&preload, kHostLibrary);
  if (!lists(preload, settings.library)) {
    if (!preload.empty()) preload += ':';
    preload += settings.library;
  }
  if (!settings.driver_links.empty())
    preload += ':' + settings.driver_links + '/' + kDriverProxyLibrary;
  for (const std::string& runtime : settings.runtimes)
    if (!lists(preload, runtime)) preload += ':' + runtime;
  search = library_path(std::move(search), outer, settings.driver_links);
  if (!search.empty() || (had_search && outer.empty()))
    result.push_back("LD_LIBRARY_PATH=" + search);
  result.push_back("LD_PRELOAD=" + preload);
  result.push_back("GPUMEMPROF_DIR=" + settings.folder);
  result.push_back("GPUMEMPROF_STACKS=" + settings.stacks);
  if (!settings.arena.empty()) result.push_back("GPUMEMPROF_ARENA=" + settings.arena);
  if (settings.free_stacks) result.push_back("GPUMEMPROF_FREE_STACKS=1");
  if (!settings.record_cpu) result.push_back("GPUMEMPROF_NO_CPU=1");
  if (!settings.attribution) result.push_back("GPUMEMPROF_NO_ATTRIBUTION=1");
  if (settings.explain_leaks) {
    result.push_back(std::string("GPUMEMPROF_EXPLAIN_LEAKS=") +
                     (*settings.explain_leaks ? "1" : "0"));
  }
  if (!settings.package.empty()) result.push_back("GPUMEMPROF_PACKAGE=" + settings.package);
  if (!settings.driver_links.empty()) result.push_back("GPUMEMPROF_DRIVER=" + settings.driver);
  if (settings.max_disk_bytes > 0) {
    result.push_back("GPUMEMPROF_MAX_DISK=" + std::to_string(settings.max_disk_bytes));
  }
  return result;
}

}  // namespace gpumemprof
