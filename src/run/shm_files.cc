#include "run/shm_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostShmFiles = 10'000;
constexpr std::string_view kShm = "/dev/shm/";

/// "torch_41_17_0": PyTorch's, with the PID of whoever made it.
bool names_a_process(const std::string& name, const std::vector<int>& pids) {
  return std::ranges::any_of(pids, [&](int pid) {
    return name.starts_with("torch_" + std::to_string(pid) + '_');
  });
}

/// Of the names in `left`, those that a process has mapped or open.
void take_names_in_use(const fs::path& process, std::set<std::string, std::less<>>* in_use) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find(kShm);
    if (at != line.npos) in_use->insert(line.substr(at + kShm.size()));
  }
  std::error_code error;
  for (fs::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code no_link;
    const std::string target = fs::read_symlink(fd->path(), no_link).string();
    if (target.starts_with(kShm)) in_use->insert(target.substr(kShm.size()));
  }
}

/// As left_in_shm(), once.
std::vector<ShmFile> new_and_unused(const std::vector<ShmFile>& before, const std::string& root) {
  std::vector<ShmFile> out = shm_files(root);
  std::erase_if(out, [&](const ShmFile& file) {
    return std::ranges::any_of(before, [&](const ShmFile& old) {
      return old.name == file.name && old.inode == file.inode;
    });
  });
  if (out.empty()) return out;
  std::set<std::string, std::less<>> in_use;
  std::error_code error;
  for (fs::directory_iterator one(root + "/proc", error), end; !error && one != end;
       one.increment(error)) {
    const std::string name = one->path().filename();
    if (name.find_first_not_of("0123456789") == name.npos) take_names_in_use(one->path(), &in_use);
  }
  std::erase_if(out, [&](const ShmFile& file) { return in_use.contains(file.name); });
  return out;
}

}  // namespace

std::vector<ShmFile> shm_files(const std::string& root) {
  std::vector<ShmFile> out;
  const std::string folder = root + std::string(kShm);
  DIR* listing = opendir(folder.c_str());
  if (!listing) return out;
  while (const dirent* entry = readdir(listing)) {
    struct stat st;
    if (out.size() >= kMostShmFiles) break;
    if (lstat((folder + entry->d_name).c_str(), &st) != 0) continue;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) continue;
    out.push_back({.name = entry->d_name,
                   .bytes = static_cast<uint64_t>(st.st_blocks) * 512,
                   .inode = st.st_ino});
  }
  closedir(listing);
  std::ranges::sort(out, {}, &ShmFile::name);
  return out;
}

std::vector<ShmFile> left_in_shm(const std::vector<ShmFile>& before, const std::vector<int>& pids,
                                 const std::function<Others()>& others, const std::string& root) {
  constexpr int kMostLooks = 500, kMostLooksAtRest = 50;
  constexpr useconds_t kBetween = 20'000;
  std::vector<ShmFile> out = new_and_unused(before, root);
  for (int looks = 1, at_rest = 1; looks < kMostLooks && !out.empty(); ++looks) {
    const Others now = others();
    if (now == Others::kAtRest) ++at_rest;
    if (now == Others::kNone || at_rest > kMostLooksAtRest) break;
    usleep(kBetween);
    out = new_and_unused(before, root);
  }
  for (ShmFile& file : out) file.is_own = names_a_process(file.name, pids);
  return out;
}

}  // namespace gpumemprof
