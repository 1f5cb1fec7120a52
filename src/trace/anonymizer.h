// Names that may be shared: the same name gets the same replacement within one Anonymizer, and no
// two names get the same.
//
// Kept are names that anybody can install: files of packages and of Python's own library, without
// the folder that they are installed in, and the functions in them. Replaced is everything else:
// files and functions of the user's own, native code of his own, hosts, command lines, threads, and
// paths of inputs. A package of his own that is installed counts as a package.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <string_view>

namespace gpumemprof {

/// Not thread-safe.
class Anonymizer {
 public:
  /// "/any/site-packages/torch/a.py" gives "/site-packages/torch/a.py", "/srv/me/train.py"
  /// "/folder1/file1.py": folder and name apart, so that one program in two places still shows as
  /// one. The empty path and "??" stay.
  std::string file(std::string_view path);
  /// `path` is the file of the function, as it was before file().
  std::string function(std::string_view name, std::string_view path);
  std::string host(std::string_view name) { return numbered(hosts_, name, "host"); }
  std::string command(std::string_view text) { return numbered(commands_, text, "command"); }
  std::string thread(std::string_view name) { return numbered(threads_, name, "thread"); }
  std::string input(std::string_view path) { return numbered(inputs_, path, "input"); }

 private:
  using Names = absl::flat_hash_map<std::string, std::string>;
  /// "file3"; of an empty name the empty name.
  static std::string numbered(Names& names, std::string_view name, std::string_view kind,
                              std::string_view ending = {});

  Names folders_, files_, functions_, hosts_, commands_, threads_, inputs_;
};

/// Where the part of `path` begins that is the same on every machine: below site-packages,
/// Python's library, or the system's. Empty where the file is the user's own.
std::string_view installed_part(std::string_view path);

/// True for a name that only the C and C++ runtimes, Python or PyTorch use: "at::native::add",
/// "_PyEval_EvalFrameDefault". One unknown word in it, such as a template's argument, makes it
/// false.
bool is_public_native_name(std::string_view name);

}  // namespace gpumemprof
