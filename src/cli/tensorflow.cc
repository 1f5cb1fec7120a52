#include "cli/tensorflow.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/size.h"
#include "cli/options.h"
#include "devices/accelerators.h"

namespace gpumemprof {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kRearm = 0.95;  // of the threshold
constexpr int kMostGpus = 1024;

}  // namespace

Result<std::optional<int>> parse_tensorflow_device(const std::string& text) {
  std::string name = text.substr(text.rfind('/') == std::string::npos ? 0 : text.rfind('/') + 1);
  std::ranges::transform(name, name.begin(),
                         [](char c) { return std::tolower(static_cast<unsigned char>(c)); });
  if (name.starts_with("device:")) name.erase(0, 7);
  const bool is_cpu = name == "cpu" || name == "cpu:0";
  if (is_cpu) return std::optional<int>();
  if (name == "gpu") name = "0";
  if (name.starts_with("gpu:")) name.erase(0, 4);
  const bool is_number = !name.empty() && name.size() <= 4 &&
                         std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
  if (is_number && std::stoi(name) < kMostGpus) return std::optional<int>(std::stoi(name));
  return fail(ErrorCode::kUsage, "--device " + text + ": is not a device: write /GPU:0 or /CPU:0");
}

bool has_accelerator(int index, const std::string& root) {
  // ROCm has one node for all of its GPUs; their number is not worth reading more for.
  const std::string nvidia = root + "/dev/nvidia" + std::to_string(index);
  return access(nvidia.c_str(), F_OK) == 0 || access((root + "/dev/kfd").c_str(), F_OK) == 0;
}

Status DeviceOption::resolve() {
  if (name.empty()) return {};
  auto gpu = parse_tensorflow_device(name);
  if (!gpu) return std::unexpected(gpu.error());
  if (!*gpu) return {};
  const auto is_listed = [](int index) {
    return index < static_cast<int>(AcceleratorReader().read(Depth::kMemory).devices.size());
  };
  if (has_accelerator(**gpu) || is_listed(**gpu)) {
    number = **gpu;
  } else {
    notes = name + " does not exist here (no NVIDIA or AMD driver lists it); measuring the CPU";
  }
  return {};
}

void add_device_option(CLI::App* command, const CommandContext& context, DeviceOption* device,
                       const char* meaning) {
  if (context.tensorflow) {
    add_value(command, "--device", "NAME", device->name,
              "/GPU:0: only this accelerator; host memory if there is "
              "none, or with /CPU:0");
    return;
  }
  add_value(command, "--device", "N", device->number, meaning)->check(CLI::NonNegativeNumber);
}

Threshold::Threshold(std::optional<double> mib) {
  if (mib) bytes_ = *mib * kMib;
}

std::optional<TelemetryEvent> Threshold::look(const TelemetryEvent& sample) {
  if (!bytes_ || !sample.allocated_bytes) return std::nullopt;
  const auto allocated = static_cast<double>(*sample.allocated_bytes);
  if (above_) {
    above_ = allocated >= *bytes_ * kRearm;
    return std::nullopt;
  }
  if (allocated <= *bytes_) return std::nullopt;
  above_ = true;
  TelemetryEvent alert = sample;
  alert.event_type = "warning";
  alert.change_bytes = 0;
  alert.context = format_bytes(*sample.allocated_bytes) + " allocated, above the threshold of " +
                  format_bytes(static_cast<uint64_t>(*bytes_));
  return alert;
}

}  // namespace gpumemprof
