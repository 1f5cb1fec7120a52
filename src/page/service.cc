#include "page/service.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error_text.h"
#include "base/parallel_for.h"
#include "base/query.h"
#include "page/index_file.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

using Answer = PageAnswer (*)(PageRequest&);
constexpr std::pair<std::string_view, Answer> kAnswers[] = {
    {"levels", levels_answer},         {"times", times_answer},
    {"blocks", blocks_answer},         {"holders", holders_answer},
    {"marks", marks_answer},           {"block", block_answer},
    {"stack", stack_answer},           {"search", search_answer},
    {"block_next", block_next_answer}, {"space", space_answer},
    {"space_time", space_time_answer}, {"source", source_answer},
};

std::string name_of(const std::vector<std::string>& paths) {
  std::string name = paths.empty() ? std::string() : paths.front();
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  name.erase(0, name.rfind('/') + 1);
  if (paths.size() > 1) name += " and " + std::to_string(paths.size() - 1) + " more";
  return printable(name);
}

}  // namespace

PageService::PageService(std::vector<std::vector<std::string>> inputs, std::string version,
                         PageLoad load)
    : version_(std::move(version)), load_(std::move(load)) {
  for (std::vector<std::string>& paths : inputs) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->paths = std::move(paths);
  }
  reader_ = std::thread([this] { read_all(); });
}

PageService::PageService(std::vector<std::unique_ptr<PageFile>> files, std::string version)
    : version_(std::move(version)), is_done_(true), has_left_indexes_(true) {
  for (std::unique_ptr<PageFile>& file : files) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->paths = file->paths();
    slots_.back()->file = std::move(file);
  }
}

PageService::~PageService() {
  is_stopping_ = true;
  if (reader_.joinable()) reader_.join();
}

/// Two at once: half of the work on a file is for one thread. The same file, which may be sealed
/// meanwhile, and files that share what replaces their names are read one after the other.
unsigned PageService::reading_threads() const {
  std::set<std::string> known;
  bool is_repeated = false;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    for (const std::string& path : slot->paths) is_repeated |= !known.insert(path).second;
  }
  if (is_repeated || load_.reading.names) return 1;
  return std::min(2u, std::max(1u, std::thread::hardware_concurrency()));
}

void PageService::read_all() {
  std::vector<const PageFile*> read(slots_.size());  // they stay where they are
  std::vector<Status> errors(slots_.size());
  parallel_for(slots_.size(), reading_threads(), [&](size_t i) {
    if (is_stopping_) return;
    Slot& slot = *slots_[i];
    PageLoad load = load_;
    load.on_progress = [&](double done) { slot.progress = done; };
    auto file = PageFile::load(slot.paths, load);
    const std::lock_guard lock(slot.mutex);
    slot.stamp = files_stamp(slot.paths);
    if (file) {
      (*file)->set_worker(&levels_worker_);
      read[i] = file->get();
      slot.read = std::move(*file);
    } else {
      slot.error = text_of(file.error());
      errors[i] = std::unexpected(file.error());
    }
  });
  if (is_stopping_) return;
  const auto failed = std::ranges::find_if(errors, [](const Status& status) { return !status; });
  if (failed != errors.end()) {
    status_ = *failed;
    failed_ = static_cast<size_t>(failed - errors.begin());
  }
  is_done_ = true;
  for (const PageFile* file : read) {
    if (file && !is_stopping_) file->leave_index();
  }
  has_left_indexes_ = true;
}

void PageService::read_later(Slot& slot) {
  ++readings_;
  later_reader_.begin([this, &slot] {
    PageLoad load = load_;
    load.on_progress = [&](double done) { slot.progress = done; };
    auto file = PageFile::load(slot.paths, load);
    {
      const std::lock_guard lock(slot.mutex);
      slot.stamp = files_stamp(slot.paths);
      slot.error = file ? std::string() : text_of(file.error());
      if (file) {
        (*file)->set_worker(&levels_worker_);
        slot.read = std::move(*file);
      }
    }
    --readings_;
  });
}

std::optional<size_t> PageService::add(std::vector<std::string> paths) {
  if (!has_left_indexes_ || slots_.size() >= kMostFiles) return std::nullopt;
  slots_.push_back(std::make_unique<Slot>());
  slots_.back()->paths = std::move(paths);
  read_later(*slots_.back());
  return slots_.size() - 1;
}

void PageService::retire(std::unique_ptr<PageFile> file) {
  std::erase_if(simulations_, [&](const auto& of) { return std::get<0>(of.first) == file.get(); });
  std::erase_if(documents_, [&](const auto& of) {
    return of.first.first.file == file.get() || of.first.second.file == file.get();
  });
  // What was begun before is done before.
  const std::shared_ptr<PageFile> kept = std::move(file);
  levels_worker_.begin([kept] {});
  whole_worker_.begin([kept] {});
}

/// Of each file whether it is another one now: cheap, as a page asks it again and again.
PageAnswer PageService::state_answer() {
  Json files = Json::array();
  for (const std::unique_ptr<Slot>& slot : slots_) {
    file_of(*slot);
    const bool is_ready = slot->file != nullptr && readings_ == 0 && has_left_indexes_;
    const std::lock_guard lock(slot->mutex);
    files.push_back({{"generation", slot->generation},
                     {"is_written", is_ready && is_written(slot->paths)},
                     {"has_changed", is_ready && slot->stamp != files_stamp(slot->paths)},
                     {"progress", readings_ != 0 ? Json(slot->progress.load()) : Json()},
                     {"error", slot->error.empty() ? Json() : Json(printable(slot->error))}});
  }
  return json_answer({{"files", std::move(files)}});
}

