#include "report/html_report.h"

#include "report/describe/describe.h"
#include "report/render/html.h"

namespace gpumemprof {

std::string html_report(const Analysis& analysis, const Tables& tables,
                        const HtmlOptions& options) {
  return render_html(describe_analysis(analysis, tables,
                                       for_page({.working_folder = options.working_folder,
                                                 .advice = options.advice,
                                                 .shows_source = options.shows_source})));
}

}  // namespace gpumemprof
