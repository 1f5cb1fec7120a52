// Replaces names so that output can be shared: the same name always gets the same replacement
// within one Anonymizer, and different names get different ones.
//
// Names that anybody can install are kept: files of packages and of Python's library, without their
// installation folder, and the functions in them. Everything else is replaced: the user's files,
// functions and native code, hosts, command lines, threads, and paths of inputs. The user's own
// package counts as a package if it is installed.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <string_view>

namespace gpumemprof {

/// Not thread-safe.
class Anonymizer {
 public:
  /// "/any/site-packages/torch/a.py" becomes "/site-packages/torch/a.py", "/srv/me/train.py"
  /// becomes "/folder1/file1.py": folder and name are replaced separately, so that one program in
  /// two places still shows as one. The empty path and "??" do not change.
  std::string file(std::string_view path);
  /// `path` is the function's file before file() replaced it.
  std::string function(std::string_view name, std::string_view path);
  std::string host(std::string_view name) { return numbered(hosts_, name, "host"); }
  std::string command(std::string_view text) { return numbered(commands_, text, "command"); }
  std::string thread(std::string_view name) { return numbered(threads_, name, "thread"); }
  std::string input(std::string_view path) { return numbered(inputs_, path, "input"); }

 private:
  using Names = absl::flat_hash_map<std::string, std::string>;
  /// "file3"; the empty name stays empty.
  static std::string numbered(Names& names, std::string_view name, std::string_view kind,
                              std::string_view ending = {});

  Names folders_, files_, functions_, hosts_, commands_, threads_, inputs_;
};

/// The offset at which `path` is the same on every machine: below site-packages, Python's library,
/// or the system's. Empty if the file is the user's own.
std::string_view installed_part(std::string_view path);

/// True for a name that consists only of words of the C and C++ runtimes, Python or PyTorch:
/// "at::native::add", "_PyEval_EvalFrameDefault". One unknown word, such as a template's argument,
/// makes it false.
bool is_public_native_name(std::string_view name);

}  // namespace gpumemprof
