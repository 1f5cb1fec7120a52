#include "cli/command_words.h"

#include <algorithm>
#include <fstream>

namespace gpumemprof {

std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::vector<std::string> words_after_dashes() {
  const std::vector<std::string> words = typed_words();
  const auto mark = std::ranges::find(words, "--");
  return {mark == words.end() ? mark : mark + 1, words.end()};
}

Result<std::vector<std::string>> command_words(const std::string& subcommand,
                                               const std::vector<std::string>& parsed,
                                               const std::string& wrong_option) {
  const std::vector<std::string> words = typed_words();
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
