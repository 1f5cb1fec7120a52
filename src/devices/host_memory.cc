#include "devices/host_memory.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// Version 1 writes "no limit" as a number near 2^63.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

Quantity field(const std::string& meminfo, const char* key) {
  const auto bytes = field_bytes(meminfo, key);
  return bytes ? Quantity::of(*bytes)
               : Quantity::absent(std::string("/proc/meminfo has no ") + key);
}

struct Names {
  const char *limit, *usage, *cache;
  bool is_v1;
};

/// Where the hierarchy is that has our cgroup. `top` is what of it is mounted there.
struct Mount {
  std::string point, top;
};

/// By mountinfo: "30 1 0:2 TOP POINT OPTIONS - TYPE SOURCE OPTIONS"; what is usual where it is
/// silent.
Mount mount_of(const std::string& text, std::string_view type, std::string_view option,
               const char* usual) {
  for (const auto line : std::views::split(text, '\n')) {
    std::vector<std::string> words;
    for (const auto word : std::views::split(line, ' '))
      words.emplace_back(word.begin(), word.end());
    const size_t dash = static_cast<size_t>(std::ranges::find(words, "-") - words.begin());
    if (dash < 5 || dash + 3 >= words.size() || words[dash + 1] != type) continue;
    if (("," + words[dash + 3] + ",").contains(option)) return {words[4], words[3]};
  }
  return {usual, "/"};
}

uint64_t room_of(const Quantity& limit, const Quantity& used) {
  if (!used) return *limit.bytes;
  return *limit.bytes - std::min(*limit.bytes, *used.bytes);
}

/// Walks from our cgroup up to the root.
void read_limit(const std::string& root, const Mount& mount, std::string path, const Names& names,
                HostMemory* out) {
  if (mount.top != "/" && (path + '/').starts_with(mount.top + '/'))
    path.erase(0, mount.top.size());
  for (;;) {
    const std::string folder = root + mount.point + path;
    const auto limit = whole_number(read_proc_text(folder + '/' + names.limit));
    const auto usage = whole_number(read_proc_text(folder + '/' + names.usage));
    if (out->cgroup_folder.empty() && usage)
      out->cgroup_folder = folder, out->cgroup_is_v1 = names.is_v1;
    if (limit && *limit < kNoLimit) {
      // Page cache that the kernel drops when memory is wanted.
      const std::string stat = read_proc_text(folder + "/memory.stat");
      const uint64_t cache = line_number(stat, names.cache).value_or(0);
      const Quantity all = Quantity::of(*limit);
      const Quantity used = usage ? Quantity::of(*usage - std::min(*usage, cache))
                                  : Quantity::absent("the cgroup does not report its use");
      if (!out->limit || room_of(all, used) < room_of(out->limit, out->limit_used)) {
        out->limit = all, out->limit_used = used;
        out->limited_by = path.substr(path.rfind('/') + 1);
        out->cgroup_folder = folder, out->cgroup_is_v1 = names.is_v1;
      }
    }
    if (path.empty()) return;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

std::string own_cgroup(const std::string& text, const std::string& controller) {
  for (size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string list = ',' + line.substr(first + 1, second - first - 1) + ',';
    if (list.find(',' + controller + ',') == list.npos) continue;
    const std::string path = line.substr(second + 1);
    // ".." is what the kernel says of a cgroup outside our namespace.
    return path == "/" || path.find("..") != path.npos ? "" : path;
  }
  return "";
}

HostMemory read_host_memory(const std::string& root) {
  HostMemory host;
  const std::string meminfo = read_proc_text(root + "/proc/meminfo");
  host.total = field(meminfo, "MemTotal");
  host.available = field(meminfo, "MemAvailable");
  host.used =
      host.total && host.available
          ? Quantity::of(*host.total.bytes - std::min(*host.total.bytes, *host.available.bytes))
          : Quantity::absent("/proc/meminfo has no MemAvailable");
  const std::string cgroups = read_proc_text(root + "/proc/self/cgroup");
  const std::string mounts = read_proc_text(root + "/proc/self/mountinfo");
  read_limit(root, mount_of(mounts, "cgroup2", "", "/sys/fs/cgroup"), own_cgroup(cgroups, ""),
             {"memory.max", "memory.current", "inactive_file", false}, &host);
  read_limit(root, mount_of(mounts, "cgroup", ",memory,", "/sys/fs/cgroup/memory"),
             own_cgroup(cgroups, "memory"),
             {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", true}, &host);
  if (!host.limit) {
    host.limit = Quantity::absent("no cgroup limits this process");
    host.limit_used = host.limit;
  }
  return host;
}

UsableMemory usable_memory(const HostMemory& host) {
  const bool by_cgroup =
      host.limit && host.limit_used && (!host.total || *host.limit.bytes < *host.total.bytes) &&
      (!host.available || room_of(host.limit, host.limit_used) <= *host.available.bytes);
  UsableMemory out{by_cgroup ? host.limit : host.total, by_cgroup ? host.limit_used : host.used,
                   Quantity::absent("the use is unknown"), by_cgroup ? "cgroup" : "machine"};
  if (out.total && out.used) {
    out.free = Quantity::of(*out.total.bytes - std::min(*out.total.bytes, *out.used.bytes));
  }
  return out;
}

}  // namespace gpumemprof
