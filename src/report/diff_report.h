// Two runs side by side: for people at a terminal and for programs.
#pragma once

#include <string>

#include "analysis/compare/diff.h"

namespace gpumemprof {

struct DiffOptions {
  bool color = false;
  size_t columns = 0;          ///< of the terminal that shows it; 0: none does
  size_t rows = 10;            ///< of each table; the JSON always has all
  std::string working_folder;  ///< paths of code below it are shown relative to it; may be empty
};

/// The answer in the first five lines. Safe for a terminal whatever the inputs hold.
std::string diff_text(const Diff& diff, const DiffOptions& options);

/// Schema "gpumemprof.diff/1", docs/schemas/diff.schema.json: one object and a newline.
std::string diff_json(const Diff& diff, int indent = 1);

// What both share.

/// "+1.20 GiB", "-300 B", "0 B".
std::string change_text(uint64_t a_bytes, uint64_t b_bytes);
/// "+39.7 %"; "new" where there was nothing before.
std::string change_percent(uint64_t a_bytes, uint64_t b_bytes);
/// "B's peak is 1.23 GiB (+39.7 %) higher: 3.10 GiB -> 4.33 GiB on cuda:0".
std::string diff_sentence(const Diff& diff);
/// Of which moment the figures of the end are: "after the last allocation" of runs, which then take
/// themselves down; else "at the end".
std::string diff_end(const Diff& diff);
/// "At the end …", one sentence.
std::string diff_end_sentence(const Diff& diff);
/// Caveats about the comparison; usually empty.
std::vector<std::string> diff_caveats(const Diff& diff);
/// The line of code or the frame that a row stands for, printable.
std::string row_text(const Diff& diff, const DiffRow& row, std::string_view folder);

/// The layer and the part of its work that a row of by_layer stands for, printable.
std::string layer_text(const Diff& diff, const DiffRow& row);

/// The category or module that a row of by_category or by_module stands for, printable.
std::string group_text(const Diff& diff, const DiffRow& row);
/// ", at the peak"; empty where ends of steps are compared.
const char* when_text(const Diff& diff);

}  // namespace gpumemprof
