#include "cli/info.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

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
constexpr std::string_view kInfo = ".dist-info";

/// "tensorflow_cpu-2.21.0.dist-info" of a folder: {"tensorflow_cpu", "2.21.0"}, for the packages
/// that are TensorFlow or Keras.
Json packages_in(const std::string& folder) {
  Json out = Json::object();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const size_t dash = name.find('-');
    if (!name.ends_with(kInfo) || dash == std::string::npos) continue;
    const std::string package = name.substr(0, dash);
    const bool wanted = package == "tensorflow" || package == "tensorflow_cpu" ||
                        package == "tf_nightly" || package == "tensorflow_rocm" ||
                        package == "keras" || package == "tf_keras" || package == "jax";
    if (wanted) out[package] = name.substr(dash + 1, name.size() - kInfo.size() - dash - 1);
  }
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

}  // namespace gpumemprof
