// The page itself: one file of HTML with its style and script inside.
#pragma once

#include <string>
#include <string_view>

namespace gpumemprof {

/// As web/ builds it; a page that says so where it was not built.
std::string_view page_bundle();
/// The policy that the page's own head names; the strictest there is where it names none.
std::string page_policy(std::string_view page);

}  // namespace gpumemprof