Status PageService::wait() {
  if (reader_.joinable()) reader_.join();
  return status_;
}

double PageService::share_read() const {
  double sum = 0;
  for (const std::unique_ptr<Slot>& slot : slots_) sum += slot->progress;
  return sum / static_cast<double>(slots_.size());
}

/// Null if it is not read yet, or failed.
PageFile* PageService::file_of(Slot& slot) {
  std::unique_ptr<PageFile> newer;
  {
    const std::lock_guard lock(slot.mutex);
    newer = std::move(slot.read);
  }
  if (newer) {
    if (slot.file) retire(std::move(slot.file));
    slot.file = std::move(newer);
    ++slot.generation;
  }
  return slot.file.get();
}

PageAnswer PageService::run_answer() {
  Json files = Json::array();
  double share = 0;
  const Slot* reading = nullptr;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    Json file = {{"name", name_of(slot->paths)}};
    if (PageFile* read = file_of(*slot)) {
      file["state"] = "ready";
      file.update(read->facts().run);
    } else {
      const std::lock_guard lock(slot->mutex);
      file["state"] = slot->error.empty() ? "reading" : "failed";
      file["devices"] = Json::array();
      if (slot->error.empty() && reading == nullptr) reading = slot.get();
      if (slot->error.empty())
        share -= 1 - slot->progress;
      else
        file["error"] = printable(slot->error);
    }
    ++share;
    files.push_back(std::move(file));
  }
  Json run = {{"schema", "gpumemprof-page/1"}, {"version", version_}, {"files", files}};
  if (reading != nullptr) {
    run["loading"] = {{"share", share / static_cast<double>(slots_.size())},
                      {"text", "reading " + name_of(reading->paths)}};
  }
  return json_answer(run);
}

/// The file with which a request compares; a refusal if there is none.
PageFile* PageService::other_of(PageRequest& request) {
  const auto index = static_cast<size_t>(request.number("other", 0, slots_.size() - 1, 0));
  PageFile* other = file_of(*slots_[index]);
  if (other == nullptr)
    request.refuse("the other file is not loaded");
  else if (other->devices().empty())
    request.refuse("the other file has no memory events");
  return other;
}

/// A simulation walks over all events, and may have to read the run first.
PageAnswer PageService::replayed(std::string_view request, PageFile& file,
                                 std::string_view query) {
  const std::tuple key(&file, std::string(request), std::string(query));
  std::future<PageAnswer>& coming = simulations_[key];
  if (!coming.valid()) {
    if (simulations_.size() > kMostWaiting) {
      std::erase_if(simulations_, [](const auto& of) {
        return !of.second.valid() || is_done(of.second);
      });
      return error_answer(503, "too many simulations at once");
    }
    const Answer answer = request == "whatif" ? whatif_answer : allocator_answer;
    coming = whole_worker_.begin([&file, answer, query = std::string(query)] {
      PageRequest parsed(query, file);
      return answer(parsed);
    });
  }
  if (!is_done(coming)) return later_answer();
  PageAnswer answer = coming.get();
  simulations_.erase(key);
  return answer;
}

PageAnswer PageService::compare(PageRequest& request) {
  PageFile* other = other_of(request);
  if (request.is_refused()) return request.refusal();
  const auto document_of = [&](const ComparedSide& a,
                               const ComparedSide& b) -> std::optional<Json> {
    const auto known = documents_.find({a, b});
    if (known != documents_.end()) {
      if (!is_done(known->second)) return {};
      return known->second.get();
    }
    if (documents_.size() >= kMostDocuments)
      std::erase_if(documents_, [](const auto& of) { return is_done(of.second); });
    documents_[{a, b}] = whole_worker_.begin([=] { return compare_document(a, b); }).share();
    return {};
  };
  return compare_answer(request, *other, document_of);
}

PageAnswer PageService::answer_now(std::string_view request, std::string_view query) {
  for (;;) {
    PageAnswer given = answer(request, query);
    if (!given.is_later) return given;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

PageAnswer PageService::answer(std::string_view request, std::string_view query) {
  if (request == "run") return run_answer();
  if (request == "state") return state_answer();
  const auto known =
      std::ranges::find(kAnswers, request, &std::pair<std::string_view, Answer>::first);
  constexpr std::string_view kOwn[] = {"compare", "whatif", "allocator", "read_again"};
  if (known == std::end(kAnswers) && std::ranges::find(kOwn, request) == std::end(kOwn))
    return error_answer(404, "unknown request");
  size_t index = 0;
  if (const auto text = query_value(query, "file")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), index);
    if (error != std::errc() || end != text->data() + text->size() || index >= slots_.size())
      return error_answer(400, "file is not a valid file number");
  }
  Slot& slot = *slots_[index];
  if (request == "read_again") {
    if (!has_left_indexes_ || readings_ != 0) return error_answer(503, "a file is being read");
    read_later(slot);
    return state_answer();
  }
  PageFile* file = file_of(slot);
  if (file == nullptr) {
    const std::lock_guard lock(slot.mutex);
    return slot.error.empty() ? error_answer(503, "the file is being read")
                              : error_answer(404, slot.error);
  }
  if (file->devices().empty()) return error_answer(404, "the file has no memory events");
  if (request == "whatif" || request == "allocator") return replayed(request, *file, query);
  PageRequest parsed(query, *file);
  PageAnswer answer = request == "compare" ? compare(parsed) : known->second(parsed);
  file->forget_old();
  return answer;
}

}  // namespace gpumemprof
