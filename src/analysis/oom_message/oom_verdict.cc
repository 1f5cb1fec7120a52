#include "analysis/oom_message/oom_verdict.h"

#include <algorithm>

#include "analysis/oom_message/oom_explainer.h"
#include "analysis/statistics/worth.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

// c10/core/AllocatorConfig.h: kSmallBuffer and kLargeBuffer.
constexpr uint64_t kSmallSegment = 2 << 20;
constexpr uint64_t kLargeSegment = 20 << 20;

bool is_cuda_like(const OomMessage& message) {
  return message.wording == OomWording::kPyTorch1 || message.wording == OomWording::kPyTorch2;
}

std::string requested_meaning(const OomMessage& message) {
  const uint64_t bytes = message.requested->bytes;
  if (is_cuda_like(message) && bytes == kSmallSegment) {
    return "the allocator's request to the driver: 2 MiB is a whole segment for tensors of up to 1 "
           "MiB, so the tensor itself may be far smaller";
  }
  if (is_cuda_like(message) && bytes == kLargeSegment) {
    return "the allocator's request to the driver: 20 MiB is a whole segment for tensors of 1 to "
           "10 MiB, so the tensor itself may be smaller";
  }
  if (message.framework == "tensorflow") {
    std::string text = "the request";
    if (!message.shape.empty()) text += ", a tensor of shape [" + message.shape + "]";
    if (!message.type.empty()) text += " of " + message.type;
    if (message.rounded_bytes && *message.rounded_bytes != message.requested->bytes)
      text += "; the pool looked for " + std::to_string(*message.rounded_bytes) + " bytes";
    return text;
  }
  if (message.framework == "numpy" && !message.type.empty())
    return "the refused array, " + message.type + " of shape (" + message.shape + ")";
  if (!is_cuda_like(message)) return "the refused size";
  return "the allocator's request to the driver: the tensor's size, rounded up (by less than 2 MiB "
         "unless roundup_power2_divisions is set)";
}

std::optional<ByteRange> maybe(const std::optional<PrintedSize>& size) {
  return size ? std::optional(range_of(*size)) : std::nullopt;
}

/// The figures of one message, those worked out from others included.
class PytorchExplainer : public OomExplainer {
 public:
  PytorchExplainer(const OomMessage& message, bool expandable_on)
      : OomExplainer(message),
        expandable_on_(expandable_on),
        requested_(maybe(message.requested)),
        free_(maybe(message.free)),
        allocated_(maybe(message.allocated)),
        unallocated_(maybe(message.unallocated)),
        reserved_(maybe(message.reserved)) {
    if (!unallocated_ && reserved_ && allocated_) unallocated_ = *reserved_ - *allocated_;
    if (!reserved_ && allocated_ && unallocated_) reserved_ = *allocated_ + *unallocated_;
  }

  OomVerdict explain() {
    tell_who_else();
    decide();
    advise();
    return std::move(verdict_);
  }

 private:
  /// The processes of the list of which one must be this one, seen from outside its container:
  /// without it the device would hold more than there is.
  std::vector<const ProcessUse*> own_process_candidates() const {
    std::vector<const ProcessUse*> out;
    if (message_.process_in_use || !message_.capacity || !free_ || !reserved_) return out;
    ByteRange listed;
    for (const ProcessUse& process : message_.processes) listed = listed + range_of(process.in_use);
    if (!surely_less(range_of(*message_.capacity) - *free_, listed + *reserved_)) return out;
    for (const ProcessUse& process : message_.processes)
      if (!surely_less(range_of(process.in_use), *reserved_)) out.push_back(&process);
    return out;
  }

