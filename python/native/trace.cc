#include "native/bindings.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "analysis/advice/practices.h"
#include "analysis/analyze.h"
#include "analysis/compare/diff.h"
#include "analysis/compare/pick_device.h"
#include "analysis/replay/study_request.h"
#include "native/arrow_capsule.h"
#include "native/event_stream.h"
#include "native/columns.h"
#include "native/raise.h"
#include "report/describe/source_text.h"
#include "report/diff_report.h"
#include "report/json_report.h"
#include "report/whatif_report.h"
#include "report/words.h"
#include "trace/holder_lines.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

/// One input. A snapshot is kept whole; a recording is read again for every question that needs all
/// of its events. Any thread may ask: the core runs without the GIL.
class Trace {
 public:
  static Result<std::unique_ptr<Trace>> open(const std::string& path) {
    auto trace = std::make_unique<Trace>();
    auto input = open_input({path});
    if (!input) return std::unexpected(input.error());
    trace->path_ = path;
    trace->input_ = std::move(*input);
    auto source = trace->input_.events(FollowedSource::Sizes::kAllocated);
    if (!source) return std::unexpected(source.error());
    trace->source_ = std::move(*source);
    return trace;
  }

  const std::string& path() const { return path_; }
  const AllocatorSnapshot* snapshot() const { return input_.snapshot().get(); }
  const SourceInfo& info() const { return source_->info(); }

  /// The same input for one question: a snapshot is shared, not read again.
  Input new_input() const { return input_.again(); }

  /// All events; read on the first call, then kept. Only after it are tables() and loss() whole.
  Result<std::shared_ptr<const Columns>> columns() {
    std::lock_guard lock(mutex_);
    if (!columns_ && !failure_) {
      uint64_t expected = 0;
      if (snapshot())
        for (const AllocatorTrace& trace : snapshot()->traces) expected += trace.events.size();
      auto columns = read_columns(*source_, expected);
      if (columns)
        columns_ = std::make_shared<const Columns>(std::move(*columns));
      else
        failure_ = columns.error();
    }
    if (failure_) return std::unexpected(*failure_);  // the source has only one pass in it
    return columns_;
  }
  const Tables& tables() const { return source_->tables(); }
  const Loss& loss() const { return source_->loss(); }

 private:
  std::string path_;
  Input input_;
  std::unique_ptr<EventSource> source_;
  std::mutex mutex_;  // never held by one who waits for the GIL
  std::shared_ptr<const Columns> columns_;
  std::optional<Error> failure_;
};

std::shared_ptr<const Columns> columns_of(Trace& trace) {
  return without_gil(trace.path(), [&] { return trace.columns(); });
}

