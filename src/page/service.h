// What the page asks the server, apart from HTTP: files that are read meanwhile, and the answers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "page/request.h"

namespace gpumemprof {

/// Reads its files in a thread of its own, one after the other; answers meanwhile say how far it
/// is. answer() is for one thread.
class PageService {
 public:
  /// Each of `inputs` is one file of the page: paths that are read as one.
  PageService(std::vector<std::vector<std::string>> inputs, std::string version);
  /// Of files that are read already.
  PageService(std::vector<std::unique_ptr<PageFile>> files, std::string version);
  ~PageService();

  /// `request`: what stands behind "/api/v1/", such as "levels". 404 for what there is not.
  PageAnswer answer(std::string_view request, std::string_view query);
  /// Waits until all are read. Errors: of the first file that could not be.
  Status wait();
  size_t files() const { return slots_.size(); }
  /// Null while it is read, or where it could not be.
  PageFile* file(size_t index) { return file_of(*slots_[index]); }
  bool is_reading() const { return !is_done_; }

 private:
  struct Slot {
    std::vector<std::string> paths;
    std::atomic<double> progress{0};
    std::mutex mutex;  // of the two below
    std::unique_ptr<PageFile> read;
    std::string error;
    std::unique_ptr<PageFile> file;  // taken from `read` by answer()
  };
  void read_all();
  PageAnswer run_answer();
  PageFile* file_of(Slot& slot);
  PageFile* other_of(PageRequest& request);

  std::string version_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::atomic<bool> is_stopping_{false}, is_done_{false};
  Status status_;
  std::thread reader_;
};

}  // namespace gpumemprof
