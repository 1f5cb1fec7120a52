// Whether a file is a snapshot, from its first bytes.

#include "readers/torch_snapshot/read.h"

namespace gpumemprof {
namespace {

constexpr size_t kPrefixBytes = 64 << 10;

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin);
}

bool holds(std::string_view text, std::string_view word) { return text.find(word) != text.npos; }

}  // namespace

bool looks_like_torch_snapshot(std::string_view bytes) {
  bytes = bytes.substr(0, kPrefixBytes);
  if (bytes.size() >= 2 && bytes[0] == '\x80') return bytes[1] >= 2 && bytes[1] <= 5;
  const std::string_view json = without_space(bytes);
  if (json.starts_with('{')) {
    // The first key, or the one that no other JSON has.
    const std::string_view rest = without_space(json.substr(1));
    return rest.starts_with("\"segments\"") || rest.starts_with("\"external_annotations\"") ||
           rest.starts_with("\"allocator_settings\"") || holds(json, "\"device_traces\"");
  }
  // A bare list of segments.
  return json.starts_with('[') && holds(json, "\"total_size\"") &&
         holds(json, "\"segment_type\"") && holds(json, "\"blocks\"");
}

bool is_torch_snapshot(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return false;
  std::string prefix(kPrefixBytes, '\0');
  auto got = (*file)->read_at(0, prefix.data(), prefix.size());
  return got && looks_like_torch_snapshot(std::string_view(prefix).substr(0, *got));
}

}  // namespace gpumemprof