template <class T>
nb::object array_of(const std::shared_ptr<const Columns>& columns, const std::vector<T>& values) {
  // Any one array keeps all columns: they are freed together, when the last one goes.
  using Owner = std::shared_ptr<const Columns>;
  nb::capsule owner(new Owner(columns), [](void* p) noexcept { delete static_cast<Owner*>(p); });
  nb::ndarray<nb::numpy, const T, nb::ndim<1>> array(values.data(), {values.size()}, owner);
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object column(Trace& trace, const std::string& name) {
  const auto c = columns_of(trace);
  if (name == "time_ns") return c->has_times ? array_of(c, c->time_ns) : nb::none();
  if (name == "action") return array_of(c, c->action);
  if (name == "address") return array_of(c, c->address);
  if (name == "size_bytes") return array_of(c, c->size_bytes);
  if (name == "stack") return array_of(c, c->stack);
  if (name == "device") return array_of(c, c->device);
  if (name == "thread") return c->has_threads ? array_of(c, c->thread) : nb::none();
  if (name == "stream") return c->no_streams.empty() ? array_of(c, c->stream) : nb::none();
  throw nb::key_error(name.c_str());
}

nb::dict unknown(Trace& trace) {
  const auto columns = columns_of(trace);
  nb::dict out;
  if (!columns->has_times) out["time_ns"] = "the file has no times";
  if (!columns->has_threads) out["thread"] = "the file does not say which thread";
  if (!columns->no_streams.empty()) out["stream"] = columns->no_streams;
  return out;
}

nb::capsule arrow_stream(Trace& trace) { return arrow_capsule(arrow_of_events(columns_of(trace))); }

std::vector<std::string> stack(Trace& trace, uint32_t id) {
  columns_of(trace);
  if (id >= trace.tables().stacks.stack_count()) throw nb::index_error("no such stack");
  return stack_lines(trace.tables(), id);
}

/// (label, name, index of its process or None) of each device.
nb::list devices(Trace& trace) {
  const auto columns = columns_of(trace);
  const Tables& tables = trace.tables();
  nb::list out;
  for (size_t i = 0; i < columns->devices.size(); ++i) {
    const Device& device = device_at(tables, i);
    nb::object process = nb::none();
    if (device.process < tables.processes.size()) process = nb::int_(device.process);
    out.append(nb::make_tuple(columns->devices[i], device_name(device), process));
  }
  return out;
}

nb::list threads(Trace& trace) {
  columns_of(trace);
  nb::list out;
  for (const Thread& thread : trace.tables().threads) {
    nb::dict row;
    row["tid"] = thread.tid;
    row["name"] = printable(thread.name);
    row["process"] = process_at(trace.tables(), thread.process).pid;
    out.append(row);
  }
  return out;
}

nb::dict lost(Trace& trace) {
  columns_of(trace);
  nb::list reasons;
  for (const LossReason& reason : trace.loss().reasons) {
    nb::dict row;
    row["reason"] = printable(reason.reason);
    row["events"] =
        reason.is_counted() ? nb::object(nb::int_(reason.events)) : nb::object(nb::none());
    reasons.append(row);
  }
  nb::dict out;
  out["events"] = trace.loss().events;
  out["bytes"] = trace.loss().bytes;
  out["more_than_counted"] = trace.loss().is_open_ended();
  out["reasons"] = reasons;
  return out;
}

const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kAllocated:
      return "allocated";
    case BlockState::kPendingFree:
      return "pending_free";
    case BlockState::kFree:
      return "free";
  }
  return "unknown";
}

nb::dict segment_dict(const AllocatorTrace& trace, const AllocatorSegment& segment) {
  nb::list blocks;
  for (const AllocatorBlock& block : segment.blocks) {
    nb::dict row;
    row["address"] = block.address;
    row["size_bytes"] = block.size_bytes;
    row["requested_bytes"] = block.requested_bytes;
    row["state"] = state_name(block.state);
    row["stack"] = block.stack;
    blocks.append(row);
  }
  const auto [first, second] = trace.pools.at(segment.pool);
  nb::dict out;
  out["address"] = segment.address;
  out["size_bytes"] = segment.size_bytes;
  out["allocated_bytes"] = segment.allocated_bytes;
  out["active_bytes"] = segment.active_bytes;
  out["requested_bytes"] = segment.requested_bytes;
  out["stream"] = trace.streams.at(segment.stream);
  out["pool"] = nb::make_tuple(first, second);
  out["is_large"] = segment.is_large;
  out["is_expandable"] = segment.is_expandable;
  out["stack"] = segment.stack;
  out["blocks"] = blocks;
  return out;
}

/// None for a recording.
nb::object segments(const Trace& trace) {
  const AllocatorSnapshot* snapshot = trace.snapshot();
  if (!snapshot) return nb::none();
  const std::vector<std::string> labels = device_labels(snapshot->tables);
  nb::list out;
  for (size_t i = 0; i < snapshot->traces.size(); ++i) {
    for (const AllocatorSegment& segment : snapshot->traces[i].segments) {
      nb::dict row = segment_dict(snapshot->traces[i], segment);
      row["device"] = labels.at(i);
      out.append(row);
    }
  }
  return out;
}

