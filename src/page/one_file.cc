#include "page/one_file.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "page/bundle.h"
#include "page/columns.h"
#include "page/filter.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kRoomForNote = 8192;
constexpr uint32_t kSoonReplayed = 1 << 20;  // each answer replays all that was before it

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? kLetters[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// Without zlib's header, as the page's decompressor expects.
std::string deflated(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// What a question is about, as a reader of the page would say it.
std::string_view subject_of_question(std::string_view path, std::string_view query) {
  const auto has = [&](std::string_view name) { return query.find(name) != query.npos; };
  if (has("&filter=")) return "the memory behind a finding or a row";
  if (path == "holders")
    return has("&event=") ? "what holds memory at one moment" : "what was allocated, freed and left";
  constexpr std::pair<std::string_view, std::string_view> kSubjects[] = {
      {"levels", "memory over time"},           {"times", "memory over time"},
      {"marks", "steps and other marks"},       {"whatif", "other allocator settings"},
      {"blocks", "the list of blocks"},         {"block", "the facts of one block"},
      {"space", "addresses at one moment"},     {"space_time", "addresses over time"},
      {"allocator", "the allocator at one moment"}, {"compare", "the comparison"},
      {"run", "the report"}};
  const auto known = std::ranges::find(kSubjects, path, [](const auto& one) { return one.first; });
  return known == std::end(kSubjects) ? path : known->second;
}

class OneFile {
 public:
  OneFile(PageService& service, size_t most_bytes) : service_(service), most_bytes_(most_bytes) {}

  /// False if the answer no longer fits, or there is none. `query`: names sorted.
  bool add(const std::string& path, const std::string& query) {
    const std::string key = query.empty() ? path : path + "?" + query;
    if (answers_.contains(key)) return true;
    const PageAnswer answer = service_.answer_now(path, query);
    if (answer.status != 200) return false;
    std::string body = answer.body;
    if (answer.type == "application/json")
      body = Columns().finish(Json::parse(answer.body, nullptr, false));
    std::string text = base64(deflated(body));
    const size_t bytes = key.size() + text.size() + 8;
    if (used_ + bytes > most_bytes_) {
      const std::string_view subject = subject_of_question(path, query);
      const auto known = std::ranges::find(left_out_, subject, &LeftOut::subject);
      ++(known == left_out_.end() ? left_out_.emplace_back(std::string(subject), 0) : *known).count;
      return false;
    }
    used_ += bytes;
    answers_[key] = std::move(text);
    return true;
  }
  const Json& answers() const { return answers_; }
  /// "3 answers did not fit: memory over time (2), the list of blocks (1)."; empty where all did.
  std::string left_out() const {
    size_t count = 0;
    std::string subjects;
    for (const LeftOut& one : left_out_) {
      count += one.count;
      subjects += (subjects.empty() ? "" : ", ") + one.subject;
      if (left_out_.size() > 1) subjects += " (" + std::to_string(one.count) + ')';
    }
    return count == 0 ? "" : format_plural(count, "answer") + " did not fit: " + subjects + '.';
  }

 private:
  struct LeftOut {
    std::string subject;
    size_t count;
  };

  PageService& service_;
  const size_t most_bytes_;
  size_t used_ = 0;
  std::vector<LeftOut> left_out_;  // in the order in which they were asked
  Json answers_ = Json::object();
};

/// One device of one file, as requests name it.
struct Place {
  std::string subject;  // "device=0&file=0"
  uint32_t moments = 0;
  uint32_t peak = 0;
  std::vector<uint32_t> refused;
};

std::string subject_of(size_t device, size_t file) {
  return "device=" + std::to_string(device) + "&file=" + std::to_string(file);
}

void add_comparison(const OneFileOptions::Comparison& wanted, OneFile* out) {
  std::string query = "&device=" + std::to_string(wanted.device);
  if (wanted.event) query += "&event=" + std::to_string(*wanted.event);
  query += "&file=0&other=" + std::to_string(wanted.other);
  if (wanted.other_device) query += "&other_device=" + std::to_string(*wanted.other_device);
  if (wanted.other_event) query += "&other_event=" + std::to_string(*wanted.other_event);
  for (const char* by : {"stack", "module", "category"})
    out->add("compare", "by=" + std::string(by) + query);
}

std::string range_text(uint32_t from, uint32_t to) {
  return "&from=" + std::to_string(from) + "&to=" + std::to_string(to);
}

void add_whole(const Place& place, OneFile* out) {
  const std::string range = range_text(0, place.moments);
  for (const char* by :
       {"category", "module", "line", "stack", "stream", "thread", "process", "none"}) {
    out->add("levels", "by=" + std::string(by) + "&columns=2048&" + place.subject + range);
  }
  out->add("times", "columns=2048&" + place.subject + range);
  out->add("marks", place.subject);
  if (place.moments <= kSoonReplayed) out->add("whatif", "columns=1024&" + place.subject);
  out->add("blocks", "columns=1024&" + place.subject +
                         "&from=0&limit=4000&order=byte_time&to=" + std::to_string(place.moments));
  out->add("blocks", place.subject + "&from=0&limit=4000&to=" + std::to_string(place.moments));
  out->add("space_time", place.subject + "&from=0&limit=4000&to=" + std::to_string(place.moments));
  for (const char* what : {"allocated", "left", "freed"}) {
    for (const char* by : {"stack", "module", "category"}) {
      out->add("holders", "by=" + std::string(by) + "&" + place.subject + range + "&what=" + what);
    }
  }
}

/// Everything of one moment. False if it does not fit.
bool add_moment(const Place& place, uint32_t moment, OneFile* out) {
  const std::string event = "&event=" + std::to_string(moment);
  const size_t at = place.subject.find("&file");  // names are sorted
  const std::string subject = place.subject.substr(0, at) + event + place.subject.substr(at);
  bool has_all = true;
  for (const char* by : {"stack", "module", "category"})
    has_all &= out->add("holders", "by=" + std::string(by) + "&" + subject);
  has_all &= out->add("space", subject);
  if (place.moments <= kSoonReplayed) out->add("allocator", subject);
  return has_all;
}

/// The facts of the blocks that the answers about the whole run list.
void add_blocks(const Place& place, const PageFile& file, size_t device, OneFile* out) {
  constexpr size_t kMostBlocks = 300;
  const BlockTable& table = *file.devices()[device].table;
  std::vector<uint32_t> largest;
  table.each_live(place.peak, [&](uint32_t block) { largest.push_back(block); });
  const size_t count = std::min(kMostBlocks, largest.size());
  std::ranges::partial_sort(
      largest, largest.begin() + static_cast<ptrdiff_t>(count),
      [&](uint32_t a, uint32_t b) { return table.size_bytes[a] > table.size_bytes[b]; });
  for (size_t i = 0; i < count; ++i)
    out->add("block", place.subject + "&id=" + std::to_string(largest[i]));
}

/// Percent-encoded, as a browser writes it into a query.
std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const char low = lower_letter(c);
    const bool is_plain = (c >= '0' && c <= '9') || (low >= 'a' && low <= 'z') || c == '.';
    if (is_plain)
      out += c;
    else
      out += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
  }
  return out;
}

