#include "page/index_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "page/index_archive.h"

namespace gpumemprof {
namespace {

namespace fs = std::filesystem;

constexpr char kIndexMagic[8] = {'\x89', 'G', 'M', 'P', 'i', 'd', 'x', '1'};
constexpr uint64_t kIndexVersion = 8;  // of what stands behind the key

/// A file of this user's own that is not a link.
bool is_own(const std::string& path) {
  struct stat facts{};
  return lstat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         facts.st_uid == geteuid();
}

void archive_json(IndexWriter& writer, nlohmann::ordered_json* json) {
  writer.text(json_text(*json));
}
void archive_json(IndexReader& reader, nlohmann::ordered_json* json) {
  std::string text;
  reader.text(text);
  if (reader.is_good()) *json = nlohmann::ordered_json::parse(text, nullptr, false);
}

template <class Archive>
void archive_small_tables(Archive& archive, Tables* tables) {
  archive.each(tables->processes, [&](Process& process) {
    archive.number(process.pid), archive.number(process.parent_pid);
    archive.number(process.start_ticks), archive.text(process.host);
    archive.text(process.command), archive.text(process.python_version);
    archive.text(process.stacks), archive.flag(process.exited_cleanly);
    archive.number(process.first_time_ns), archive.number(process.realtime_offset_ns);
    uint32_t rank_plus_one = process.rank ? *process.rank + 1 : 0;
    archive.number(rank_plus_one);
    if (rank_plus_one != 0) process.rank = rank_plus_one - 1;
  });
  archive.each(tables->threads, [&](Thread& thread) {
    archive.number(thread.process), archive.number(thread.tid), archive.text(thread.name);
  });
  archive.each(tables->devices, [&](Device& device) {
    archive.number(device.process), archive.number(device.type), archive.number(device.index);
    archive.code(device.layer, static_cast<size_t>(Layer::kDriver) + 1);
    archive.flag(device.size_is_requested), archive.text(device.name);
  });
}

void write_names(IndexWriter& writer, const Tables& tables) {
  uint64_t count = tables.strings.size() - 1;
  writer.number(count);
  for (uint32_t id = 1; id < tables.strings.size(); ++id)
    writer.text(std::string(tables.strings.get(id)));
  std::vector<Frame> frames;
  std::vector<std::pair<uint32_t, uint32_t>> stacks;
  for (uint32_t id = 0; id < tables.stacks.frame_count(); ++id)
    frames.push_back(tables.stacks.frame(id));
  writer.array(frames);
  std::vector<uint32_t> parents, tops;
  for (uint32_t id = 1; id < tables.stacks.stack_count(); ++id) {
    parents.push_back(tables.stacks.node(id).parent);
    tops.push_back(tables.stacks.node(id).frame);
  }
  writer.array(parents), writer.array(tops);
}

}  // namespace

/// Each gets its old number, or the index is rejected: a stack's parent comes before it.
bool PageIndex::read_tables(IndexReader& reader, Tables* tables) {
  uint64_t count = 0;
  reader.number(count);
  std::string text;
  for (uint64_t id = 1; id <= count && reader.is_good(); ++id) {
    reader.text(text);
    if (tables->strings.intern(text) != id) return false;
  }
  std::vector<Frame> frames;
  std::vector<uint32_t> parents, tops;
  reader.array(frames), reader.array(parents), reader.array(tops);
  if (!reader.is_good() || frames.empty() || parents.size() != tops.size()) return false;
  for (uint32_t id = 0; id < frames.size(); ++id) {
    if (tables->stacks.intern_frame(frames[id]) != id) return false;
  }
  for (uint32_t i = 0; i < parents.size(); ++i) {
    if (parents[i] > i || tops[i] >= frames.size()) return false;
    if (tables->stacks.push(parents[i], tops[i]) != i + 1) return false;
  }
  return true;
}

template <class Archive>
void PageIndex::archive(Archive& archive, PageFile& file) {
  PageFacts& facts = file.facts_;
  archive_json(archive, &facts.run);
  archive.number(facts.start_time_ns), archive.flag(facts.has_addresses);
  archive.array(facts.streams);
  archive.each(facts.moments, [&](CategoryMoment& moment) {
    archive.code(moment.kind, CategoryMoment::kPhaseEnd + 1), archive.number(moment.process);
    archive.number(moment.text), archive.number(moment.value);
    archive.number(moment.time_ns), archive.number(moment.event);
  });
  archive.each(facts.annotations, [&](PageAnnotation& said) {
    archive.number(said.device), archive.number(said.name);
    archive.number(said.time_ns), archive.flag(said.is_begin);
  });
  archive.each(file.devices_, [&](PageDevice& device) {
    archive.number(device.index), archive.text(device.name), archive.flag(device.has_times);
    archive.flag(device.is_main), archive.flag(device.has_requested_sizes);
    archive.text(device.why_no_categories), archive.text(device.why_unknown_before);
    archive.array(device.stream_of);
    if (!device.table) device.table = std::make_unique<BlockTable>();
    device.table->archive(archive);
  });
}

/// False if one part names something that another part lacks.
bool PageIndex::take(PageFile* file) {
  const Tables& tables = file->tables();
  if (!file->facts_.run.is_object()) return false;
  const auto is_sound = [&](const PageDevice& device) {
    return device.index < tables.devices.size() &&
           device.stream_of.size() >= device.table->streams.size() &&
           device.table->read(tables.stacks.stack_count());
  };
  return std::ranges::all_of(file->devices_, is_sound);
}

std::unique_ptr<PageFile> PageIndex::read(const std::string& path, const std::string& key,
                                          std::string* why) {
  if (!is_own(path)) return nullptr;
  const auto opened = open_file(path, FileMode::kRead);
  const auto size = opened ? (*opened)->size() : Result<uint64_t>(0);
  if (!opened || !size) return nullptr;
  IndexReader reader(**opened, *size);
  char magic[sizeof kIndexMagic] = {};
  uint64_t version = 0;
  std::string of;
  reader.bytes(magic, sizeof magic), reader.number(version);
  if (reader.is_good() && (memcmp(magic, kIndexMagic, sizeof magic) != 0))
    reader.refuse("it is not an index");
  if (reader.is_good() && version != kIndexVersion) return nullptr;
  reader.text(of);
  if (reader.is_good() && of != key) return nullptr;
  std::unique_ptr<PageFile> file(new PageFile);
  file->own_tables_ = std::make_unique<Tables>();
  file->tables_ = file->own_tables_.get();
  if (reader.is_good() && !read_tables(reader, file->own_tables_.get()))
    reader.refuse("its names and stacks contradict each other");
  archive_small_tables(reader, file->own_tables_.get());
  archive(reader, *file);
  uint64_t main = 0;
  bool has_levels = false;
  reader.flag(has_levels), reader.number(main);
  const bool is_sound = reader.is_good() && take(file.get());
  if (reader.is_good() && !is_sound) reader.refuse("it refers to entries that it lacks");
  if (reader.is_good() && has_levels && main < file->devices_.size()) {
    auto levels = std::make_shared<KeyLevels>(*file->devices_[main].table);
    levels->archive(reader);
    if (reader.is_good() && !levels->read()) reader.refuse("its levels do not match its blocks");
    file->set_first_levels(std::move(levels));
  }
  if (reader.end()) return file;
  *why = path + ": " + reader.why() + "; the run is read again";
  return nullptr;
}

Status PageIndex::write(const PageFile& file, const std::string& path, const std::string& key) {
  const std::string fresh = path + '.' + std::to_string(getpid());
  unlink(fresh.c_str());
  auto created = open_file(fresh, FileMode::kCreate);
  if (!created) return std::unexpected(created.error());
  IndexWriter writer(**created);
  uint64_t version = kIndexVersion;
  writer.bytes(kIndexMagic, sizeof kIndexMagic), writer.number(version), writer.text(key);
  write_names(writer, file.tables());
  // Written and read by the same function: writing changes nothing.
  auto& whole = const_cast<PageFile&>(file);
  archive_small_tables(writer, const_cast<Tables*>(whole.tables_));
  archive(writer, whole);
  uint64_t main = file.main_device();
  bool has_levels = file.first_levels_.valid();
  writer.flag(has_levels), writer.number(main);
  if (has_levels) const_cast<KeyLevels&>(*file.first_levels_.get()).archive(writer);
  Status done = writer.end();
  if (done && rename(fresh.c_str(), path.c_str()) != 0)
    done = fail(ErrorCode::kSystem, path + ": cannot be put in place");
  if (!done) unlink(fresh.c_str());
  return done;
}

bool PageIndex::is_worth_it(const PageFile& file) {
  uint64_t moments = 0;
  for (const PageDevice& device : file.devices()) moments += device.table->moments();
  return moments >= kLeastMoments;
}

void PageIndex::leave(const PageFile& file, const std::vector<std::string>& paths,
                      const std::string& key) {
  uint64_t bytes = 1 << 20;
  for (const PageDevice& device : file.devices())
    bytes += uint64_t{40} * device.table->blocks() + uint64_t{12} * device.table->moments();
  std::error_code error;
  for (const std::string& place : index_places(paths)) {
    const fs::path folder = fs::path(place).parent_path();
    const bool is_cache = place == index_places(paths).back();
    if (is_cache && fs::create_directories(folder, error))
      fs::permissions(folder, fs::perms::owner_all, error);
    // A cache nobody asked for must not fill a nearly full disk.
    const fs::space_info room = fs::space(folder, error);
    if (error || room.available / 8 < bytes) continue;
    if (write(file, place, key)) return;
  }
}

}  // namespace gpumemprof
