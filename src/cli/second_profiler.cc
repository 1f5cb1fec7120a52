#include "cli/info.h"

#include <filesystem>
#include <string_view>

#include "report/words.h"

namespace gpumemprof {

nlohmann::ordered_json second_profilers(const std::vector<std::string>& folders) {
  constexpr std::string_view kBegin = "stormlog-", kEnd = ".dist-info";
  auto found = nlohmann::ordered_json::array();
  for (const std::string& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
      const size_t length = name.size() - kBegin.size() - kEnd.size();
      found.push_back({{"package", "stormlog"},
                       {"version", name.substr(kBegin.size(), length)},
                       {"folder", folder}});
    }
    if (!found.empty()) break;
  }
  return found;
}

std::string second_profiler_text(const nlohmann::ordered_json& found) {
  std::string text;
  for (const auto& one : found) {
    text += "Also installed: " + printable(one["package"].get<std::string>()) + ' ' +
            printable(one["version"].get<std::string>()) + ", in " +
            printable(one["folder"].get<std::string>()) +
            ": it installs a command gpumemprof, too; use one of them per environment\n";
  }
  return text;
}

}  // namespace gpumemprof
