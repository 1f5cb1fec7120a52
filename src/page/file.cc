#include "page/file.h"

#include <algorithm>

#include "analysis/replay/snapshot_device.h"
#include "base/parallel_for.h"
#include "page/answers.h"
#include "page/index_file.h"
#include "page/keeper_thread.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {
namespace {

std::string why_no_categories(const DeviceAnalysis* known) {
  if (known && !known->categories.why_not.empty()) return known->categories.why_not;
  return "the source has no memory types";
}

std::string why_unknown_before(const Analysis& analysis, const DeviceAnalysis* known,
                               const BlockTable& table) {
  if (analysis.oldest_dropped) return "the oldest events were dropped (--max-disk)";
  const SnapshotDevice* told = known ? known->snapshot.get() : nullptr;
  if (told && told->overflowed) return "the allocator's ring had dropped older events";
  if (told && !told->has_history) return "no history was recorded, only what was live at the end";
  if (table.earlier_bytes != 0) return "the history of blocks live before the first event is unknown";
  return {};
}

/// Annotations of a snapshot's program, if their times can be placed.
std::vector<PageAnnotation> annotations_of(const AllocatorSnapshot& snapshot,
                                           const std::vector<PageDevice>& devices) {
  std::vector<PageAnnotation> out;
  for (const Annotation& said : snapshot.annotations) {
    for (const PageDevice& device : devices) {
      const bool is_own = device.has_times && device.index < snapshot.traces.size() &&
                          snapshot.traces[device.index].device == said.device;
      if (!is_own) continue;
      const int64_t time_us = std::clamp<int64_t>(said.time_us, 0, INT64_MAX / 1000);
      out.push_back(
          {device.index, said.name, static_cast<uint64_t>(time_us) * 1000, said.is_begin});
    }
  }
  return out;
}

PageDevice describe_device(WholeRun& whole, uint32_t index, std::unique_ptr<BlockTable> table,
                           std::vector<int64_t>* streams) {
  PageDevice device;
  device.index = index;
  device.name = device_name(whole.tables().devices[index]);
  const DeviceAnalysis* known = whole.device(static_cast<uint16_t>(index));
  device.is_main = whole.is_main(static_cast<uint16_t>(index));
  device.has_requested_sizes = known && has_requested_sizes(*known, whole.tables());
  device.has_times = whole.has_times(static_cast<uint16_t>(index));
  device.why_no_categories = why_no_categories(known);
  device.why_unknown_before = why_unknown_before(whole.analysis(), known, *table);
  for (const int64_t stream : table->streams) {
    auto at = std::ranges::find(*streams, stream);
    if (at == streams->end()) at = streams->insert(at, stream);
    device.stream_of.push_back(static_cast<uint32_t>(at - streams->begin()));
  }
  device.table = std::move(table);
  return device;
}

}  // namespace

Result<std::unique_ptr<PageFile>> PageFile::load(const std::vector<std::string>& paths,
                                                 const PageLoad& options) {
  const PageReading& reading = options.reading;
  const std::string key = options.uses_index ? index_key(paths, reading) : std::string();
  for (const std::string& place : key.empty() ? std::vector<std::string>() : index_places(paths)) {
    std::string why;
    if (auto known = PageIndex::read(place, key, &why)) {
      known->paths_ = paths, known->reading_ = reading;
      return known;
    }
    if (!why.empty() && options.on_note) options.on_note(why);
  }
  KeeperThread keeper;
  auto whole = WholeRun::read(paths, reading, &keeper, options.on_progress);
  if (!whole) return std::unexpected(whole.error());
  std::unique_ptr<PageFile> file(new PageFile);
  file->paths_ = paths, file->reading_ = reading, file->whole_ = std::move(*whole);
  if (auto taken = file->take_run(keeper.finish()); !taken) return std::unexpected(taken.error());
  // A file that changed while it was read would give an index of neither state.
  if (!key.empty() && index_key(paths, reading) == key) file->key_ = key;
  return file;
}

Status PageFile::take_run(std::vector<std::unique_ptr<BlockTable>> tables) {
  tables_ = &whole_->tables();
  facts_.start_time_ns = whole_->analysis().start_time_ns;
  facts_.has_addresses = whole_->is_snapshot() || whole_->analysis().source.can.addresses;
  for (uint32_t d = 0; d < tables.size() && d < tables_->devices.size(); ++d) {
    if (tables[d])
      devices_.push_back(describe_device(*whole_, d, std::move(tables[d]), &facts_.streams));
  }
  facts_.moments = whole_->analysis().moments;
  if (whole_->is_snapshot())
    facts_.annotations = annotations_of(*whole_->input().snapshot(), devices_);
  Result<nlohmann::ordered_json> document;
  parallel_for(2, 2, [&](size_t part) {
    if (part == 0)
      document = whole_->document([this](const EvidencePlace& evidence) {
        return page_evidence(evidence, devices_, *tables_);
      });
    else if (!devices_.empty() && first_dimension() == Dimension::kCategory)
      begin_first_levels();  // takes no longer than the document
  });
  if (!document) return std::unexpected(document.error());
  facts_.run = file_json(*this, *whole_, std::move(*document));
  return {};
}

