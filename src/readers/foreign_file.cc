#include "readers/foreign_file.h"

#include <array>

#include "base/file.h"
#include "readers/bfc_dump/read.h"
#include "readers/pprof/read.h"
#include "readers/xplane/read.h"

namespace gpumemprof {
namespace {

using Source = Result<std::unique_ptr<EventSource>>;

struct Kind {
  const char* name;
  bool (*looks_like)(std::string_view prefix);
  Source (*read)(File& file);
};
constexpr Kind kKinds[] = {
    {"a profile of TensorFlow", looks_like_xplane, [](File& file) { return read_xplane(file); }},
    {"a profile of JAX's memory", looks_like_pprof, [](File& file) { return read_pprof(file); }},
    {"a memory dump of TensorFlow", looks_like_bfc_dump, read_bfc_dump_source},
};

const Kind* kind_of(File& file) {
  std::array<char, 4096> prefix;
  auto got = file.read_at(0, prefix.data(), prefix.size());
  if (!got) return nullptr;
  for (const Kind& kind : kKinds) {
    if (kind.looks_like(std::string_view(prefix.data(), *got))) return &kind;
  }
  return nullptr;
}

}  // namespace

const char* foreign_file_kind(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  const Kind* kind = file ? kind_of(**file) : nullptr;
  return kind ? kind->name : nullptr;
}

Source open_foreign_file(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return std::unexpected(file.error());
  const Kind* kind = kind_of(**file);
  return kind ? kind->read(**file) : fail_at(0, "not a known file format of another program");
}

}  // namespace gpumemprof
