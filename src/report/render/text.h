// A document for people at a terminal.
#pragma once

#include <string>
#include <vector>

#include "report/document.h"

namespace gpumemprof {

struct TextStyle {
  bool color = false;
  bool full_stacks = false;  ///< frames of libraries, too
  size_t columns = 0;        ///< of the terminal, for paragraphs; 0: it is none
};

/// Safe for a terminal whatever the document holds. Charts are left out.
std::string render_text(const Document& document, const TextStyle& style);
/// The same of one section, line by line.
std::vector<std::string> text_lines(const Section& section, const TextStyle& style);

}  // namespace gpumemprof