std::string analysis(const Trace& trace) {
  return without_gil(trace.path(), [&]() -> Result<std::string> {
    Input input = trace.new_input();
    const auto analyzed = analyze(input, {});
    if (!analyzed) return std::unexpected(analyzed.error());
    const Tables& tables = analyzed->tables();
    if (input.snapshot()) return json_report(analyzed->analysis, tables, -1);
    auto advice = advise_in_passing(
        analyzed->analysis, tables, [&] { return input.events(); }, line_text());
    if (!advice) return std::unexpected(advice.error());
    return json_report(analyzed->analysis, tables, -1, &*advice);
  });
}

/// One of two runs that are compared; DiffSide points into it.
struct Side {
  Analyzed analyzed;
  const DeviceAnalysis* device = nullptr;

  Status read(const Trace& trace, const std::string& name) {
    Input input = trace.new_input();
    auto result = analyze(input, {.depth = AnalysisDepth::kHolders});
    if (!result) return std::unexpected(result.error());
    analyzed = std::move(*result);
    auto picked = pick_device(analyzed.analysis, analyzed.tables(), name);
    if (!picked) return std::unexpected(picked.error());
    device = *picked;
    return {};
  }
  DiffSide side() const { return {&analyzed.analysis, &analyzed.tables(), device}; }
};

std::string diff(const Trace& a, const Trace& b, const std::string& device) {
  Side sides[2];
  const Trace* traces[] = {&a, &b};
  for (size_t i = 0; i < 2; ++i)
    without_gil(traces[i]->path(), [&] { return sides[i].read(*traces[i], device); });
  nb::gil_scoped_release release;
  return diff_json(diff_runs(sides[0].side(), sides[1].side()), -1);
}

std::string what_if(const Trace& trace, std::vector<std::string> settings,
                    const std::string& capacity, const std::string& torch,
                    const std::string& device, bool sweep, bool force) {
  return without_gil(trace.path(), [&]() -> Result<std::string> {
    Input input = trace.new_input();
    const auto history = allocator_history(input);
    if (!history) return std::unexpected(history.error());
    const AllocatorSnapshot* snapshot = history->get();
    const Result<StudyOptions> options = study_options({.settings = std::move(settings),
                                                        .capacity = capacity,
                                                        .torch = torch,
                                                        .sweep = sweep,
                                                        .force = force});
    if (!options) return std::unexpected(options.error());
    const Result<size_t> index = study_trace(*snapshot, device);
    if (!index) return std::unexpected(index.error());
    Result<SettingsStudy> study = study_settings(*snapshot, *index, *options);
    if (!study) return std::unexpected(study.error());
    return whatif_json(*study, {.path = trace.path(),
                                .device = device_name(snapshot->tables.devices[*index]),
                                .version_hint = snapshot->info.writer_version_hint,
                                .other_devices = snapshot->traces.size() > 1});
  });
}

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<Trace>(module, "Trace")
      .def_prop_ro("kind", [](const Trace& trace) { return source_kind_name(trace.info().kind); })
      .def("event_count", [](Trace& trace) { return columns_of(trace)->size(); })
      .def("column", &column, nb::arg("name"))
      .def("actions", [](Trace& trace) { return columns_of(trace)->actions; })
      .def("streams", [](Trace& trace) { return columns_of(trace)->streams; })
      .def("unknown", &unknown)
      .def("arrow_stream", &arrow_stream)
      .def("stack", &stack, nb::arg("id"))
      .def("devices", &devices)
      .def("threads", &threads)
      .def("lost", &lost)
      .def("segments", &segments)
      .def("analysis", &analysis)
      .def("diff", &diff, nb::arg("other"), nb::arg("device"))
      .def("what_if", &what_if, nb::arg("settings"), nb::arg("capacity"), nb::arg("torch"),
           nb::arg("device"), nb::arg("sweep"), nb::arg("force"));
  module.def("load_trace",
             [](nb::bytes name) {  // a file's name need not be text
               const std::string path(name.c_str(), name.size());
               return without_gil(path, [&] { return Trace::open(path); });
             });
}

}  // namespace gpumemprof::python