void PageFile::set_worker(Worker* worker) {
  worker_ = worker;
  if (!first_levels_.valid() && !devices_.empty()) begin_first_levels();
}

void PageFile::leave_index() const {
  if (!key_.empty() && PageIndex::is_worth_it(*this)) PageIndex::leave(*this, paths_, key_);
}

Result<WholeRun*> PageFile::whole() {
  if (!whole_) {
    auto read = WholeRun::read(paths_, reading_, nullptr, {});
    if (!read) return std::unexpected(read.error());
    whole_ = std::move(*read);
  }
  return whole_.get();
}

size_t PageFile::main_device() const {
  const auto main = std::ranges::find(devices_, true, &PageDevice::is_main);
  return main == devices_.end() ? 0 : static_cast<size_t>(main - devices_.begin());
}

Dimension PageFile::first_dimension() const {
  return devices_[main_device()].table->is_told ? Dimension::kCategory : Dimension::kLine;
}

size_t PageFile::device_of(const DeviceAnalysis* analysis) const {
  const auto is_it = [&](const PageDevice& device) {
    return analysis != nullptr &&
           (device.index == analysis->device ||
            std::ranges::find(analysis->parts, device.index) != analysis->parts.end());
  };
  const auto is_main = [&](const PageDevice& one) { return one.is_main && is_it(one); };
  auto known = std::ranges::find_if(devices_, is_main);  // of a sum the largest part
  if (known == devices_.end()) known = std::ranges::find_if(devices_, is_it);
  return known == devices_.end() ? 0 : static_cast<size_t>(known - devices_.begin());
}

uint32_t PageFile::moment_at(size_t device, uint64_t time_ns) const {
  return devices_[device].table->moment_at(time_ns);
}

std::vector<uint32_t> PageFile::step_ends(size_t device) const {
  const uint32_t process = tables().devices[devices_[device].index].process;
  std::vector<uint32_t> out;
  for (const CategoryMoment& told : facts_.moments) {
    if (told.kind == CategoryMoment::kStepEnd && told.process == process)
      out.push_back(moment_at(device, told.time_ns));
  }
  std::ranges::sort(out);
  return out;
}

PageFile::Taken PageFile::taken(size_t device, const Filter& filter) {
  if (filter.takes_all()) return nullptr;
  KeptFilter& kept = filters_[{device, filter.text()}];
  kept.used = ++uses_;
  if (!kept.taken) {
    const PageDevice& of = devices_[device];
    const std::vector<uint32_t> ends =
        filter.steps_at() ? step_ends(device) : std::vector<uint32_t>();
    kept.taken = std::make_shared<const std::vector<uint8_t>>(
        filter.taken(*of.table, tables(), tables().devices[of.index].process, ends));
  }
  return kept.taken;
}

PageFile::Levels PageFile::make_levels(size_t device, Dimension by, const Taken& taken) const {
  const PageDevice& of = devices_[device];
  BlockKeys keys(*of.table, tables(), tables().devices[of.index].process, by);
  return std::make_shared<const KeyLevels>(*of.table, std::move(keys), taken.get());
}

void PageFile::begin_first_levels() {
  const auto make = [this] { return make_levels(main_device(), first_dimension(), nullptr); };
  if (worker_ != nullptr && devices_[main_device()].table->moments() >= kFewMoments)
    first_levels_ = worker_->begin(make).share();
  else
    set_first_levels(make());
}

void PageFile::set_first_levels(Levels levels) {
  std::promise<Levels> made;
  made.set_value(std::move(levels));
  first_levels_ = made.get_future().share();
}

const KeyLevels* PageFile::levels(size_t device, Dimension by, const Filter& filter) {
  if (device == main_device() && by == first_dimension() && filter.takes_all()) {
    if (!first_levels_.valid()) begin_first_levels();
    return is_done(first_levels_) ? first_levels_.get().get() : nullptr;
  }
  Kept& kept = levels_[{device, by, filter.text()}];
  kept.used = ++uses_;
  if (kept.levels) return kept.levels.get();
  if (worker_ == nullptr || devices_[device].table->moments() < kFewMoments) {
    kept.levels = make_levels(device, by, taken(device, filter));
  } else if (!kept.coming.valid()) {
    kept.coming = worker_->begin([this, device, by, taken = taken(device, filter)] {
      return make_levels(device, by, taken);
    });
  } else if (is_done(kept.coming)) {
    kept.levels = kept.coming.get();
  }
  return kept.levels.get();
}

/// Drops what was not requested lately.
void PageFile::forget_old() {
  const auto shorten = [](auto& map) {
    while (map.size() > kMostKept)
      map.erase(std::ranges::min_element(map, {}, [](const auto& of) { return of.second.used; }));
  };
  shorten(levels_), shorten(filters_);
}

}  // namespace gpumemprof
