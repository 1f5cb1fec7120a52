#include "trace/anonymizer.h"

#include <algorithm>
#include <array>

#include "base/path_parts.h"
#include "trace/label_frames.h"
#include "trace/own_code.h"

namespace gpumemprof {
namespace {

bool is_word(char c) {
  if (static_cast<unsigned char>(c) >= 0x80) return true;  // identifiers may be in any script
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// What may begin a qualified name, or stand alone in a signature.
constexpr std::array<std::string_view, 37> kPublicWords = {
    "at",        "auto",        "bool",     "c10",      "c10d",   "caffe2",   "char",
    "clone",     "clone3",      "class",    "const",    "cuda",   "decltype", "double",
    "float",     "int",         "int64_t",  "long",     "lambda", "main",     "noexcept",
    "operator",  "pybind11",    "short",    "signed",   "size_t", "std",      "struct",
    "torch",     "typename",    "uint64_t", "unsigned", "void",   "_start",   "anonymous",
    "namespace", "start_thread"};

bool is_public_word(std::string_view word) {
  if (word[0] >= '0' && word[0] <= '9') return true;  // a template's number
  for (std::string_view prefix : {"Py", "_Py", "THP", "__libc_"}) {
    if (word.starts_with(prefix)) return true;
  }
  return std::find(kPublicWords.begin(), kPublicWords.end(), word) != kPublicWords.end();
}

/// Python's own names for code without a name: "<module>", "<lambda>", "<listcomp>".
bool is_python_word(std::string_view name) {
  for (std::string_view word :
       {"<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}) {
    if (name == word) return true;
  }
  return false;
}

/// PyTorch numbers the nodes that it generates; a user's own class has no number.
bool is_generated_node(std::string_view name) {
  const size_t at = name.find_last_not_of("0123456789");
  if (name.find("::") != name.npos || name.starts_with("Compiled")) return false;
  return name == "AccumulateGrad" ||
         (at != name.npos && at + 1 < name.size() && name.substr(0, at + 1).ends_with("Backward"));
}

/// Code without a file. Names given by a notebook or a user do not count.
bool is_generated_file(std::string_view path) {
  static constexpr std::string_view kStarts[] = {
      "<frozen ", "<eval_with_key>", "<torch_",    "<__array_function__",
      "<string>", "<stdin>",         kInternalFile};
  for (std::string_view start : kStarts) {
    if (path.starts_with(start)) return true;
  }
  return false;
}

bool is_library_of_system(std::string_view path) {
  const bool is_object = path.ends_with(".so") || path.find(".so.") != std::string_view::npos;
  return is_object && (path.starts_with("/usr/lib") || path.starts_with("/lib"));
}

/// ".py" of "a.py"; empty if it could itself be a name.
std::string_view ending_of(std::string_view path) {
  for (std::string_view ending : {".py", ".pyx", ".so", ".cpp", ".cc", ".cxx", ".c", ".cu", ".cuh",
                                  ".h", ".hpp", ".o", ".ipynb"}) {
    if (path.ends_with(ending)) return ending;
  }
  return {};
}

/// From "/lib/python3.11/" on; a folder that only has this name does not count.
std::string_view standard_library_part(std::string_view path) {
  for (std::string_view library : {"/lib/python3.", "/lib64/python3."}) {
    const size_t at = path.rfind(library);
    if (at == std::string_view::npos) continue;
    size_t end = at + library.size();
    while (end < path.size() && path[end] >= '0' && path[end] <= '9') ++end;
    if (end > at + library.size() && end < path.size() && path[end] == '/') return path.substr(at);
  }
  return {};
}

/// From "/python-3.12.3/Objects/methodobject.c" on: the interpreter's own code, wherever it was built.
std::string_view interpreter_part(std::string_view path) {
  if (!path.ends_with(".c") && !path.ends_with(".h")) return {};
  for (std::string_view root : {"/python-3.", "/Python-3."}) {
    const size_t at = path.rfind(root);
    if (at == std::string_view::npos) continue;
    const std::string_view part = path.substr(at);
    const size_t slash = part.find('/', 1);
    if (slash == std::string_view::npos) continue;
    const std::string_view inside = part.substr(slash);
    for (std::string_view folder : {"/Objects/", "/Python/", "/Modules/", "/Include/"})
      if (inside.starts_with(folder)) return part;
  }
  return {};
}

/// What TorchInductor and TensorFlow's AutoGraph write, below a folder that has the user's name:
/// "/tmp/torchinductor_anna/l4/cl4x.py" becomes "/torchinductor_/l4/cl4x.py".
std::string generated_part(std::string_view path) {
  constexpr std::string_view kInductor = "/torchinductor_", kGraph = "/__autograph_generated_file";
  if (const size_t at = rfind_in_path(path, kInductor); at != std::string_view::npos) {
    const size_t slash = path.find('/', at + 1);
    return std::string(kInductor) + std::string(slash == path.npos ? "" : path.substr(slash));
  }
  const size_t at = rfind_in_path(path, kGraph);
  return at == std::string_view::npos ? "" : std::string(path.substr(at));
}

}  // namespace

std::string_view installed_part(std::string_view path) {
  for (std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const size_t at = rfind_in_path(path, packages);
    if (at != std::string_view::npos) return path.substr(at);
  }
  if (const std::string_view part = standard_library_part(path); !part.empty()) return part;
  if (const std::string_view part = interpreter_part(path); !part.empty()) return part;
  if (is_library_of_system(path)) return path.substr(path.rfind('/'));
  return is_generated_file(path) && path.find('/') == std::string_view::npos ? path
                                                                             : std::string_view();
}

/// The file of a frame whose function is the library that called the CUDA driver.
static constexpr std::string_view kCallerFile = "<driver>";

static bool is_public_library(std::string_view name) {
  constexpr std::string_view kPublic[] = {
      "libcu",         "libcudnn", "libnccl",  "libnv", "libc10",
      "libtorch",      "libffi",   "libjax",   "libtf", "_pywrap_tensorflow",
      "libtensorflow", "xla_",     "libpython"};
  for (std::string_view begin : kPublic)
    if (name.starts_with(begin)) return true;
  return name == "unknown library";
}

bool is_public_native_name(std::string_view name) {
  bool any = false;
  for (size_t i = 0; i < name.size();) {
    if (!is_word(name[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < name.size() && is_word(name[end])) ++end;
    // After "::" the word belongs to the preceding one, which has been checked.
    const bool is_qualified = i >= 2 && name[i - 1] == ':' && name[i - 2] == ':';
    if (!is_qualified && !is_public_word(name.substr(i, end - i))) return false;
    any = true;
    i = end;
  }
  return any;
}

std::string Anonymizer::numbered(Names& names, std::string_view name, std::string_view kind,
                                 std::string_view ending) {
  if (name.empty()) return "";
  auto [at, added] = names.try_emplace(std::string(name));
  if (added) at->second = std::string(kind) + std::to_string(names.size()) + std::string(ending);
  return at->second;
}

std::string Anonymizer::file(std::string_view path) {
  // Layer names are the program's own, and diff aligns by them.
  if (path.empty() || path == "??" || path == kLayerScopeFile || path == kCallerFile ||
      path == kFileMapFile ||
      is_torch_label(path)) {
    return std::string(path);
  }
  const std::string_view part = installed_part(path);
  if (!part.empty()) return std::string(part);
  if (const std::string generated = generated_part(path); !generated.empty()) return generated;
  const size_t slash = path.find_last_of("/\\");
  const std::string_view name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  const std::string file = numbered(files_, name, "file", ending_of(name));
  if (slash == std::string_view::npos) return file;
  const std::string folder = numbered(folders_, path.substr(0, slash + 1), "folder");
  return "/" + folder + "/" + file;
}

std::string Anonymizer::function(std::string_view name, std::string_view path) {
  if (is_python_word(name) || name == "??") return std::string(name);
  if (path == kModeFile || (path == kBackwardFile && is_generated_node(name))) {
    return std::string(name);
  }
  if (path == kCallerFile)
    return is_public_library(name) ? std::string(name) : numbered(functions_, name, "library");
  const bool is_own_code = path == "<string>" || path == "<stdin>";
  if (!is_own_code && !installed_part(path).empty()) return std::string(name);
  if ((path.empty() || is_native_source(path)) && is_public_native_name(name))
    return std::string(name);
  return numbered(functions_, name, "function");
}

}  // namespace gpumemprof