/// The evidence of a document, in its order: of every finding, and of each table's first rows.
std::vector<const Json*> evidence_in(const Json& document) {
  constexpr size_t kMostRows = 12, kMost = 64;
  std::vector<const Json*> out;
  const auto take = [&](const Json& from) {
    if (from.contains("evidence") && out.size() < kMost) out.push_back(&from["evidence"]);
  };
  if (!document.contains("sections")) return out;
  for (const Json& section : document["sections"]) {
    take(section);
    for (const Json& part : section["parts"]) {
      if (part["kind"] == "list") {
        for (const Json& item : part["items"]) take(item);
      } else if (part["kind"] == "table") {
        for (size_t i = 0; i < std::min(kMostRows, part["rows"].size()); ++i) take(part["rows"][i]);
      }
    }
  }
  return out;
}

/// The blocks of each piece of evidence, over time and at its moment.
void add_evidence(const PageFile& file, size_t number, OneFile* out) {
  for (const Json* evidence : evidence_in(file.facts().run["document"])) {
    if (!evidence->contains("filter")) continue;
    const size_t device = (*evidence)["device"];
    const std::string whole = range_text(0, file.devices()[device].table->moments());
    const std::string filter = "&filter=" + encoded((*evidence)["filter"].get<std::string>());
    const std::string subject = "&device=" + std::to_string(device),
                      of_file = "&file=" + std::to_string(number) + filter;
    const std::string left = range_text(0, evidence->value("to", 0u) + 1);
    bool fits = true;
    for (const char* by : {"by=category", "by=none"})
      fits &= out->add("levels", by + ("&columns=1024" + subject + of_file + whole));
    for (const char* by : {"stack", "module", "category"}) {
      const std::string held = "by=" + std::string(by) + subject;
      fits &= evidence->contains("event")
                  ? out->add("holders", held + "&event=" + (*evidence)["event"].dump() + of_file)
                  : out->add("holders", held + of_file + left + "&what=left");
    }
    if (!fits) return;
  }
}

