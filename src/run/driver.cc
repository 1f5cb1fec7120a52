#include "run/driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <utility>

#include "run/elf.h"
#include "run/preload.h"
#include "run/stand_in.h"

namespace gpumemprof {
namespace {

constexpr int kPatienceMs = 10'000;  // the driver's library is large, a cold disk slow

/// In the process that asks.
[[noreturn]] void tell_driver(int to) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) dup2(null, STDOUT_FILENO), dup2(null, STDERR_FILENO);
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  char real[PATH_MAX];
  if (library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, real)) {
    [[maybe_unused]] ssize_t n = write(to, real, strlen(real));
  }
  _exit(0);
}

std::string read_answer(int from) {
  std::string text;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t end_ms = now.tv_sec * 1000 + now.tv_nsec / 1'000'000 + kPatienceMs;
  for (char part[512];;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t left = end_ms - (now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
    pollfd one = {from, POLLIN, 0};
    const int ready = left > 0 ? poll(&one, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t n = read(from, part, sizeof part);
    if (n <= 0) return n == 0 ? text : std::string();
    text.append(part, static_cast<size_t>(n));
    if (text.size() > PATH_MAX) return {};
  }
}

bool is_library(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && access(path.c_str(), R_OK) == 0;
}

/// Whether it is a stand-in, this one or an outer recording's, whatever links lead to it: it would
/// forward every call to itself.
bool is_stand_in(const std::string& path) {
  char real[PATH_MAX];
  const std::string_view name = realpath(path.c_str(), real) ? real : path.c_str();
  return name.substr(name.rfind('/') + 1) == kDriverProxyLibrary;
}

bool is_driver(const std::string& path) { return is_library(path) && !is_stand_in(path); }

std::vector<std::string> functions_of(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::vector<std::string> names = read_elf_exports(fd, "cu");
  close(fd);
  // A debugger's own entries (cudbg…) are nothing that a program is linked to.
  std::erase_if(names, [](const std::string& name) { return name[2] < 'A' || name[2] > 'Z'; });
  return names;
}

/// What the driver exports and the stand-in lacks. Empty too where nothing can be said of it.
std::vector<std::string> functions_only_in(const std::string& driver, const std::string& proxy) {
  const std::vector<std::string> known = functions_of(proxy);
  std::vector<std::string> only;
  if (!known.empty())
    std::ranges::set_difference(functions_of(driver), known, std::back_inserter(only));
  return only;
}

constexpr std::array kLinkNames = {kDriverProxyLibrary, "libcuda.so", "libcuda.so.1", "driver"};

/// A library that stands before a run time, and what this is called, the newest first.
struct Runtime {
  const char* proxy;
  std::array<const char*, 4> names;
  const char* device;  ///< the kernel's: there where programs bring a run time of their own
};
constexpr std::array kRuntimes = {
    Runtime{"libgpumemprof_hip.so",
            {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
            "/dev/kfd"},
    Runtime{"libgpumemprof_level_zero.so", {"libze_loader.so.1"}, nullptr}};

/// In the process that asks: its exit code has a bit for each run time that the loader finds.
[[noreturn]] void tell_runtimes() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) dup2(null, STDOUT_FILENO), dup2(null, STDERR_FILENO);
  alarm(kPatienceMs / 1000);
  int found = 0;
  for (size_t i = 0; i < kRuntimes.size(); ++i) {
    const auto opens = [](const char* name) {
      return name && dlopen(name, RTLD_LAZY | RTLD_LOCAL) != nullptr;
    };
    if (std::ranges::any_of(kRuntimes[i].names, opens)) found |= 1 << i;
  }
  _exit(found);
}

}  // namespace

std::vector<std::string> runtime_proxies_beside(const std::string& probe) {
  std::vector<std::string> out;
  const std::string folder = probe.substr(0, probe.rfind('/') + 1);
  const auto is_here = [&](const Runtime& runtime) { return is_library(folder + runtime.proxy); };
  if (std::ranges::none_of(kRuntimes, is_here)) return out;
  const pid_t pid = fork();
  if (pid == 0) tell_runtimes();
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const int found = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  for (size_t i = 0; i < kRuntimes.size(); ++i) {
    const bool is_wanted =
        (found >> i & 1) != 0 || (kRuntimes[i].device && access(kRuntimes[i].device, F_OK) == 0);
    if (is_wanted && is_here(kRuntimes[i])) out.push_back(folder + kRuntimes[i].proxy);
  }
  return out;
}

std::string find_driver() {
  // Within a recorded program the loader would answer with the stand-in.
  if (const char* known = getenv("GPUMEMPROF_DRIVER"); known && *known == '/')
    return is_driver(known) ? known : "";
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) tell_driver(ends[1]);
  close(ends[1]);
  std::string path = pid > 0 ? read_answer(ends[0]) : std::string();
  close(ends[0]);
  if (pid > 0) {
    if (path.empty()) kill(pid, SIGKILL);  // it is done, or it hangs
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (!path.starts_with('/') || !is_library(path)) return {};
  if (!is_stand_in(path)) return path;
  // The variable got lost on the way; an outer recording's links, which answered, know the driver.
  char real[PATH_MAX];
  for (std::string_view rest = getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : "";
       !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (folder.find("/gpumemprof-driver-") == folder.npos) continue;
    const std::string link = std::string(folder) + '/' + kLinkNames.back();
    if (realpath(link.c_str(), real) && is_driver(real)) return real;
  }
  return {};
}

std::string driver_proxy_beside(const std::string& probe) {
  const std::string path = probe.substr(0, probe.rfind('/') + 1) + kDriverProxyLibrary;
  return is_library(path) ? path : "";
}

Result<DriverLinks> DriverLinks::make(const std::string& proxy, const std::string& driver) {
  std::string folder = folder_for_aliases() + "/gpumemprof-driver-XXXXXX";
  if (!mkdtemp(folder.data())) {
    return fail(ErrorCode::kSystem,
                folder + ": cannot create a folder for the driver's links: " + strerror(errno));
  }
  DriverLinks result;
  result.folder_ = folder, result.driver_ = driver;
  std::string stand_in = proxy;
  if (const auto added = functions_only_in(driver, proxy); !added.empty()) {
    stand_in = folder + '/' + kDriverProxyLibrary;
    if (auto done = write_stand_in_with(proxy, added, stand_in); !done)
      return fail(done.error().code, driver + ": " + done.error().message);
  }
  for (const char* name : kLinkNames) {
    const std::string& target = name == kLinkNames.back() ? driver : stand_in;
    const std::string path = folder + '/' + name;
    if (path == target) continue;
    if (symlink(target.c_str(), path.c_str()) != 0)
      return fail(ErrorCode::kSystem, path + ": " + strerror(errno));
  }
  return result;
}

DriverLinks::DriverLinks(DriverLinks&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      driver_(std::move(other.driver_)),
      is_kept_(other.is_kept_) {}

DriverLinks::~DriverLinks() {
  if (folder_.empty() || is_kept_) return;
  for (const char* name : kLinkNames) unlink((folder_ + '/' + name).c_str());
  rmdir(folder_.c_str());
}

}  // namespace gpumemprof
