// A document as one HTML file: no network, no script, readable on a phone and in the dark.
#pragma once

#include <string>

#include "report/document.h"

namespace gpumemprof {

/// Nothing that a document holds can become markup, and a content security policy forbids the page
/// to load or run anything at all.
std::string render_html(const Document& document);

/// A page of `body`, which is HTML and safe as it is.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace gpumemprof
