#include "recording/losses.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/file.h"
#include "base/folder.h"
#include "base/json_fields.h"
#include "recording/unrecorded.h"

namespace gpumemprof {
namespace {

using namespace format;
using Json = nlohmann::json;

constexpr size_t kMostMetaBytes = 16u << 20;
constexpr size_t kMostReasons = 1000;
constexpr size_t kMostExits = 100'000;

const char* loss_text(uint32_t kind) {
  switch (kind) {
    case kLostNoSpace:
      return "the disk was full, or a quota or file size limit was reached";
    case kLostNoBuffer:
      return "no buffer was available for a thread";
    case kLostReentered:
      return "it happened while another event was being recorded (signal handler)";
    case kLostSandboxed:
      return "the program restricted its system calls (seccomp) and the buffer was full";
    case kLostMaxDisk:
      return "--max-disk was reached, and compression had stopped or was far behind";
    case kLostIo:
      return "the file system refused a write";
    case kLostWide:
      return "a value does not fit into the format";
    case kLostDriver:
      return "the memory of a driver call could not be determined";
    case kLostNoAllocs:
      return "TensorFlow is not recorded: its frees arrive, its allocations do not (unknown "
             "release)";
    case kLostNoFrees:
      return "TensorFlow is not recorded after this event: its allocations arrive, its frees do "
             "not (unknown release)";
    case kLostUnknown:
      return "TensorFlow is not recorded: unknown layout of its allocator class";
    default:
      return "a reason unknown to this version";
  }
}

/// Absent, negative or absurd is 0: sums of what a file says must not wrap.
uint64_t count_of(const Json& object, const char* key) {
  constexpr uint64_t kMost = uint64_t{1} << 56;
  const uint64_t value = number_field(object, key).value_or(0);
  return value < kMost ? value : 0;
}

void add_one(const Json& one, Loss* loss) {
  std::string reason = one.is_string() ? one.get<std::string>() : std::string{};
  if (one.is_object()) {
    std::string command = text_field(one, "command");
    reason = "not recorded";
    if (auto pid = one.find("pid"); pid != one.end() && pid->is_number_integer()) {
      reason += ": process " + std::to_string(pid->get<int64_t>());
      if (!command.empty()) reason += " (" + command + ')';
    } else if (!command.empty()) {
      reason += ": " + command;
    }
    reason += ": " + text_field(one, "reason");
  }
  const uint64_t events = count_of(one, "lost_events");
  if (events != 0) {
    reason += ": " + lost_text(count_of(one, "processes"), events, count_of(one, "lost_bytes"));
  }
  if (!reason.empty()) loss->add(events, 0, reason);
}

}  // namespace

void add_writer_losses(const FileState& state, Loss* loss) {
  for (uint32_t kind = 0; kind < kLossKinds; ++kind) {
    uint64_t count = state.lost[kind];
    if (count == 0) continue;
    if (kind == kLostStack) {
      loss->add(0, 0,
                std::to_string(count) +
                    " events have no stack: the interpreter was exiting, or the program closed "
                    "libunwind's descriptors");
    } else if (kind == kLostPhase) {
      loss->add(0, 0, (count == 1 ? "1 phase is" : std::to_string(count) + " phases are") +
                            std::string(" not known: too many were open at once"));
    } else {
      loss->add(count, 0, loss_text(kind));
    }
  }
}

std::string describe_stacks(const FileHeader& header, const FileState& state) {
  const char* python = state.python_state == kPythonUnknownVersion ? "unsupported Python version"
                       : state.python_state == kPythonAbsent       ? "no Python in the process"
                                                                   : nullptr;
  const char* native =
      state.native_state == kNativeNoLibunwind ? "libunwind is not installed" : nullptr;
  auto none = [](const char* why) { return std::string("none: ") + why; };
  switch (header.stack_mode) {
    case kStacksPython:
      return python ? none(python) : "python";
    case kStacksNative:
      return native ? none(native) : "native";
    case kStacksBoth:
      if (python && native) return none(python) + ", " + native;
      if (python) return std::string("native (") + python + ')';
      return native ? std::string("python (") + native + ')' : "both";
    default:
      return "none";
  }
}

std::string describe_python(const FileState& state) {
  uint64_t v = state.python_version;
  if (v == 0 || v > 0xffffff) return {};
  return std::to_string(v >> 16) + '.' + std::to_string(v >> 8 & 255) + '.' +
         std::to_string(v & 255);
}

namespace {

/// see(name, value) of each meta.json of a folder; value is discarded if it cannot be read.
template <class See>
void each_meta(const std::string& folder, const See& see) {
  const auto is_meta = [](std::string_view name) {
    return name.starts_with("meta") && name.ends_with(".json");
  };
  for (const std::string& name : names_in(folder, is_meta)) {
    auto text = read_small_file(folder + '/' + name, kMostMetaBytes);
    if (text && text->empty()) continue;  // claimed by a `run` that has not written it yet
    see(name, text ? Json::parse(*text, nullptr, false) : Json(Json::value_t::discarded));
  }
}

}  // namespace

void add_unrecorded_processes(const std::string& folder, Loss* loss) {
  each_meta(folder, [&](const std::string& name, const Json& meta) {
    if (!meta.is_object()) {
      loss->add(0, 0, name + " cannot be read: what `run` noted about other processes is unknown");
      return;
    }
    auto list = meta.find("not_recorded");
    if (list == meta.end() || !list->is_array()) return;
    for (size_t i = 0; i < list->size() && i < kMostReasons; ++i) add_one((*list)[i], loss);
  });
}

void add_ends_seen(const std::string& folder, Tables* tables) {
  std::map<std::tuple<std::string, uint64_t, uint64_t>, uint64_t> seen;  // host, pid, start: when
  each_meta(folder, [&](const std::string&, const Json& meta) {
    const std::string host = text_field(meta, "host");
    const auto take = [&](const Json& process, uint64_t start_ticks) {
      const auto pid = number_field(process, "pid"), time_ns = number_field(process, "end_time_ns");
      if (pid && time_ns) seen[{host, *pid, start_ticks}] = *time_ns;
    };
    take(meta, 0);  // the program, whose start is not told
    const Json* list = list_field(meta, "exits");
    for (size_t i = 0; list && i < std::min(list->size(), kMostExits); ++i)
      take((*list)[i], number_field((*list)[i], "start_ticks").value_or(0));
  });
  for (Process& process : tables->processes) {
    if (process.end_time_ns) continue;
    auto found = seen.find({process.host, process.pid, process.start_ticks});
    if (found == seen.end()) found = seen.find({process.host, process.pid, 0});
    if (found == seen.end()) continue;
    const uint64_t shift_ns =
        process.clock < tables->clocks.size() ? tables->clocks[process.clock].shift_ns : 0;
    const uint64_t end_ns = found->second + shift_ns;
    if (end_ns >= process.first_time_ns) process.end_time_ns = end_ns;
  }
}

std::string why_nothing_is_here(const std::string& folder) {
  std::string why;
  each_meta(folder, [&](const std::string&, const Json& meta) {
    if (why.empty() && meta.is_object()) why = text_field(meta, "nothing_recorded");
  });
  if (!why.empty()) return why;
  Loss lost;
  add_unrecorded_processes(folder, &lost);
  return lost.reasons.empty() ? "" : lost.reasons[0].reason;
}

bool has_unended_run(const std::string& folder) {
  bool found = false;
  each_meta(folder, [&](const std::string&, const Json& meta) {
    found = found || (meta.is_object() && meta.contains("run_pid") && !meta.contains("exit"));
  });
  return found;
}

bool has_run(const std::string& folder) {
  bool found = false;
  each_meta(folder, [&](const std::string&, const Json&) { found = true; });
  return found;
}

}  // namespace gpumemprof
