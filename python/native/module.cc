// gpumemprof._native: the C++ core for Python. Bindings only; what a value means is said where it
// is made.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "analysis/analyze.h"
#include "native/bindings.h"
#include "native/probe.h"
#include "native/raise.h"
#include "native/resident.h"
#include "page/bundle.h"
#include "report/json_report.h"

namespace nb = nanobind;
using namespace gpumemprof;
using namespace gpumemprof::python;

namespace {

std::string analyze_recording(const std::string& path) {
  return without_gil("", [&]() -> Result<std::string> {  // minutes for a large recording
    auto input = open_input({path});
    if (!input) return std::unexpected(input.error());
    const auto analyzed = analyze(*input, {});
    if (!analyzed) return std::unexpected(analyzed.error());
    return json_report(analyzed->analysis, analyzed->tables(), -1);
  });
}

const char* kind_of(const std::string& path) {
  switch (input_kind({path})) {
    case InputKind::kRecording:
      return "recording";
    case InputKind::kSnapshot:
      return "snapshot";
    case InputKind::kForeign:
      return "foreign";
    case InputKind::kOomDump:
      return "oom_dump";
    case InputKind::kSamples:
      break;
  }
  return "samples";
}

void attach(const std::string& library, const std::optional<std::string>& folder, int flags) {
  auto done = attach_probe(library.c_str(), folder ? folder->c_str() : nullptr, flags);
  if (!done) raise(done.error());
}

nb::object counters(int device_type, int device_index) {
  const Probe& p = probe();
  gpumemprof_counters c = {};
  if (!p.counts() || p.read_counters(device_type, device_index, &c) == 0) return nb::none();
  return nb::make_tuple(c.live_bytes, c.alloc_count, c.free_count, c.alloc_bytes, c.free_bytes,
                        c.unknown_free_count, c.untracked_count);
}

uint64_t scope_begin(int device_type, int device_index, bool in_context) {
  const Probe& p = probe();
  if (!p.counts()) return 0;
  return p.scope_begin(device_type, device_index,
                       in_context ? GPUMEMPROF_CURRENT_CONTEXT : nullptr);
}

nb::object scope_end(uint64_t scope) {
  const Probe& p = probe();
  gpumemprof_scope_result r = {};
  const int flags = p.counts() ? p.scope_end(scope, &r) : 0;
  if (flags == 0) return nb::none();
  return nb::make_tuple(r.start_live_bytes, r.end_live_bytes, r.peak_live_bytes, r.own_alloc_count,
                        r.own_free_count, r.own_alloc_bytes, r.own_free_bytes, r.own_peak_bytes,
                        r.untracked_count, flags);
}

void scope_switch_out(uint64_t scope) {
  if (const Probe& p = probe(); p.scope_switch_out) p.scope_switch_out(scope);
}

void scope_switch_in(uint64_t scope) {
  if (const Probe& p = probe(); p.scope_switch_in) p.scope_switch_in(scope);
}

}  // namespace

NB_MODULE(_native, module) {
  nb::set_leak_warnings(false);  // what a program still holds at its end is its own affair
  module.attr("version") = GPUMEMPROF_VERSION;
  module.def("page_with", &page_with);
  module.def("page_headers", &page_headers);
  module.def("probe_library", []() -> std::optional<std::string> {
    const Probe& p = probe();
    return p.library.empty() ? std::nullopt : std::optional(p.library);
  });
  module.def("can_count", [] { return probe().counts(); });
  module.def("counting_begin", [] { return probe().counts() && probe().counting_begin() == 1; });
  module.def("counters", &counters);
  module.def("scope_begin", &scope_begin);
  module.def("scope_end", &scope_end);
  module.def("scope_switch_out", &scope_switch_out);
  module.def("scope_switch_in", &scope_switch_in);
  module.def("process_bytes", [] {
    const ProcessBytes now = process_bytes();
    return nb::make_tuple(now.resident, now.highest, now.virtual_size);
  });
  module.def("process_look", [](int blocks) {
    const ProcessBytes now = process_bytes(blocks);
    return nb::make_tuple(now.resident, now.highest, now.virtual_size, now.cpu_seconds);
  });
  module.def("attach", &attach, nb::arg("library"), nb::arg("folder").none(), nb::arg("flags"));
  module.def("analyze_recording", &analyze_recording);
  module.def("input_kind", &kind_of, nb::arg("path"));
  bind_accelerators(module);
  bind_series(module);
  bind_telemetry(module);
  bind_estimate(module);
  bind_lake(module);
  bind_trace(module);
}
