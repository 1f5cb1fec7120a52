#include "devices/drm_clients.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <tuple>

#include "devices/drm_cards.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostRegions = 64;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// "12 KiB", "3 MiB" or "4096": bytes.
std::optional<uint64_t> size_of(std::string_view text) {
  uint64_t unit = 1;
  if (text.ends_with("KiB")) unit = 1024;
  if (text.ends_with("MiB")) unit = 1024 * 1024;
  if (unit != 1) text = trimmed(text.substr(0, text.size() - 3));
  const auto value = whole_number(text);
  if (!value || *value > UINT64_MAX / unit) return std::nullopt;
  return *value * unit;
}

using Regions = std::map<std::string, uint64_t>;

/// Later entries of `names` are asked only for regions that earlier ones do not tell.
void merge(const Regions& from, Regions* into) {
  for (const auto& [region, bytes] : from)
    if (into->size() < kMostRegions) into->try_emplace(region, bytes);
}

/// Adds without going round.
void add(const Regions& from, Regions* into) {
  for (const auto& [region, bytes] : from) {
    uint64_t& sum = (*into)[region];
    sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
  }
}

}  // namespace

bool parse_drm_client(std::string_view text, DrmClient* out) {
  Regions resident, memory, total;
  bool has_id = false;
  *out = {};
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    const size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with("drm-")) continue;
    const std::string_view key = line.substr(4, colon - 4), value = trimmed(line.substr(colon + 1));
    if (key == "driver") out->driver = value.substr(0, 32);
    if (key == "pdev") out->pci = value.substr(0, 32);
    if (key == "client-id") {
      const auto id = whole_number(value);
      has_id = id.has_value();
      out->id = id.value_or(0);
    }
    for (const auto& [prefix, regions] : {std::pair{std::string_view("resident-"), &resident},
                                          std::pair{std::string_view("memory-"), &memory},
                                          std::pair{std::string_view("total-"), &total}}) {
      if (!key.starts_with(prefix) || regions->size() >= kMostRegions) continue;
      if (const auto bytes = size_of(value))
        (*regions)[std::string(key.substr(prefix.size(), 32))] = *bytes;
    }
  }
  for (const Regions* one : {&resident, &memory, &total}) merge(*one, &out->regions);
  return has_id && !out->driver.empty();
}

DrmProcesses read_drm_processes(const std::string& root) {
  DrmProcesses out;
  std::vector<int> pids;
  for (const std::string& name : entries_of(root + "/proc"))
    if (const auto pid = whole_number(name); pid && *pid <= INT32_MAX)
      pids.push_back(static_cast<int>(*pid));
  std::ranges::sort(pids);
  std::set<std::tuple<std::string, std::string, uint64_t>> seen;
  for (const int pid : pids) {
    const std::string folder = root + "/proc/" + std::to_string(pid);
    if (access((folder + "/fd").c_str(), R_OK | X_OK) != 0) {
      out.unreadable += errno == EACCES;
      continue;
    }
    std::map<std::string, DrmProcess> cards;
    for (const std::string& fd : entries_of(folder + "/fd")) {
      char target[64] = {};
      const ssize_t length = readlink((folder + "/fd/" + fd).c_str(), target, sizeof target - 1);
      if (length <= 0 || !std::string_view(target).starts_with("/dev/dri/")) continue;
      DrmClient client;
      if (!parse_drm_client(read_proc_text(folder + "/fdinfo/" + fd), &client)) continue;
      if (!seen.emplace(client.driver, client.pci, client.id).second) continue;
      DrmProcess& process = cards[client.driver + ' ' + client.pci];
      process.pid = pid, process.driver = client.driver, process.pci = client.pci;
      add(client.regions, &process.regions);
    }
    for (auto& [card, process] : cards) out.processes.push_back(std::move(process));
  }
  return out;
}

}  // namespace gpumemprof
