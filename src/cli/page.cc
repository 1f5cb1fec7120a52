#include "cli/page.h"

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "page/service.h"

namespace gpumemprof {

Result<std::unique_ptr<PageFile>> load_page_file(const std::vector<std::string>& paths,
                                                 PageReading reading) {
  Progress progress(paths.size() == 1 ? "reading " + paths[0] : "reading");
  return PageFile::load(paths, [&](double done) { progress.update(done); }, std::move(reading));
}

int write_page(std::vector<std::unique_ptr<PageFile>> files, const std::string& output,
               const OneFileOptions& options) {
  std::vector<std::string> inputs;
  for (const auto& file : files)
    inputs.insert(inputs.end(), file->paths().begin(), file->paths().end());
  PageService service(std::move(files), GPUMEMPROF_VERSION);
  const auto page = one_file_page(service, options);
  if (!page) return report_error("", page.error());
  return write_output(*page, output, inputs);
}

int write_page(const std::vector<std::vector<std::string>>& inputs, const std::string& output,
               const PageReading& reading) {
  std::vector<std::unique_ptr<PageFile>> files;
  for (const std::vector<std::string>& paths : inputs) {
    auto file = load_page_file(paths, reading);
    if (!file) return report_error(paths.size() == 1 ? paths[0] : "", file.error());
    files.push_back(std::move(*file));
  }
  return write_page(std::move(files), output);
}

}  // namespace gpumemprof
