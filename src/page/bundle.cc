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

std::string_view page_bundle() {
#ifdef GPUMEMPROF_PAGE_FILE
  return {gpumemprof_page_begin, static_cast<size_t>(gpumemprof_page_end - gpumemprof_page_begin)};
#else
  return "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gpumemprof</title>"
         "<p>This command was built without its page: web/ was not bundled. "
         "The figures are at /api/v1/run.</p><!--gpumemprof-data--></html>";
#endif
}

std::string page_policy(std::string_view page) {
  constexpr std::string_view kBegin = "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  const size_t at = page.find(kBegin);
  const size_t begin = at + kBegin.size();
  const size_t end = at == page.npos ? at : page.find('"', begin);
  if (end == page.npos) return "default-src 'none'";
  return std::string(page.substr(begin, end - begin));
}

}  // namespace gpumemprof
