// The parts of `info`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "devices/accelerator.h"

namespace gpumemprof {

// Accelerators as `info` prints them.

/// Some lines a device; `detailed` adds its condition, its slices and what the driver is.
std::string accelerator_text(const Accelerator& device, bool detailed);

// Another package, stormlog, installs a command gpumemprof, and up to 0.2.6 a package of that name.

/// [{"package", "version", "folder"}]: what of that kind the first of `folders` (site-packages)
/// that has any has.
nlohmann::ordered_json second_profilers(const std::vector<std::string>& folders);

/// One line for each, or nothing.
std::string second_profiler_text(const nlohmann::ordered_json& found);

// What `tfmemprof info` says of TensorFlow without starting it: its packages and its settings.

/// {"packages": {name: version}, "folder", "settings": {variable: value}, "unknown": {…}}. Packages
/// are those of the first of `folders` (site-packages) that has TensorFlow.
nlohmann::ordered_json tensorflow_json(const std::vector<std::string>& folders);

/// The site-packages beside this command (its typed path, before links), and of VIRTUAL_ENV and
/// CONDA_PREFIX.
std::vector<std::string> package_folders(const std::string& program_path);

/// The lines for people.
std::string tensorflow_text(const nlohmann::ordered_json& tensorflow);

}  // namespace gpumemprof