/// Windows of half the length, of a quarter, …, as long as they fit and cover more than one event.
void add_windows(const Place& place, OneFile* out) {
  constexpr uint32_t kColumns = 1024;
  for (uint32_t parts = 2; place.moments / parts > kColumns / 2; parts *= 2) {
    for (uint32_t i = 0; i < parts; ++i) {
      const auto from = static_cast<uint32_t>(uint64_t{place.moments} * i / parts);
      const auto to = static_cast<uint32_t>(uint64_t{place.moments} * (i + 1) / parts);
      const std::string range = range_text(from, to);
      const bool fits = out->add("levels", "by=category&columns=1024&" + place.subject + range) &&
                        out->add("times", "columns=512&" + place.subject + range);
      if (!fits) return;
    }
  }
}

}  // namespace

Result<std::string> one_file_page(PageService& service, const OneFileOptions& options) {
  if (auto read = service.wait(); !read) return std::unexpected(read.error());
  if (!has_page()) return fail(ErrorCode::kUnsupported, "this command was built without its page");
  const size_t room = page_bundle().size() + kRoomForNote;
  OneFile out(service, options.most_bytes > room ? options.most_bytes - room : 0);
  out.add("run", "");
  std::vector<Place> places;
  std::vector<std::pair<PageFile*, size_t>> devices;
  for (size_t f = 0; f < service.files(); ++f) {
    PageFile* file = service.file(f);
    for (size_t d = 0; file && d < file->devices().size(); ++d) {
      const BlockTable& table = *file->devices()[d].table;
      Place place{subject_of(d, f),
                  table.moments(),
                  table.peak,
                  {}};
      for (const RefusedMoment& refused : table.refused) place.refused.push_back(refused.moment);
      places.push_back(std::move(place)), devices.emplace_back(file, d);
    }
  }
  if (options.comparison)
    add_comparison(*options.comparison, &out);
  else if (service.files() == 2)
    add_comparison({}, &out);
  std::vector<uint32_t> exact;
  for (const Place& place : places) {
    add_whole(place, &out);
    if (add_moment(place, place.peak, &out)) exact.push_back(place.peak);
  }
  if (options.wanted) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].subject != subject_of(options.wanted->device, 0)) continue;
      if (add_moment(places[i], options.wanted->moment, &out))
        exact.push_back(options.wanted->moment);
    }
  }
  constexpr size_t kMostRefused = 16;
  for (const Place& place : places) {
    for (size_t i = 0; i < std::min(kMostRefused, place.refused.size()); ++i)
      if (add_moment(place, place.refused[i], &out)) exact.push_back(place.refused[i]);
  }
  for (size_t f = 0; f < service.files(); ++f) {
    if (const PageFile* file = service.file(f)) add_evidence(*file, f, &out);
  }
  for (size_t i = 0; i < places.size(); ++i)
    add_blocks(places[i], *devices[i].first, devices[i].second, &out);
  for (const Place& place : places) {
    for (size_t i = 0; i < options.moments; ++i) {
      const auto moment = static_cast<uint32_t>(uint64_t{place.moments - 1} * i /
                                                std::max<size_t>(1, options.moments - 1));
      if (add_moment(place, moment, &out)) exact.push_back(moment);
    }
  }
  for (const Place& place : places) add_windows(place, &out);
  std::ranges::sort(exact);
  exact.erase(std::ranges::unique(exact).begin(), exact.end());
  std::string note;
  if (!places.empty()) {
    note = "This file is a summary, exact at " + format_plural(exact.size(), "moment") +
           ", including the peak; in between it has less detail.";
  }
  if (const std::string left_out = out.left_out(); !left_out.empty())
    note += (note.empty() ? "" : " ") + left_out;
  Json data = {{"answers", out.answers()}, {"moments", exact}, {"note", note}};
  if (!options.start.empty()) data["start"] = options.start;
  // Keys and base64: no markup.
  return page_with("<script type=\"application/json\" id=\"gpumemprof-data\">" + json_text(data) +
                   "</script>");
}

}  // namespace gpumemprof
