#include "recording/job_files.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/file.h"
#include "recording/chunk_scan.h"
#include "recording/folders.h"

namespace gpumemprof {
namespace {

struct Job {
  std::set<uint32_t> ranks;
  uint64_t began_ns = 0;  ///< on the wall clock
  std::vector<std::pair<std::string, uint32_t>> files;
};
/// Its launcher, and what that calls it.
using Name = std::pair<uint32_t, std::string>;

std::string in_words(const Name& name) {
  const std::string launcher = launcher_name(static_cast<Launcher>(name.first));
  return name.second.empty() ? launcher : launcher + " " + printable_ascii(name.second);
}

}  // namespace

std::set<std::string> files_of_other_jobs(const std::vector<std::string>& files, Loss* loss) {
  std::map<Name, Job> jobs;
  uint32_t innermost = format::kNoLauncher;
  for (const std::string& path : files) {
    auto file = open_file(path, FileMode::kRead);
    auto header = file ? read_file_header(**file) : std::unexpected(file.error());
    if (!header || header->rank_plus_one == 0) continue;
    const auto place = read_job_place(**file, header->recording_id);
    if (!place || place->launcher == format::kNoLauncher || place->launcher > format::kLastLauncher)
      continue;
    innermost = innermost == 0 ? place->launcher : std::min(innermost, place->launcher);
    Job& job = jobs[{place->launcher, place->job}];
    job.ranks.insert(header->rank_plus_one);
    job.began_ns = std::max(job.began_ns, header->realtime_ns);
    job.files.emplace_back(path, header->rank_plus_one - 1);
  }
  std::erase_if(jobs, [&](const auto& one) { return one.first.first != innermost; });
  if (jobs.size() < 2) return {};
  const auto main = std::ranges::max_element(jobs, {}, [](const auto& one) {
    return std::tuple(one.second.ranks.size(), one.second.began_ns);
  });
  std::set<std::string> out;
  for (const auto& [name, job] : jobs) {
    if (name == main->first) continue;
    for (const auto& [path, rank] : job.files) {
      out.insert(path);
      loss->add(0, 0,
                path + ": left out: rank " + std::to_string(rank) + " of another job (" +
                    in_words(name) + ", not " + in_words(main->first) + ")");
    }
  }
  return out;
}

std::vector<std::string> folders_of_other_jobs(const std::vector<std::string>& files,
                                               const std::set<std::string>& others) {
  std::set<std::string> out;
  for (const std::string& path : others) out.insert(folders_of({path}).front());
  for (const std::string& path : files) {
    if (!others.contains(path) && has_ranks({path})) out.erase(folders_of({path}).front());
  }
  return {out.begin(), out.end()};
}

bool has_ranks(const std::vector<std::string>& files) {
  return std::ranges::any_of(files, [](const std::string& path) {
    auto file = open_file(path, FileMode::kRead);
    auto header = file ? read_file_header(**file) : std::unexpected(file.error());
    return header && header->rank_plus_one != 0;
  });
}

}  // namespace gpumemprof
