// What the explanations of all frameworks' messages have in common.
#pragma once

#include <string>
#include <utility>

#include "analysis/oom_message/oom_verdict.h"

namespace gpumemprof {

/// Of what TensorFlow and XLA print, and of TensorFlow's memory dumps.
OomVerdict explain_tensorflow_oom(const OomMessage& message);
/// Of what the kernel and container runtimes say of a process that was killed.
OomVerdict explain_kernel_oom(const OomMessage& message);
/// Where /dev/shm had no room.
OomVerdict explain_shared_memory_oom();

class OomExplainer {
 protected:
  explicit OomExplainer(const OomMessage& message) : message_(message) {}

  /// Who refused, where the allocator or the wording tells it.
  bool is_of_host() const {
    const bool is_of_libraries =
        message_.wording == OomWording::kPyTorchCpu || message_.wording == OomWording::kNumpy;
    // TensorFlow's other allocators of host memory have limits of their own.
    const bool is_of_tensorflow = message_.framework == "tensorflow" &&
                                  (message_.allocator == "cpu" || message_.allocator == "mklcpu");
    return is_of_libraries || is_of_tensorflow;
  }
  bool is_probably_of_host() const { return !is_of_host() && message_.is_xla_of_cpu; }
  bool has_wrong_size() const {
    return message_.requested && is_wrong_size(*message_.requested);
  }

  void because(std::string sentence) { verdict_.reasons.push_back(std::move(sentence)); }
  void conclude(OomCause cause, std::string summary) {
    verdict_.cause = cause;
    verdict_.summary = std::move(summary);
  }
  void cannot_tell(std::string reason, std::string summary = kSaysNotWhy) {
    because(std::move(reason));
    conclude(OomCause::kCannotTell, std::move(summary));
  }
  /// `otherwise`, unless no machine serves such a request.
  std::string summary_of_size(std::string otherwise = kSaysNotWhy) const {
    if (!has_wrong_size()) return otherwise;
    return std::string("More than an ordinary ") +
           (is_of_host() || is_probably_of_host() ? "host" : "device") + " has, " +
           message_.requested->text +
           ", was asked for at once: a shape or a size is probably wrong.";
  }

  void add_advice(std::string text, std::string command = {}) {
    verdict_.advice.push_back({std::move(text), std::move(command)});
  }
  void advise_on_size() {
    if (!has_wrong_size()) return;
    add_advice(std::string("Check the shapes and sizes that the request is made of") +
               (message_.asked_at.file.empty() ? "." : ", at the line that asked for it."));
  }
  /// `how`: a smaller this or less of that.
  void advise_less(const std::string& how) {
    std::string less = ".";
    if (verdict_.shortage_bytes)
      less = "; at least " + range_text(*verdict_.shortage_bytes) + " less.";
    add_advice("Use less: " + how + less);
  }

  static constexpr char kSaysNotWhy[] = "The message does not say why memory ran out.";
  static constexpr char kHostSaysNoNumbers[] =
      "The message does not say how much is used, or which limit there is.";
  static constexpr char kHostRefused[] =
      "The host refused memory: it has too little, or a limit (ulimit -v) was reached.";
  const OomMessage& message_;
  OomVerdict verdict_;
};

}  // namespace gpumemprof
