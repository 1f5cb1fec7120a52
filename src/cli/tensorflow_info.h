// What `tfmemprof info` says of TensorFlow without starting it: its packages and its settings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpumemprof {

/// {"packages": {name: version}, "folder", "settings": {variable: value}, "unknown": {…}}. Packages
/// are those of the first of `folders` (site-packages) that has TensorFlow.
nlohmann::ordered_json tensorflow_json(const std::vector<std::string>& folders);

/// The site-packages beside this command (its typed path, before links), and of VIRTUAL_ENV and
/// CONDA_PREFIX.
std::vector<std::string> package_folders(const std::string& program_path);

/// The lines for people.
std::string tensorflow_text(const nlohmann::ordered_json& tensorflow);

}  // namespace gpumemprof
