#include "page/service.h"

#include <algorithm>
#include <charconv>

#include "base/query.h"
#include "page/answers.h"
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
    : version_(std::move(version)), is_done_(true) {
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

void PageService::read_all() {
  std::vector<const PageFile*> read;  // they stay where they are
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (is_stopping_) return;
    load_.on_progress = [&](double done) { slot->progress = done; };
    auto file = PageFile::load(slot->paths, load_);
    const std::lock_guard lock(slot->mutex);
    if (file) {
      (*file)->set_worker(&levels_worker_);
      read.push_back(file->get());
      slot->read = std::move(*file);
      continue;
    }
    slot->error = file.error().message;
    if (status_) status_ = std::unexpected(file.error());
  }
  is_done_ = true;
  for (const PageFile* file : read) {
    if (!is_stopping_) file->leave_index();
  }
}

Status PageService::wait() {
  if (reader_.joinable()) reader_.join();
  return status_;
}

/// Null if it is not read yet, or failed.
PageFile* PageService::file_of(Slot& slot) {
  if (!slot.file) {
    const std::lock_guard lock(slot.mutex);
    slot.file = std::move(slot.read);
  }
  return slot.file.get();
}

PageAnswer PageService::run_answer() {
  Json files = Json::array();
  double share = 0;
  bool is_reading = false;
  for (const std::unique_ptr<Slot>& slot : slots_) {
    Json file = {{"name", name_of(slot->paths)}};
    if (PageFile* read = file_of(*slot)) {
      file["state"] = "ready";
      file.update(read->facts().run);
    } else {
      const std::lock_guard lock(slot->mutex);
      file["state"] = slot->error.empty() ? "reading" : "failed";
      file["devices"] = Json::array();
      is_reading |= slot->error.empty();
      if (slot->error.empty())
        share -= 1 - slot->progress;
      else
        file["error"] = printable(slot->error);
    }
    ++share;
    files.push_back(std::move(file));
  }
  Json run = {{"schema", "gpumemprof-page/1"}, {"version", version_}, {"files", files}};
  if (is_reading) {
    run["loading"] = {{"share", share / static_cast<double>(slots_.size())},
                      {"text", "reading " + name_of(slots_.front()->paths)}};
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
PageAnswer PageService::whatif(PageFile& file, std::string_view query) {
  std::future<PageAnswer>& coming = simulations_[{&file, std::string(query)}];
  if (!coming.valid()) {
    if (simulations_.size() > kMostWaiting) {
      std::erase_if(simulations_, [](const auto& of) {
        return !of.second.valid() || is_done(of.second);
      });
      return error_answer(503, "too many simulations at once");
    }
    coming = whole_worker_.begin([&file, query = std::string(query)] {
      PageRequest request(query, file);
      return whatif_answer(request);
    });
  }
  if (!is_done(coming)) return later_answer();
  PageAnswer answer = coming.get();
  simulations_.erase({&file, std::string(query)});
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
  const auto known =
      std::ranges::find(kAnswers, request, &std::pair<std::string_view, Answer>::first);
  if (known == std::end(kAnswers) && request != "compare" && request != "whatif")
    return error_answer(404, "unknown request");
  size_t index = 0;
  if (const auto text = query_value(query, "file")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), index);
    if (error != std::errc() || end != text->data() + text->size() || index >= slots_.size())
      return error_answer(400, "file is not a valid file number");
  }
  Slot& slot = *slots_[index];
  PageFile* file = file_of(slot);
  if (file == nullptr) {
    const std::lock_guard lock(slot.mutex);
    return slot.error.empty() ? error_answer(503, "the file is being read")
                              : error_answer(404, slot.error);
  }
  if (file->devices().empty()) return error_answer(404, "the file has no memory events");
  if (request == "whatif") return whatif(*file, query);
  PageRequest parsed(query, *file);
  PageAnswer answer = request == "compare" ? compare(parsed) : known->second(parsed);
  file->forget_old();
  return answer;
}

}  // namespace gpumemprof
