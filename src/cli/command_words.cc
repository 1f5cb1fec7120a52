#include "cli/command_words.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace gpumemprof {

Result<std::vector<std::string>> command_words(const std::string& subcommand,
                                               const std::vector<std::string>& parsed,
                                               const std::string& wrong_option) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  auto mark = std::find(words.begin(), words.end(), "--");
  if (parsed.empty()) {
    return fail(ErrorCode::kUsage,
                "no command given: gpumemprof " + subcommand + " [options] -- COMMAND [arguments]");
  }
  bool mark_is_ours = mark != words.end() && mark + 1 != words.end() &&
                      (mark[1] == parsed[0] || mark[1].starts_with('['));
  if (mark_is_ours && !wrong_option.empty()) return fail(ErrorCode::kUsage, wrong_option);
  if (mark_is_ours) return std::vector<std::string>(mark + 1, words.end());
  bool comes_last =
      words.size() >= parsed.size() &&
      std::equal(parsed.begin(), parsed.end(), words.end() - std::ptrdiff_t(parsed.size()));
  if (comes_last && !wrong_option.empty()) return fail(ErrorCode::kUsage, wrong_option);
  if (comes_last) return parsed;
  return fail(ErrorCode::kUsage, "put -- before the command: -- python train.py");
}

}  // namespace gpumemprof