  void tell_who_else() {
    const std::vector<const ProcessUse*> own = own_process_candidates();
    std::optional<ByteRange> in_use = maybe(message_.process_in_use);
    if (!own.empty()) {
      in_use = range_of(own[0]->in_use);
      std::string which = "Process ";
      for (const ProcessUse* process : own) {
        const ByteRange of_it = range_of(process->in_use);
        in_use = {std::min(in_use->least, of_it.least), std::max(in_use->most, of_it.most)};
        which += (process == own[0] ? "" : " or ") + std::to_string(process->pid);
      }
      verdict_.elsewhere.push_back(which +
                                   " must be this process, under its PID outside of the container: "
                                   "otherwise more would be in use than the device has.");
    }
    if (in_use && reserved_) {
      verdict_.non_pytorch_bytes = *in_use - *reserved_;
      verdict_.elsewhere.push_back("This process holds " + range_text(*verdict_.non_pytorch_bytes) +
                                   " outside PyTorch's segments (" + range_text(*in_use) + " - " +
                                   range_text(*reserved_) +
                                   "): the driver's context, NCCL, cuBLAS, other libraries.");
    }
    ByteRange others;
    std::string pids;
    for (const ProcessUse& process : message_.processes) {
      if (own.size() == 1 && &process == own[0]) continue;
      others = others + range_of(process.in_use);
      pids += (pids.empty() ? "" : ", ") + std::to_string(process.pid);
    }
    if (own.size() > 1) {
      others = others - *in_use;
      pids = "all of " + pids + " but this one; nvidia-smi on the host names them";
    }
    if (!pids.empty()) {
      verdict_.others_bytes = others;
      other_pids_ = pids;
      verdict_.elsewhere.push_back("Other processes hold " + range_text(others) + " (" + pids +
                                   ").");
    } else if (!in_use && message_.capacity && free_ && reserved_) {
      verdict_.elsewhere.push_back("Of the device " +
                                   range_text(range_of(*message_.capacity) - *free_ - *reserved_) +
                                   " is neither free nor reserved by this process's PyTorch: the "
                                   "driver's context, libraries, other processes. The message does "
                                   "not separate them; nvidia-smi lists the processes.");
    }
  }

  void decide() {
    if (!requested_ || is_of_host()) return decide_without_numbers();
    const ByteRange live = allocated_.value_or(exactly(0));
    if (message_.capacity && surely_less(range_of(*message_.capacity), live))
      return cannot_tell("The figures contradict each other: " + message_.allocated->text +
                         " of live tensors on a device of " + message_.capacity->text + ".");
    if (message_.capacity && surely_less(range_of(*message_.capacity), *requested_)) {
      because("The request alone, " + message_.requested->text + ", is more than the device has, " +
              message_.capacity->text + ".");
      verdict_.shortage_bytes = *requested_ - range_of(*message_.capacity);
      return conclude(OomCause::kWantOfMemory,
                      is_wrong_size(*message_.requested)
                          ? "Not enough memory: no device has as much, so a size is probably wrong."
                          : "Not enough memory: no setting can make this request fit on this "
                            "device.");
    }
    if (message_.wording == OomWording::kPyTorchMps) return decide_mps();
    if (message_.is_own_limit) {
      because(
          "The message says that the process's own limit refused it, before the driver was asked.");
      return conclude(OomCause::kOwnLimit, "The process's own limit was reached.");
    }
    if (message_.exceeds_reserve) {
      because(
          "The message says that the request is larger than the address space that one expandable "
          "segment reserves.");
      return conclude(OomCause::kOwnLimit, "A limit of the allocator's settings was reached.");
    }
    if (message_.is_custom_pool) {
      return cannot_tell(
          "The message says that the allocator of a MemPool refused; the device's figures may not "
          "be the reason.");
    }
    if (message_.capacity && allocated_ && (!unallocated_ || !free_) &&
        surely_less(range_of(*message_.capacity), *allocated_ + *requested_)) {
      because("Live tensors and the request, " + range_text(*allocated_ + *requested_) +
              ", are more than the device has, " + message_.capacity->text + ".");
      verdict_.shortage_bytes = *allocated_ + *requested_ - range_of(*message_.capacity);
      return conclude(
          OomCause::kWantOfMemory,
          "Not enough memory: " + range_text(*verdict_.shortage_bytes) + " are missing.");
    }
    if (!free_) {
      return cannot_tell("The message does not say how much the driver had free.",
                         summary_of_size());
    }
    decide_by_room();
  }

