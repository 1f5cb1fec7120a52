// The one object that has fmt's code: Debian has no archive of it, and in every file it would cost two seconds.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace gpumemprof {
namespace {

// What is used is emitted, and the linker finds it: fmt::format() elsewhere comes to these.
[[gnu::used]] std::string (*const kFormat)(fmt::string_view, fmt::format_args) = fmt::vformat;
[[gnu::used]] void (*const kAssertFail)(const char*, int, const char*) = fmt::detail::assert_fail;

}  // namespace
}  // namespace gpumemprof
