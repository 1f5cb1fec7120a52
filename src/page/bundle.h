// The page itself: one file of HTML with its style and script inside.
#pragma once

#include <string>
#include <string_view>

namespace gpumemprof {

/// False where the command was built without it.
bool has_page();
/// As web/ builds it; a page that says so where it was not built.
std::string_view page_bundle();
/// The page with `data`, markup of our own, where it looks for what it is to show.
std::string page_with(std::string_view data);
/// Fields of HTTP that go with it: the policy that its own head names, the strictest there is where
/// it names none, and that it is in nobody's frame.
std::string page_headers();

}  // namespace gpumemprof
