// The page: one HTML file with its style and script inside.
#pragma once

#include <string>
#include <string_view>

namespace gpumemprof {

/// False if the command was built without it.
bool has_page();
/// As built from web/; a page that says so if it was not built.
std::string_view page_bundle();
/// The page with `data`, our own markup, in the place where its script looks for it.
std::string page_with(std::string_view data);
/// HTTP headers for it: the policy named in its head (the strictest one if it names none), and no
/// framing.
std::string page_headers();

}  // namespace gpumemprof
