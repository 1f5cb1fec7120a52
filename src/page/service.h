// The page's requests to the server, independent of HTTP: files being read, and the answers.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "page/answers.h"
#include "page/request.h"
#include "page/worker.h"

namespace gpumemprof {

/// Reads its files in its own thread, one after the other; until then answers report the progress.
/// answer() is for one thread.
class PageService {
 public:
  /// Each of `inputs` is one file of the page: paths that are read as one. `load` is called from
  /// another thread, with the service's own on_progress.
  PageService(std::vector<std::vector<std::string>> inputs, std::string version, PageLoad load);
  /// For files that are already read.
  PageService(std::vector<std::unique_ptr<PageFile>> files, std::string version);
  ~PageService();

  /// `request`: the part after "/api/v1/", such as "levels". 404 for an unknown one. Slow answers
  /// are made in another thread; until then the answer is_later.
  PageAnswer answer(std::string_view request, std::string_view query);
  /// The same, waiting for the result.
  PageAnswer answer_now(std::string_view request, std::string_view query);
  /// Waits until all are read. Errors: of the first file that failed.
  Status wait();
  /// Of the first file that failed, after wait() has.
  const std::string& failed_path() const { return slots_[failed_]->paths.front(); }
  size_t files() const { return slots_.size(); }
  /// Null while it is being read, or if it failed.
  PageFile* file(size_t index) { return file_of(*slots_[index]); }
  bool is_reading() const { return !is_done_ || readings_ != 0; }
  /// Of the given files, 0 to 1; what reports no progress counts as 0.
  double share_read() const;
  /// One more file, that is read meanwhile; its number. Nothing where others are being read, or
  /// there are kMostFiles. From the thread of answer().
  std::optional<size_t> add(std::vector<std::string> paths);
  static constexpr size_t kMostFiles = 16;

 private:
  struct Slot {
    std::vector<std::string> paths;
    std::atomic<double> progress{0};
    std::mutex mutex;  // of the two below
    std::unique_ptr<PageFile> read;
    std::string error;
    std::string stamp;  // of the files when they were read
    std::unique_ptr<PageFile> file;  // taken from `read` by answer()
    uint64_t generation = 0;         // how often it was
  };
  unsigned reading_threads() const;
  void read_all();
  void read_later(Slot& slot);
  /// Ends once nothing works on it any more.
  void retire(std::unique_ptr<PageFile> file);
  PageAnswer state_answer();
  PageAnswer run_answer();
  PageFile* file_of(Slot& slot);
  PageFile* other_of(PageRequest& request);
  PageAnswer replayed(std::string_view request, PageFile& file, std::string_view query);
  PageAnswer compare(PageRequest& request);

  static constexpr size_t kMostWaiting = 8;     // simulations that were asked for
  static constexpr size_t kMostDocuments = 32;  // of comparisons

  std::string version_;
  PageLoad load_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<bool> is_stopping_{false}, is_done_{false}, has_left_indexes_{false};
  std::atomic<size_t> readings_{0};  // by read_later()
  Status status_;
  size_t failed_ = 0;
  /// By file, request and query.
  std::map<std::tuple<PageFile*, std::string, std::string>, std::future<PageAnswer>> simulations_;
  std::map<std::pair<ComparedSide, ComparedSide>, std::shared_future<nlohmann::ordered_json>>
      documents_;
  // They end first: what they work on is above.
  Worker levels_worker_, whole_worker_, later_reader_;
  std::thread reader_;
};

}  // namespace gpumemprof
