#include "run/driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "run/preload.h"

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

constexpr std::array kLinkNames = {kDriverProxyLibrary, "libcuda.so", "libcuda.so.1", "driver"};

}  // namespace

std::string find_driver() {
  // Within a recorded program the loader would answer with the stand-in.
  if (const char* known = getenv("GPUMEMPROF_DRIVER"); known && *known == '/')
    return is_library(known) ? known : "";
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
  return path.starts_with('/') && is_library(path) ? path : "";
}

std::string driver_proxy_beside(const std::string& probe) {
  const std::string path = probe.substr(0, probe.rfind('/') + 1) + kDriverProxyLibrary;
  return is_library(path) ? path : "";
}

Result<DriverLinks> DriverLinks::make(const std::string& proxy, const std::string& driver) {
  const char* tmp = getenv("TMPDIR");
  std::string folder = tmp && *tmp == '/' && !path_needs_alias(tmp) ? tmp : "/tmp";
  folder += "/gpumemprof-driver-XXXXXX";
  if (!mkdtemp(folder.data())) {
    return fail(ErrorCode::kSystem,
                folder + ": cannot make a folder for the driver's links: " + strerror(errno));
  }
  DriverLinks result;
  result.folder_ = folder, result.driver_ = driver;
  for (const char* name : kLinkNames) {
    const std::string& target = name == kLinkNames.back() ? driver : proxy;
    const std::string path = folder + '/' + name;
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
