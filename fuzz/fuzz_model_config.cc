// Configurations of models on any bytes: what is read can be estimated, under several settings, and
// its shares add up.
#include <stdint.h>
#include <stdlib.h>

#include <string_view>

#include "estimate/closed_form.h"
#include "estimate/prices.h"
#include "work_limit.h"

using namespace gpumemprof;

namespace {

void check(const Error& error, size_t size) {
  const bool is_one_line = error.message.find('\n') == std::string::npos;
  if (!is_one_line || error.message.empty() || (error.offset && *error.offset > size)) abort();
}

void estimate(const ConfigurationCase& read, const std::vector<SetupOption>& options) {
  auto setup = training_setup(read.values, read.shape, options);
  if (!setup) return check(setup.error(), SIZE_MAX);
  auto prediction = predict_closed_form(read.shape, *setup);
  if (!prediction) return check(prediction.error(), SIZE_MAX);
  uint64_t sum = 0;
  for (const PredictedShare& share : prediction->at_peak) sum += share.bytes;
  if (!prediction->allocated || sum / 1024 > prediction->allocated->high / 1024) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto prices = parse_prices(text); !prices) check(prices.error(), size);
  auto read = read_configuration(text);
  if (!read) {
    check(read.error(), size);
    return 0;
  }
  if (read->shape.layers > 256) return 0;  // right, but slow
  estimate(*read, {});
  estimate(*read, {{"inference", "true"}, {"context", "4096"}});
  estimate(*read, {{"sequence", "64"}, {"checkpointing", "full"}, {"dp", "4"}, {"zero", "3"}});
  estimate(*read, {{"sequence", "64"}, {"precision", "amp-bf16"}, {"attention", "unfused"}});
  return 0;
}
