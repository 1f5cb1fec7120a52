// The words of a program that is named on our command line.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// Our own command line as it was typed, word by word.
std::vector<std::string> typed_words();
/// Its words after the first "--"; empty if there is none.
std::vector<std::string> words_after_dashes();

/// The program's words exactly as they were typed: the parser splits words like "[a,b]".
/// Without "--" only a command without options of its own can be told from ours. `parsed` is what
/// the parser made of them, `wrong_option` says which option is none (help.h); empty where all are.
/// Errors: kUsage, one sentence.
Result<std::vector<std::string>> command_words(const std::string& subcommand,
                                               const std::vector<std::string>& parsed,
                                               const std::string& wrong_option);

}  // namespace gpumemprof
