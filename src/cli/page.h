// The page as a file, where commands write it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "page/file.h"
#include "page/one_file.h"
#include "page/service.h"

namespace gpumemprof {

/// PageFile::load() with a line that tells how far it is.
Result<std::unique_ptr<PageFile>> load_page_file(const std::vector<std::string>& paths,
                                                 PageLoad load);

/// Writes the page of a service to `output`, which may be "-". The exit code.
int write_page(PageService& service, const std::string& output, const OneFileOptions& options = {});
/// The same of files that are not read yet: each of `inputs` is paths that are read as one.
int write_page_of(const std::vector<std::vector<std::string>>& inputs, const std::string& output,
                  const PageLoad& load);

}  // namespace gpumemprof