  void decide_without_numbers() {
    if (is_of_host()) return cannot_tell(kHostSaysNoNumbers, summary_of_size(kHostRefused));
    cannot_tell(
        "The message has no numbers: it comes from the driver or a library, not from PyTorch's "
        "allocator, so PyTorch's cache was not released first.");
  }

  void decide_mps() {
    if (!allocated_ || !message_.allowed)
      return cannot_tell("The message does not say what the limit is.");
    ByteRange used = *allocated_;
    if (message_.other_in_use) used = used + range_of(*message_.other_in_use);
    cannot_tell("In use and requested: " + range_text(used + *requested_) +
                "; allowed: " + message_.allowed->text + ".");
    if (surely_less(range_of(*message_.allowed), used + *requested_))
      conclude(OomCause::kOwnLimit, "The backend's own limit was reached.");
  }

  /// What could be had outside of PyTorch's segments: the driver's, or less under a limit.
  ByteRange headroom() {
    ByteRange room = *free_;
    if (!message_.allowed || !reserved_) return room;
    const ByteRange under_limit = range_of(*message_.allowed) - *reserved_;
    because("Below its own limit the process may take " + range_text(under_limit) + " more (" +
            message_.allowed->text + " allowed - " + range_text(*reserved_) + " reserved).");
    limit_binds_ = surely_less(under_limit, room);
    return {std::min(room.least, under_limit.least), std::min(room.most, under_limit.most)};
  }

  void decide_by_room() {
    const ByteRange room = headroom();
    if (!unallocated_) {
      return cannot_tell("Free: " + range_text(room) + "; requested: " + message_.requested->text +
                         ". The message does not say how much PyTorch had cached.");
    }
    const ByteRange usable = room + *unallocated_;
    verdict_.usable_bytes = usable;
    because("Free in total: " + range_text(usable) + " = " + range_text(room) +
            (limit_binds_ ? " under the limit + " : " free on the device + ") +
            range_text(*unallocated_) +
            " in PyTorch's segments; requested in one piece: " + message_.requested->text + ".");
    if (surely_less(usable, *requested_)) {
      verdict_.shortage_bytes = *requested_ - usable;
      const std::string lacks =
          "even with all free pieces, " + range_text(*verdict_.shortage_bytes) + " are missing";
      return limit_binds_
                 ? conclude(OomCause::kOwnLimit, "The process's own limit: " + lacks + " under it.")
                 : conclude(OomCause::kWantOfMemory, "Not enough memory: " + lacks + ".");
    }
    if (surely_at_least(room, *requested_)) {
      return cannot_tell(
          "The driver had enough free memory when the message was written, so it refused for "
          "another reason, or memory was freed in between.",
          "The numbers do not explain it: there was room.");
    }
    if (surely_at_least(usable, *requested_) && is_full()) return tell_full();
    if (surely_at_least(*unallocated_, *requested_)) {
      because(
          "PyTorch's segments have enough free in total, but each piece is too small or belongs to "
          "another stream's pool.");
      return conclude(OomCause::kFragmentation,
                      "Fragmentation: enough is free, but not in one piece.");
    }
    if (surely_at_least(usable, *requested_)) {
      because("Neither is enough alone; together they are.");
      return conclude(
          OomCause::kFragmentation,
          "Fragmentation: it would fit if PyTorch's free pieces went back to the driver.");
    }
    cannot_tell("The printed numbers are rounded, and the rounding decides.",
                "The numbers are too close to tell.");
  }

  /// Less is free within PyTorch's segments than a fragmentation worth telling.
  bool is_full() const {
    return allocated_ && reserved_ && unallocated_->most < reserved_->least / kWorthShare;
  }

  /// Then they are the larger lever.
  bool others_hold_more() const {
    return verdict_.others_bytes && reserved_ && surely_less(*reserved_, *verdict_.others_bytes);
  }

