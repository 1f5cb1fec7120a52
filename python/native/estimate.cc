#include "native/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/size.h"
#include "estimate/configuration_answer.h"
#include "native/raise.h"
#include "report/estimate_report.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

std::string estimate_config(const std::string& config, const std::string& subject,
                            const std::vector<std::pair<std::string, std::string>>& options,
                            const std::string& capacity, bool table, const std::string& prices) {
  ConfigurationRequest request{subject, options, std::nullopt, table, prices};
  if (!capacity.empty()) {
    auto bytes = parse_capacity(capacity);
    if (!bytes) raise(bytes.error());
    request.capacity_bytes = *bytes;
  }
  auto answer = answer_configuration(config, request);
  if (!answer) raise(answer.error(), answer.error().code == ErrorCode::kUsage ? "" : subject);
  return estimate_json(*answer, -1);
}

}  // namespace

void bind_estimate(nb::module_& module) {
  module.def("estimate_config", &estimate_config, nb::arg("config"), nb::arg("subject"),
             nb::arg("options"), nb::arg("capacity"), nb::arg("table"), nb::arg("prices"));
}

}  // namespace gpumemprof::python
