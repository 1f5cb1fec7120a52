// What the system and its drivers say at one moment, as the values of a recording's sample.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/accelerators.h"
#include "recording/device_samples.h"
#include "run/processes.h"

namespace gpumemprof {

/// More processes than these are counted and not sampled one by one.
inline constexpr size_t kMostSampledProcesses = 64;

/// Whether the kernel walks through the page tables of each process, which takes it milliseconds for
/// a large one, or says what it counts anyway.
enum class Walk { kNo, kPages };

/// The memory of the machine, of our cgroup, and of each process of the run. `root` stands for "/".
void add_host_values(const std::string& root, const std::vector<ProcessId>& processes, Walk walk,
                     TakenSample* out);

/// "python train.py" of a command line: the program and the script or module of Python or a
/// shell; "cc1plus" of another program's. Arguments may be secrets.
std::string program_of(std::string_view command);

/// All that the drivers told, each field a value or absent with the reason.
void add_accelerator_values(const Accelerators& told, TakenSample* out);

/// In place of them: why no driver was asked.
void add_no_accelerators(const std::string& why, TakenSample* out);

}  // namespace gpumemprof
