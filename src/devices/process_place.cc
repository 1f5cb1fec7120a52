#include "devices/process_place.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// The kernel's constant for the first PID namespace (PROC_PID_INIT_INO).
constexpr std::string_view kFirstNamespace = "pid:[4026531836]";
constexpr size_t kMostCommand = 1024;

bool has_mapped(const std::string& maps, const std::string& driver) {
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* n) { return maps.find(n) != maps.npos; });
  };
  if (driver == "nvidia") return any({"/libcuda.so", "/dev/nvidia"});
  return any({"/dev/kfd", "/dev/dri/", "/libhsa-runtime64.so", "/libze_intel_gpu.so"});
}

}  // namespace

ProcessPlace::ProcessPlace(std::string root) : proc_(std::move(root) + "/proc") {
  char link[64] = {};
  const ssize_t length = readlink((proc_ + "/self/ns/pid").c_str(), link, sizeof link - 1);
  whole_machine_ = length > 0 && std::string_view(link) == kFirstNamespace;
}

void ProcessPlace::look_up(AcceleratorProcess* process, const std::string& driver) const {
  const std::string folder = proc_ + '/' + std::to_string(process->pid);
  process->here = false;
  if (process->pid <= 0 || access((folder + "/stat").c_str(), F_OK) != 0) {
    process->not_here_because = whole_machine_
                                    ? "it has ended, or is hidden from this user"
                                    : "it runs outside this PID namespace: the PID is the host's";
    return;
  }
  if (!whole_machine_ && !has_mapped(read_proc_text(folder + "/maps"), driver)) {
    process->not_here_because =
        "the PID may be the host's: the process with this PID here does not use the driver";
    return;
  }
  look_up_own(process);
}

void ProcessPlace::look_up_own(AcceleratorProcess* process) const {
  const std::string folder = proc_ + '/' + std::to_string(process->pid);
  process->here = true;
  process->command = read_proc_text(folder + "/cmdline").substr(0, kMostCommand);
  while (!process->command.empty() && process->command.back() == '\0') process->command.pop_back();
  std::ranges::replace(process->command, '\0', ' ');
}

}  // namespace gpumemprof