  void tell_full() {
    is_told_full_ = true;
    because("Free within PyTorch's segments are " + range_text(*unallocated_) + " of " +
            range_text(*reserved_) + ", less than 5 %: that is all that fragmentation costs.");
    const std::string& live = message_.allocated->text;
    if (limit_binds_)
      return conclude(OomCause::kOwnLimit, "The process's own limit is reached: " + live + " of " +
                                               message_.allowed->text + " are live tensors.");
    const std::string all =
        message_.capacity ? message_.capacity->text : range_text(*reserved_) + " reserved";
    if (others_hold_more())
      return conclude(OomCause::kWantOfMemory,
                      "The device is full: other processes hold " +
                          range_text(*verdict_.others_bytes) + " of " + all +
                          ", the live tensors of this one " + live + ".");
    conclude(OomCause::kWantOfMemory,
             "The device is full: " + live + " of " + all + " are live tensors" +
                 (other_pids_.empty() ? "." : " of this process."));
  }

  void advise_against_fragmentation() {
    if (message_.wording == OomWording::kPyTorch1) {
      if (message_.hint_variable.empty()) {
        return add_advice(
            "This PyTorch has no setting against it: use 2.1 or newer, which has expandable "
            "segments.");
      }
      return add_advice(
          "Do not split blocks larger than this many MiB (a value to try, not computed); PyTorch 2.1 "
          "and newer have expandable segments, which help more.",
          "export " + message_.hint_variable + "=max_split_size_mb:128");
    }
    if (expandable_on_) {
      return add_advice(
          "Expandable segments are on already, so the free pieces belong to other streams or pools, "
          "or are smaller than a page: use fewer streams and fewer different sizes.");
    }
    const bool is_offered = message_.backend == "CUDA" || message_.hints_expandable_segments;
    if (!is_offered) {
      return add_advice("Release the free pieces between phases of the program: torch." +
                        std::string(message_.backend == "XPU" ? "xpu" : "cuda") +
                        ".empty_cache().");
    }
    const std::string variable =
        message_.hint_variable.empty() ? "PYTORCH_CUDA_ALLOC_CONF" : message_.hint_variable;
    add_advice(
        "Let segments grow in place, so that free pieces can be combined (append to what the "
        "variable holds, with a comma).",
        "export " + variable + "=expandable_segments:True");
  }

  void advise_higher_limit() {
    if (message_.exceeds_reserve) {
      add_advice("Raise expandable_segments_reserve in the allocator's settings, or leave it out.");
    } else if (message_.wording == OomWording::kPyTorchMps) {
      add_advice("Raise the limit, if the machine allows it: PYTORCH_MPS_HIGH_WATERMARK_RATIO.");
    } else {
      add_advice(
          "Raise the limit that the program sets for itself: "
          "torch.cuda.set_per_process_memory_fraction().");
    }
  }

  void advise() {
    advise_on_size();
    const std::optional<ByteRange>& others = verdict_.others_bytes;
    const bool is_for_want = verdict_.cause == OomCause::kWantOfMemory;
    const std::string stop_others = "Stop the other processes on the device (" + other_pids_ + "): ";
    if (verdict_.cause == OomCause::kFragmentation) {
      if (others_hold_more()) add_advice(stop_others + "they hold more than this one.");
      advise_against_fragmentation();
    } else if (verdict_.cause == OomCause::kOwnLimit) {
      advise_higher_limit();
    } else if (is_for_want && is_told_full_ && others_hold_more()) {
      add_advice(stop_others + "they hold more than this one. Or use another device.");
    } else if (is_for_want && others && verdict_.shortage_bytes &&
               surely_at_least(*others, *verdict_.shortage_bytes)) {
      add_advice(stop_others + "they hold enough.");
    }
    add_advice(allocated_ ? "See which lines hold the " + message_.allocated->text +
                                " that are in use: record the program, then analyze the recording."
                          : "See which lines hold the memory: record the program, then analyze the "
                            "recording.",
               message_.wording == OomWording::kNumpy ? kRecordHostCommand : kRecordCommand);
    if (verdict_.cause != OomCause::kCannotTell)
      advise_less("a smaller batch or sequence, activation checkpointing, lower precision");
    if (is_told_full_ && !expandable_on_) {
      advise_against_fragmentation();
      verdict_.advice.back().text +=
          " It brings at most " + format_bytes(unallocated_->most) + " here.";
    }
  }

