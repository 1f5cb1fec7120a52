#include "page/index_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/crc32c.h"
#include "base/file.h"
#include "recording/seal.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

/// Samples from front to back, including the first and last bytes.
std::optional<uint32_t> sample_of(const std::string& path, uint64_t size) {
  constexpr uint64_t kPieces = 64, kPieceBytes = 4096;
  const auto file = open_file(path, FileMode::kRead);
  if (!file) return std::nullopt;
  uint32_t crc = 0;
  char piece[kPieceBytes];
  const uint64_t last = size - std::min(size, kPieceBytes);
  for (uint64_t i = 0; i < kPieces; ++i) {
    const auto got = (*file)->read_at(last / (kPieces - 1) * i, piece, sizeof piece);
    if (!got) return std::nullopt;
    crc = crc32c(crc, piece, *got);
  }
  const auto got = (*file)->read_at(last, piece, sizeof piece);
  if (!got) return std::nullopt;
  return crc32c(crc, piece, *got);
}

/// False if the file cannot be read.
bool add_file(const std::string& path, bool has_sample, std::string* key) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0) return false;
  const auto size = static_cast<uint64_t>(facts.st_size);
  const auto sample = has_sample ? sample_of(path, size) : 0u;
  if (!sample) return false;
  *key += path + '\0';
  for (const uint64_t fact :
       {uint64_t{facts.st_dev}, uint64_t{facts.st_ino}, size,
        static_cast<uint64_t>(facts.st_mtim.tv_sec), static_cast<uint64_t>(facts.st_mtim.tv_nsec),
        uint64_t{*sample}}) {
    *key += std::to_string(fact) + ' ';
  }
  return true;
}

/// Other facts on which the answers depend.
void add_reading(const PageReading& reading, std::string* key) {
  const AnalysisOptions& options = reading.analysis;
  for (const uint64_t fact :
       {uint64_t{reading.all_advice}, std::bit_cast<uint64_t>(reading.sensitivity),
        options.capacity_bytes.value_or(UINT64_MAX), options.start_ns.value_or(UINT64_MAX),
        uint64_t{options.timeline_buckets}, options.temporary_ns, uint64_t{options.find_leaks},
        static_cast<uint64_t>(options.depth)}) {
    *key += std::to_string(fact) + ' ';
  }
  for (const MomentRequest& moment : options.moments)
    *key += std::to_string(moment.kind) + ':' + std::to_string(moment.value) + ' ';
}

bool is_index(const std::string& name) { return name.find(kIndexSuffix) != name.npos; }

/// The files below a path that an analysis may read; empty if it cannot be listed.
std::vector<std::string> files_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path.string()};
  std::vector<std::string> files;
  auto it = fs::directory_iterator(path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->is_regular_file(error) && !is_index(it->path().filename().string()))
      files.push_back(it->path().string());
  }
  if (error) return {};
  std::ranges::sort(files);
  return files;
}

fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return fs::path(cache) / "gpumemprof";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return fs::path(home) / ".cache" / "gpumemprof";
  return {};
}

}  // namespace

std::string index_key(const std::vector<std::string>& paths, const PageReading& reading,
                      const std::string& reader) {
  if (reading.names) return {};
  std::error_code error;
  std::string key = fs::current_path(error).string() + '\0';
  if (!add_file(reader, false, &key)) return {};
  add_reading(reading, &key);
  for (const std::string& path : paths) {
    const fs::path whole = fs::canonical(path, error);
    const std::vector<std::string> files = error ? std::vector<std::string>() : files_of(whole);
    if (files.empty()) return {};
    for (const std::string& file : files) {
      if (file.ends_with(".gmp") && writer_is_alive(file)) return {};
      if (!add_file(file, true, &key)) return {};
    }
  }
  return key;
}

std::string files_stamp(const std::vector<std::string>& paths) {
  std::string stamp;
  for (const std::string& path : paths) {
    const std::vector<std::string> files = files_of(path);
    for (const std::string& file : files) {
      if (!add_file(file, false, &stamp)) return {};
    }
    if (files.empty()) return {};
  }
  return stamp;
}

bool is_written(const std::vector<std::string>& paths) {
  return std::ranges::any_of(paths, [](const std::string& path) {
    return std::ranges::any_of(files_of(path), [](const std::string& file) {
      return file.ends_with(".gmp") && writer_is_alive(file);
    });
  });
}

std::string in_cache(const std::vector<std::string>& paths, std::string_view kind) {
  const fs::path cache = cache_folder();
  if (cache.empty()) return {};
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a; the key itself decides
  for (const std::string& path : paths) {
    std::error_code error;
    const std::string whole = fs::canonical(path, error).string() + '\0';
    if (error) return {};
    for (const char c : whole) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  return (cache / (name + std::string(kind))).string();
}

std::vector<std::string> index_places(const std::vector<std::string>& paths) {
  std::vector<std::string> places;
  if (paths.size() == 1) {
    std::error_code error;
    const fs::path whole = fs::canonical(paths[0], error);
    if (error) return {};
    places.push_back(fs::is_directory(whole, error) ? (whole / kIndexSuffix).string()
                                                    : whole.string() + kIndexSuffix);
  }
  if (const std::string cached = in_cache(paths, kIndexSuffix); !cached.empty())
    places.push_back(cached);
  return places;
}

}  // namespace gpumemprof
