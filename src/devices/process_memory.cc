#include "devices/process_memory.h"

#include <unistd.h>

#include <string_view>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

Quantity field(const std::string& text, const char* key, const char* why) {
  const auto bytes = field_bytes(text, key);
  return bytes ? Quantity::of(*bytes) : Quantity::absent(why);
}

/// The word of statm that begins at `begin`, pages.
std::optional<uint64_t> bytes_of_pages(const std::string& statm, size_t begin) {
  const auto pages = whole_number(statm.substr(begin, statm.find(' ', begin) - begin));
  const long page = sysconf(_SC_PAGESIZE);
  if (!pages || page <= 0) return std::nullopt;
  return *pages * static_cast<uint64_t>(page);
}

/// Pages in memory now, from statm: status lags behind by what each thread has not accounted yet.
Quantity resident_now(const std::string& folder, const std::string& status) {
  const std::string text = read_proc_text(folder + "/statm");
  const size_t begin = text.find(' ') + 1;
  if (const auto bytes = begin != 0 ? bytes_of_pages(text, begin) : std::nullopt)
    return Quantity::of(*bytes);
  return field(status, "VmRSS", "the kernel does not report it");
}

}  // namespace

ProcessMemory read_process_memory(const std::string& proc, int pid, bool with_pss) {
  const std::string folder = proc + '/' + std::to_string(pid);
  const std::string status = read_proc_text(folder + "/status");
  ProcessMemory out;
  // A zombie, and a thread of the kernel, have no line about memory at all.
  out.exists = status.find("\nVmSize:") != status.npos;
  if (!out.exists) {
    const char* why = status.empty() ? "there is no such process" : "the process has no memory";
    for (Quantity* q : {&out.resident, &out.peak_resident, &out.anonymous, &out.file, &out.shared,
                        &out.swapped, &out.proportional}) {
      *q = Quantity::absent(why);
    }
    return out;
  }
  const char* why = "the kernel does not report it";
  out.resident = resident_now(folder, status);
  out.peak_resident = field(status, "VmHWM", why);
  out.anonymous = field(status, "RssAnon", why);
  out.file = field(status, "RssFile", why);
  out.shared = field(status, "RssShmem", why);
  out.swapped = field(status, "VmSwap", why);
  out.proportional = with_pss ? field(read_proc_text(folder + "/smaps_rollup"), "Pss",
                                      "no permission to read smaps_rollup of this process")
                              : Quantity::absent("not requested");
  return out;
}

std::optional<MappedMemory> read_address_space(const std::string& proc, int pid) {
  constexpr std::string_view kLimit = "\nMax address space";
  const std::string folder = proc + '/' + std::to_string(pid);
  const std::string limits = read_proc_text(folder + "/limits");
  const size_t line = limits.find(kLimit);
  if (line == limits.npos) return std::nullopt;
  const size_t begin = limits.find_first_not_of(' ', line + kLimit.size());
  if (begin == limits.npos) return std::nullopt;
  const auto limit = whole_number(limits.substr(begin, limits.find(' ', begin) - begin));
  const auto mapped = bytes_of_pages(read_proc_text(folder + "/statm"), 0);
  if (!limit || !mapped) return std::nullopt;  // "unlimited" is no number
  return MappedMemory{.mapped_bytes = *mapped, .limit_bytes = *limit};
}

}  // namespace gpumemprof
