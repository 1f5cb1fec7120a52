#include "trace/own_code.h"

#include <string>

#include "base/path_parts.h"

namespace gpumemprof {
namespace {

/// On Windows the standard library is "Lib" in the folder of Python, which no file names otherwise.
bool is_windows_library(std::string_view file) {
  if (file.size() < 3 || file[1] != ':') return false;
  std::string path(file);
  for (char& c : path) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const size_t library = find_in_path(path, "/lib/");
  if (library == path.npos) return false;
  const std::string_view home(path.data(), library);
  const size_t slash = home.find_last_of("/\\");
  if (slash == home.npos) return false;
  const std::string_view name = home.substr(slash + 1);
  for (std::string_view start : {"python3", "cpython-3", "pythonsoftwarefoundation.python.3"}) {
    if (name.starts_with(start)) return true;
  }
  for (std::string_view end : {"conda3", "miniforge3", "mambaforge"}) {
    if (name.ends_with(end)) return true;
  }
  const std::string_view above = home.substr(0, slash);  // an environment of conda, or pyenv's
  return path_ends_with(above, "/envs") || path_ends_with(above, "/pyenv-win/versions");
}

}  // namespace

std::string_view module_of_layer(std::string_view file) {
  constexpr size_t kRandom = sizeof("_abcdefgh.py") - 1;
  if (!file.ends_with(".py")) return {};
  std::string_view name = file.substr(file.find_last_of("/\\") + 1);  // npos + 1 is 0
  if (name.size() < kRandom || name[name.size() - kRandom] != '_') return {};
  name.remove_suffix(kRandom);
  const bool is_known = name.starts_with("torch_geometric.") || name.ends_with("_propagate") ||
                        name.ends_with("_edge_updater");
  return is_known ? name : std::string_view();
}

bool is_native_source(std::string_view file) {
  if (file == "??") return true;
  for (std::string_view end : {".cpp", ".cc", ".cxx", ".c", ".cu", ".cuh", ".h", ".hpp", ".o"}) {
    if (file.ends_with(end)) return true;
  }
  return false;
}

bool is_user_file(std::string_view file) {
  if (file.empty()) return false;
  for (std::string_view part :
       {"/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3"}) {
    if (path_has(file, part)) return false;
  }
  if (is_windows_library(file)) return false;
  // Packages in a profile of JAX, which begins its paths with them; generated code (dataclasses,
  // torch.fx, dynamo), as opposed to <stdin> and notebooks.
  for (std::string_view start : {"site-packages/", "dist-packages/", "<frozen ", "<eval_with_key>",
                                 "<torch_", "<__array_function__"}) {
    if (file.starts_with(start)) return false;
  }
  // Files with another name in every run: TensorFlow's AutoGraph, TorchInductor.
  for (std::string_view part : {"/__autograph_generated_file", "/torchinductor_"}) {
    if (path_has(file, part)) return false;
  }
  if (!module_of_layer(file).empty() || is_native_source(file)) return false;
  return !file.ends_with(".so") && file.find(".so.") == std::string_view::npos;
}

uint32_t python_node(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return frame.line != 0 && !is_native_source(tables.strings.get(frame.file));
  });
}

uint32_t own_node(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    return frame.line != 0 && is_user_file(tables.strings.get(frame.file));
  });
}

}  // namespace gpumemprof