  const bool expandable_on_;
  std::optional<ByteRange> requested_, free_, allocated_, unallocated_, reserved_;
  bool limit_binds_ = false;
  bool is_told_full_ = false;
  std::string other_pids_;
};

}  // namespace

OomVerdict explain_oom(const OomMessage& message, bool expandable_segments_on) {
  if (message.framework == "kernel") return explain_kernel_oom(message);
  if (message.wording == OomWording::kSharedMemory) return explain_shared_memory_oom();
  if (message.framework == "tensorflow" || message.framework == "xla")
    return explain_tensorflow_oom(message);
  return PytorchExplainer(message, expandable_segments_on).explain();
}

OomVerdict explain_oom(const OomMessage& message, const OomLog& log) {
  OomVerdict verdict = explain_oom(message, log.expandable_segments_on);
  if (log.analyze_command.empty()) return verdict;
  std::erase_if(verdict.advice, [](const OomAdvice& advice) {
    return advice.command == kRecordCommand || advice.command == kRecordHostCommand;
  });
  verdict.advice.insert(
      verdict.advice.begin(),
      {"See which lines hold the memory: the program was recorded.", log.analyze_command});
  return verdict;
}

const char* cause_name(OomCause cause) {
  static constexpr const char* kNames[] = {"want_of_memory", "fragmentation", "own_limit",
                                           "cannot_tell"};
  return kNames[static_cast<size_t>(cause)];
}

std::vector<OomFigure> oom_figures(const OomMessage& message) {
  std::vector<OomFigure> out;
  const auto add = [&](const char* key, const std::optional<PrintedSize>& size,
                       std::string meaning) {
    if (size) out.push_back({key, *size, std::move(meaning)});
  };
  const bool is_two = message.wording == OomWording::kPyTorch2;
  if (message.requested) add("requested", message.requested, requested_meaning(message));
  add("capacity", message.capacity, "the device's total memory");
  add("free", message.free,
      is_cuda_like(message) ? "free on the GPU, after PyTorch had released its unused segments"
                            : "free on the GPU");
  add("allowed", message.allowed,
      message.wording == OomWording::kPyTorchMps
          ? "the backend's own limit (PYTORCH_MPS_HIGH_WATERMARK_RATIO)"
          : "this process's own limit (set_per_process_memory_fraction)");
  add("process_in_use", message.process_in_use,
      "the driver's figure for this process: PyTorch's segments, the context, and libraries such "
      "as NCCL");
  add("allocated", message.allocated,
      message.private_pools ? "in live tensors and in the cache of private pools"
      : is_two              ? "in live tensors"
                            : "in live tensors, rounded by the allocator");
  add("private_pools", message.private_pools,
      "of that, free blocks in private pools (CUDA graphs, MemPool), which other tensors cannot "
      "use");
  add("unallocated", message.unallocated,
      "reserved by PyTorch but free, in pieces between live tensors");
  add("reserved", message.reserved, "reserved by PyTorch: live tensors and free pieces");
  add("other_in_use", message.other_in_use, "Metal's figure for this process without PyTorch");
  if (message.pool) {
    add("pool_limit", message.pool->limit, "the pool's own limit");
    add("pool_in_use", message.pool->in_use, "in use, by the pool's count");
    add("pool_peak_in_use", message.pool->peak_in_use, "its peak since the program began");
    add("pool_largest_allocation", message.pool->largest_allocation,
        "the largest chunk allocated since the program began");
  }
  return out;
}

}  // namespace gpumemprof
