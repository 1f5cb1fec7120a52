#include "cli/info.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/folder.h"
#include "base/site_packages.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What decides how TensorFlow allocates. An allow-list: other variables may hold secrets.
constexpr const char* kSettings[] = {"CUDA_VISIBLE_DEVICES",      "TF_GPU_ALLOCATOR",
                                     "TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_THREAD_MODE",
                                     "TF_ENABLE_ONEDNN_OPTS",     "TF_CPU_ALLOCATOR_USE_BFC",
                                     "TF_CPU_BFC_MEM_LIMIT_IN_MB"};

/// "tensorflow_cpu-2.21.0.dist-info" of a folder: see("tensorflow_cpu", "2.21.0").
template <class See>
void each_package(const std::string& folder, const See& see) {
  constexpr std::string_view kInfo = ".dist-info";
  each_name(folder, [&](std::string_view name) {
    const size_t dash = name.find('-');
    if (!name.ends_with(kInfo) || dash == name.npos) return;
    see(name.substr(0, dash), name.substr(dash + 1, name.size() - kInfo.size() - dash - 1));
  });
}

/// Those that are TensorFlow or Keras.
Json packages_in(const std::string& folder) {
  constexpr std::string_view kWanted[] = {"tensorflow", "tensorflow_cpu", "tf_nightly",
                                          "tensorflow_rocm", "keras", "tf_keras", "jax"};
  Json out = Json::object();
  each_package(folder, [&](std::string_view package, std::string_view version) {
    if (std::ranges::find(kWanted, package) != std::end(kWanted))
      out[std::string(package)] = version;
  });
  return out;
}

bool has_tensorflow(const Json& packages) {
  return std::ranges::any_of(packages.items(), [](const auto& item) {
    return item.key().starts_with("tensorflow") || item.key() == "tf_nightly";
  });
}

}  // namespace

std::vector<std::string> package_folders(const std::string& program_path) {
  std::error_code error;
  const fs::path typed = program_path.find('/') != std::string::npos
                             ? fs::path(program_path)
                             : fs::read_symlink("/proc/self/exe", error);
  std::vector<std::string> out =
      site_packages(fs::absolute(typed, error).parent_path().parent_path().string());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* prefix = std::getenv(name);
    if (!prefix || !*prefix) continue;
    for (std::string& folder : site_packages(prefix)) out.push_back(std::move(folder));
  }
  return out;
}

Json tensorflow_json(const std::vector<std::string>& folders) {
  Json out = {{"packages", Json::object()}, {"folder", nullptr}, {"settings", Json::object()}};
  for (const std::string& folder : folders) {
    const Json packages = packages_in(folder);
    if (!has_tensorflow(packages)) continue;
    out["packages"] = packages, out["folder"] = folder;
    break;
  }
  for (const char* name : kSettings) {
    if (const char* value = std::getenv(name)) out["settings"][name] = value;
  }
  Json unknown = {{"devices", "only TensorFlow itself lists them, and it was not started"}};
  if (out["folder"].is_null())
    unknown["packages"] = "TensorFlow is installed neither beside this command nor in VIRTUAL_ENV";
  out["unknown"] = unknown;
  return out;
}

std::string tensorflow_text(const Json& tensorflow) {
  std::string packages, others, settings;
  for (const auto& [name, version] : tensorflow["packages"].items()) {
    std::string& list = name == "jax" ? others : packages;
    list += (list.empty() ? "" : ", ") + name + ' ' + version.get<std::string>();
  }
  for (const auto& [name, value] : tensorflow["settings"].items())
    settings += (settings.empty() ? "" : ", ") + name + '=' + value.get<std::string>();
  std::string out = "TensorFlow: ";
  out += tensorflow["folder"].is_null()
             ? "unknown (" + tensorflow["unknown"]["packages"].get<std::string>() + ")"
             : printable(packages) + ", in " + printable(tensorflow["folder"].get<std::string>());
  if (!others.empty()) out += "\nBeside it: " + printable(others);
  return out +
         "\nSettings: " + (settings.empty() ? "none in the environment" : printable(settings)) +
         '\n';
}

nlohmann::ordered_json second_profilers(const std::vector<std::string>& folders) {
  auto found = nlohmann::ordered_json::array();
  for (const std::string& folder : folders) {
    each_package(folder, [&](std::string_view package, std::string_view version) {
      if (package == "stormlog")
        found.push_back({{"package", package}, {"version", version}, {"folder", folder}});
    });
    if (!found.empty()) break;
  }
  return found;
}

std::string second_profiler_text(const nlohmann::ordered_json& found) {
  std::string text;
  for (const auto& one : found) {
    text += "Also installed: " + printable(one["package"].get<std::string>()) + ' ' +
            printable(one["version"].get<std::string>()) + ", in " +
            printable(one["folder"].get<std::string>()) +
            ": it installs a command gpumemprof, too; use one of them per environment\n";
  }
  return text;
}

}  // namespace gpumemprof
