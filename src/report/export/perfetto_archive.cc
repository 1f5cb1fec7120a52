#include "report/export/perfetto_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trace/tables.h"

namespace gpumemprof {
namespace {

constexpr size_t kTarBlock = 512;
constexpr size_t kMostNameBytes = 60;
// A clock that is set meanwhile moves less, another boot is further away.
constexpr int64_t kOneBootNs = 60'000'000'000;

/// Letters, digits, dots and dashes: safe as a file's name wherever the archive is unpacked.
std::string file_part(std::string_view text) {
  std::string out(text.substr(0, kMostNameBytes));
  for (char& c : out) {
    const bool is_safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '-';
    if (!is_safe) c = '_';
  }
  return out;
}

}  // namespace

const std::string& PerfettoArchive::machine_of(const Process& process) {
  const std::string host = process.host.empty() ? "unknown host" : printable_ascii(process.host);
  size_t same_host = 0;
  for (Machine& machine : machines_) {
    if (machine.host != host) continue;
    ++same_host;
    // Two processes of one PID, of containers or one after the other, would become one.
    const bool is_taken = std::ranges::find(machine.pids, process.pid) != machine.pids.end();
    const int64_t apart = machine.realtime_offset_ns - process.realtime_offset_ns;
    if (is_taken || apart > kOneBootNs || apart < -kOneBootNs) continue;
    machine.pids.push_back(process.pid);
    return machine.name;
  }
  const std::string name = same_host == 0 ? host : fmt::format("{} ({})", host, same_host + 1);
  machines_.push_back({host, name, process.realtime_offset_ns, {process.pid}});
  return machines_.back().name;
}

std::string PerfettoArchive::add(const EventSource& source, std::string_view file) {
  const std::vector<Process>& processes = source.tables().processes;
  Member member;
  if (processes.empty()) {
    member.path = file_part(std::filesystem::path(file).filename().string());
  } else {
    const Process& process = processes[0];
    if (process.rank) member.path = fmt::format("rank-{}.", *process.rank);
    member.path += fmt::format("{}.{}", file_part(process.host), process.pid);
    member.machine = machine_of(process);
  }
  const std::string base = member.path;
  const auto is_taken = [&] {
    return std::ranges::any_of(members_, [&](const Member& other) {
      return other.path == member.path + ".pftrace";
    });
  };
  for (int number = 2; is_taken(); ++number) member.path = fmt::format("{}-{}", base, number);
  member.path += ".pftrace";
  members_.push_back(member);
  return member.path;
}

std::string PerfettoArchive::manifest(std::string_view version) const {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const Member& member : members_) {
    nlohmann::ordered_json file = {{"path", member.path}};
    if (!member.machine.empty()) file["machine"] = {{"name", member.machine}};
    files.push_back(std::move(file));
  }
  const bool is_one_clock =
      machines_.size() == 1 && std::ranges::none_of(members_, [](const Member& member) {
        return member.machine.empty();
      });
  nlohmann::ordered_json clock = {{"clock", is_one_clock ? "MONOTONIC" : "REALTIME"}};
  if (!members_.empty()) clock["file"] = members_[0].path;
  const nlohmann::ordered_json out = {
      {"perfetto_manifest",
       {{"version", 1},
        {"trace_time", clock},
        {"attributes",
         {{"gpumemprof.version", version}, {"gpumemprof.processes", members_.size()}}},
        {"files", files}}}};
  return out.dump(1) + '\n';
}

std::string tar_header(std::string_view name, uint64_t size_bytes) {
  std::string block(kTarBlock, '\0');
  const auto put = [&](size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644"), put(108, "0000000"), put(116, "0000000");  // mode, user, group
  put(124, fmt::format("{:011o}", size_bytes)), put(136, "00000000000");  // size, time
  put(148, "        "), put(156, "0"), put(257, std::string_view("ustar\00000", 8));
  const unsigned sum = std::accumulate(
      block.begin(), block.end(), 0u,
      [](unsigned before, char c) { return before + static_cast<unsigned char>(c); });
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0', block[155] = ' ';
  return block;
}

std::string tar_padding(uint64_t size_bytes) {
  return std::string((kTarBlock - size_bytes % kTarBlock) % kTarBlock, '\0');
}

std::string tar_end() { return std::string(2 * kTarBlock, '\0'); }

}  // namespace gpumemprof
