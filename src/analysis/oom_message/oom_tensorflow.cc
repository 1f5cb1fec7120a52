// Why TensorFlow's pool refused. What is known to the byte is the state of its chunks; the limit is
// printed, so it is a range where the release rounds it.

#include "analysis/oom_message/oom_explainer.h"
#include "analysis/oom_message/oom_pool.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

std::string chunks_text(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " chunk" : " chunks");
}

class TensorflowExplainer : OomExplainer {
 public:
  explicit TensorflowExplainer(const OomMessage& message) : OomExplainer(message) {
    if (message.pool) picture_ = picture_of(*message.pool);
    if (message.rounded_bytes) {
      asked_ = exactly(*message.rounded_bytes);
    } else if (message.requested) {
      asked_ = range_of(*message.requested);
      if (asked_->least == asked_->most && message.wording != OomWording::kXla)
        asked_ = exactly(rounded(asked_->least));
    }
  }

  OomVerdict explain() {
    decide();
    if (!message_.is_no_failure) advise_on_size();
    if (verdict_.cause != OomCause::kCannotTell) advise_by_cause();
    advise_always();
    return std::move(verdict_);
  }

 private:
  static uint64_t rounded(uint64_t bytes) {
    const uint64_t up = bytes + (kBfcUnitBytes - 1);
    return up < bytes ? UINT64_MAX : up / kBfcUnitBytes * kBfcUnitBytes;
  }
  /// TensorFlow's plain allocator of the host has none.
  bool has_pool() const { return message_.allocator != "cpu"; }
  bool is_whole() const {
    return message_.pool && message_.pool->is_complete && message_.pool->more_chunks == 0;
  }

  void decide() {
    if (message_.is_no_failure) {
      return cannot_tell(
          "The caller marked this request as optional and used another path, which may be slower.",
          "Not a failure: an optional request was refused.");
    }
    if (!is_whole()) return decide_without_state();
    tell_state();
    if (message_.wording == OomWording::kTensorflowDump) {
      return cannot_tell("A dump does not say what was requested; for more than " +
                             format_bytes(picture_.largest_free_bytes) +
                             " in one piece the pool would have to grow.",
                         "The state of a pool; it does not say why it was written.");
    }
    if (!asked_) return cannot_tell("The message does not say how many bytes were requested.");
    decide_by_state();
  }

  void decide_without_state() {
    if (message_.pool) {
      because("The printed state of the pool is cut off; sums over its chunks would be too small.");
    } else if (message_.is_pool_left_out) {
      because(
          "Only the first " + std::to_string(kMostPlacedPools) +
          " states of pools in a text are kept, and this message comes after them: pass its part "
          "of the text alone.");
    } else if (message_.framework == "xla") {
      because("XLA does not say what else the device held.");
    } else if (has_pool()) {
      because(
          "The state of the pool, which TensorFlow prints when it runs out, is not in the text.");
    }
    if (is_of_host()) because(kHostSaysNoNumbers);
    if (is_probably_of_host()) {
      because(
          "The words are those of XLA on a CPU; older TensorFlow's XLA used them for GPUs as "
          "well.");
    }
    conclude(OomCause::kCannotTell, summary_of_size(is_of_host()            ? kHostRefused
                                                    : is_probably_of_host() ? kProbablyHostRefused
                                                                            : kSaysNotWhy));
  }

  void tell_state() {
    std::string text = "Free in the pool: " + format_bytes(picture_.free_bytes) + " in " +
                       chunks_text(picture_.free_chunks);
    if (picture_.free_chunks > 1)
      text += ", the largest " + format_bytes(picture_.largest_free_bytes);
    if (picture_.growth_bytes) {
      text += "; it may take " + range_text(*picture_.growth_bytes) + " more from the device (" +
              message_.pool->limit->text + " allowed, " + format_bytes(picture_.bytes) + " taken)";
    }
    because(text + ".");
  }

