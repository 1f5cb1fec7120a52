#include "page/bundle.h"

#ifdef GPUMEMPROF_PAGE_FILE
// The assembler copies the file in: no compiler reads a literal of its size.
asm(".section .rodata\n"
    ".global gpumemprof_page_begin\n"
    ".global gpumemprof_page_end\n"
    "gpumemprof_page_begin:\n"
    ".incbin \"" GPUMEMPROF_PAGE_FILE
    "\"\n"
    "gpumemprof_page_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char gpumemprof_page_begin[], gpumemprof_page_end[];
#endif

namespace gpumemprof {

bool has_page() {
#ifdef GPUMEMPROF_PAGE_FILE
  return true;
#else
  return false;
#endif
}

std::string_view page_bundle() {
#ifdef GPUMEMPROF_PAGE_FILE
  return {gpumemprof_page_begin, static_cast<size_t>(gpumemprof_page_end - gpumemprof_page_begin)};
#else
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gpumemprof</title>"
         "<p>This command was built without its page: web/ was not bundled. "
         "`gpumemprof analyze` and `top` print the figures.</p><!--gpumemprof-data--></html>";
#endif
}

std::string page_with(std::string_view data) {
  constexpr std::string_view kPlace = "<!--gpumemprof-data-->";
  const std::string_view page = page_bundle();
  const size_t at = page.find(kPlace);
  if (at == page.npos) return std::string(page);
  return std::string(page.substr(0, at)) + std::string(data) +
         std::string(page.substr(at + kPlace.size()));
}

std::string page_headers() {
  constexpr std::string_view kBegin = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  const std::string_view page = page_bundle();
  const size_t at = page.find(kBegin);
  const size_t begin = at + kBegin.size();
  const size_t end = at == page.npos ? at : page.find('"', begin);
  const std::string policy = end == page.npos ? "default-src 'none'"
                                              : std::string(page.substr(begin, end - begin));
  return "Content-Security-Policy: " + policy +
         "; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\n";
}

}  // namespace gpumemprof
