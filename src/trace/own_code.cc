#include "trace/own_code.h"

namespace gpumemprof {

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
    if (file.find(part) != std::string_view::npos) return false;
  }
  // Packages in a profile of JAX, which begins its paths with them; generated code (dataclasses,
  // torch.fx, dynamo), as opposed to <stdin> and notebooks.
  for (std::string_view start : {"site-packages/", "dist-packages/", "<frozen ", "<eval_with_key>",
                                 "<torch_", "<__array_function__"}) {
    if (file.starts_with(start)) return false;
  }
  // Files with another name in every run: TensorFlow's AutoGraph, TorchInductor.
  for (std::string_view part : {"/__autograph_generated_file", "/torchinductor_"}) {
    if (file.find(part) != std::string_view::npos) return false;
  }
  if (is_native_source(file)) return false;
  return !file.ends_with(".so") && file.find(".so.") == std::string_view::npos;
}

uint32_t python_node(const Tables& tables, uint32_t stack) {
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
    if (frame.line != 0 && !is_native_source(tables.strings.get(frame.file))) return node;
  }
  return 0;
}

uint32_t own_node(const Tables& tables, uint32_t stack) {
  for (uint32_t node = stack; node != 0; node = tables.stacks.node(node).parent) {
    const Frame& frame = tables.stacks.frame(tables.stacks.node(node).frame);
    if (frame.line != 0 && is_user_file(tables.strings.get(frame.file))) return node;
  }
  return 0;
}

}  // namespace gpumemprof