  void decide_by_state() {
    const ByteRange asked = *asked_, free = exactly(picture_.free_bytes);
    const ByteRange largest = exactly(picture_.largest_free_bytes);
    because("Requested in one piece: " + range_text(asked) + ".");
    if (message_.pool->limit && surely_less(range_of(*message_.pool->limit), asked)) {
      verdict_.shortage_bytes = asked - range_of(*message_.pool->limit);
      return conclude(OomCause::kOwnLimit, "The request alone is more than the pool's limit.");
    }
    if (surely_at_least(largest, asked)) {
      return cannot_tell(
          "A free chunk is large enough: it was freed in between, or another stream still uses "
          "it.",
          "The numbers do not explain it: there was room.");
    }
    if (surely_at_least(free, asked)) return conclude_fragmentation();
    if (!picture_.growth_bytes) {
      return cannot_tell(
          "The message does not give the pool's limit, so it is unknown whether the pool could "
          "have grown.");
    }
    const ByteRange growth = *picture_.growth_bytes;
    if (surely_at_least(growth, asked)) {
      because(
          "The pool was below its own limit, so the device refused: other processes hold the "
          "memory, or it is in pieces.");
      if (is_of_host()) because(kHostRefused);
      return conclude(OomCause::kWantOfMemory,
                      "Not enough memory: the device had no piece of that size.");
    }
    verdict_.usable_bytes = free + growth;
    if (surely_at_least(*verdict_.usable_bytes, asked)) return conclude_fragmentation();
    if (surely_less(*verdict_.usable_bytes, asked)) {
      verdict_.shortage_bytes = asked - *verdict_.usable_bytes;
      return conclude(OomCause::kWantOfMemory,
                      "Not enough memory: even with all free pieces, " +
                          range_text(*verdict_.shortage_bytes) + " are missing.");
    }
    cannot_tell("The printed limit is rounded, and the rounding decides.",
                "The numbers are too close to tell.");
  }

  void conclude_fragmentation() {
    if (!verdict_.usable_bytes) verdict_.usable_bytes = exactly(picture_.free_bytes);
    because("Together that is " + range_text(*verdict_.usable_bytes) +
            ", which is enough; the largest free piece is " +
            format_bytes(picture_.largest_free_bytes) + ". The pool consists of " +
            std::to_string(picture_.regions) +
            (picture_.regions == 1 ? " region" : " regions, and no chunk spans two of them") +
            ".");
    conclude(OomCause::kFragmentation, "Fragmentation: enough is free, but not in one piece.");
  }

  void advise_by_cause() {
    const bool is_gpu = message_.backend == "GPU";
    const bool is_fragmented = verdict_.cause == OomCause::kFragmentation;
    if (is_fragmented && is_gpu) {
      add_advice(
          "Let the driver manage the memory (CUDA 11.2 and newer): it can use pieces together.",
          "export TF_GPU_ALLOCATOR=cuda_malloc_async");
      if (picture_.regions > 1) {
        add_advice(
            "Reserve the pool as one region at the start instead of letting it grow: no "
            "set_memory_growth(True), and",
            "export TF_FORCE_GPU_ALLOW_GROWTH=false");
      }
    }
    // TensorFlow's pool for memory of the host, which has this limit of its own.
    const bool has_host_limit = message_.allocator == "bfc_cpu_allocator_for_gpu" && asked_;
    if (has_host_limit && message_.pool->limit) {
      const ByteRange all = exactly(picture_.bytes) + *asked_ + exactly(kMebibyte - 1);
      const uint64_t enough = all.most / kMebibyte;
      add_advice("Raise the pool's limit, so that one more region of that size fits:",
                 "export TF_CPU_BFC_MEM_LIMIT_IN_MB=" + std::to_string(enough));
    }
    advise_about_unasked();
    if (!is_fragmented)
      advise_less("a smaller batch or sequence, lower precision, recomputation");
  }

  /// Chunks are not split below twice the request, so what is in use is more than was asked for.
  void advise_about_unasked() {
    const auto& unasked = picture_.unasked_bytes;
    const std::optional<ByteRange> missing =
        verdict_.shortage_bytes ? verdict_.shortage_bytes : asked_;
    if (!unasked || unasked->least == 0 || unasked->least < missing->most / 8) return;
    add_advice("Chunks in use hold " + range_text(*unasked) +
               " more than was requested, because a free chunk of less than twice the request is "
               "handed out whole. Sizes that repeat from step to step (a fixed batch and sequence "
               "length, padding, drop_remainder) reduce it.");
  }

  void advise_always() {
    // Whatever the pool holds, no state of it makes room for a wrong size.
    if (!message_.pool && message_.framework == "tensorflow" && !message_.is_no_failure &&
        has_pool() && !has_wrong_size()) {
      add_advice(
          "Let TensorFlow print the state of the pool, and pass the whole log to this command.",
          "export TF_CPP_MIN_LOG_LEVEL=0");
    }
    add_advice(
        "See which operations, layers and lines hold the memory: record the program, then analyze "
        "the recording.",
        kRecordCommand);
  }

  static constexpr char kProbablyHostRefused[] =
      "Probably the host refused memory: it has too little, or a limit (ulimit -v) was reached.";
  PoolPicture picture_;
  std::optional<ByteRange> asked_;
};

}  // namespace

OomVerdict explain_tensorflow_oom(const OomMessage& message) {
  return TensorflowExplainer(message).explain();
}

}  // namespace gpumemprof
