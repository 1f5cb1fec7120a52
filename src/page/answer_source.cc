// source: lines of the program's own files, with their live bytes at a moment.
#include <algorithm>
#include <map>

#include "page/answers.h"
#include "page/held_tree.h"
#include "report/describe/source_text.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// Per line of one file, the live bytes of all stacks that pass through it.
std::map<uint32_t, uint64_t> bytes_of_lines(const BlockTable& table, const Tables& tables,
                                            uint32_t file, uint32_t moment) {
  HeldSums sums(table);
  table.each_live(moment, [&](uint32_t block) { sums.add(block, 0); });
  std::map<uint32_t, uint64_t> bytes;
  std::vector<uint32_t> lines;  // of one stack: a line counts once, even in recursion
  sums.each([&](uint32_t stack, uint32_t, const HeldSums::Sum& sum) {
    lines.clear();
    for (uint32_t node = stack < tables.stacks.stack_count() ? stack : 0; node != 0;
         node = tables.stacks.node(node).parent) {
      const Frame& frame = tables.stacks.frame_of(node);
      if (frame.file == file && frame.line != 0) lines.push_back(frame.line);
    }
    std::ranges::sort(lines);
    const auto repeated = std::ranges::unique(lines);
    lines.erase(repeated.begin(), repeated.end());
    for (const uint32_t line : lines) bytes[line] += sum.bytes;
  });
  return bytes;
}

bool names_file(const Tables& tables, uint32_t file) {
  for (uint32_t f = 0; f < tables.stacks.frame_count(); ++f) {
    if (tables.stacks.frame(f).file == file) return true;
  }
  return false;
}

}  // namespace

PageAnswer source_answer(PageRequest& request) {
  const size_t device = request.device();
  const std::string path = request.text("path");
  const auto line = static_cast<uint32_t>(request.number("line", 1, UINT32_MAX - 1, 1));
  const auto around = static_cast<uint32_t>(request.number("around", 0, 10'000, 20));
  const uint32_t moment = request.moment("event", request.table().peak);
  if (request.is_refused()) return request.refusal();
  const Tables& tables = request.file().tables();
  const auto file = tables.strings.find(path);
  if (!file || path.empty() || !names_file(tables, *file))
    return error_answer(404, "the run names no such file");
  const uint32_t first = line > around ? line - around : 1;
  Json bytes = Json::object();
  for (const auto& [at, held] : bytes_of_lines(request.table(), tables, *file, moment)) {
    if (at >= first && at <= line + around) bytes[std::to_string(at)] = held;
  }
  Json out = {{"path", path}, {"from", first}, {"bytes", std::move(bytes)}};
  const uint32_t process = tables.devices[request.file().devices()[device].index].process;
  const auto text = process < tables.processes.size() ? source_text_of(tables.processes[process])
                                                      : std::shared_ptr<SourceText>();
  out["lines"] =
      text ? text->lines(path, first, line - first + around + 1) : std::vector<std::string>();
  if (!text)
    out["unknown"] = "the program did not run on this machine, or its start time is unknown";
  else if (out["lines"].empty())
    out["unknown"] = "the file is missing or has changed since the program started";
  return json_answer(out);
}

}  // namespace gpumemprof
