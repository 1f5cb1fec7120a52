// The words of a program that is named on our command line.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// The program's words exactly as they were typed: the parser splits words like "[a,b]".
/// Without "--" only a command without options of its own can be told from ours. `parsed` is what
/// the parser made of them, `wrong_option` says which option is none (help.h); empty where all are.
/// Errors: kUsage, one sentence.
Result<std::vector<std::string>> command_words(const std::string& subcommand,
                                               const std::vector<std::string>& parsed,
                                               const std::string& wrong_option);

}  // namespace gpumemprof
