#include "cli/page.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace gpumemprof {

Result<std::unique_ptr<PageFile>> load_page_file(const std::vector<std::string>& paths,
                                                 PageLoad load) {
  Progress progress(paths.size() == 1 ? "reading " + paths[0] : "reading");
  load.on_progress = [&](double done) { progress.update(done); };
  return PageFile::load(paths, load);
}

int write_page(PageService& service, const std::string& output, const OneFileOptions& options) {
  const auto page = one_file_page(service, options);
  if (!page) return report_error("", page.error());
  std::vector<std::string> inputs;
  for (size_t i = 0; i < service.files(); ++i) {
    const std::vector<std::string>& paths = service.file(i)->paths();
    inputs.insert(inputs.end(), paths.begin(), paths.end());
  }
  return write_output(*page, output, inputs);
}

int write_page_of(const std::vector<std::vector<std::string>>& inputs, const std::string& output,
                  const PageLoad& load) {
  std::vector<std::unique_ptr<PageFile>> files;
  for (const std::vector<std::string>& paths : inputs) {
    auto file = load_page_file(paths, load);
    if (!file) return report_error(paths.size() == 1 ? paths[0] : "", file.error());
    files.push_back(std::move(*file));
  }
  PageService service(std::move(files), GPUMEMPROF_VERSION);
  const int written = write_page(service, output);
  for (size_t i = 0; i < service.files(); ++i) service.file(i)->leave_index();
  return written;
}

}  // namespace gpumemprof
