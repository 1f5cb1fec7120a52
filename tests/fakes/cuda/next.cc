// Of the driver after the newest that the stand-in's list knows.
#include "driver.h"

/// Each argument as a digit, the first the lowest: ones that did not arrive are seen.
FAKE_CUDA int64_t cuBrandNewThing(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f,
                                  int64_t g, int64_t h, double i, double j, double k, double l,
                                  double m, double n, double o, double p) {
  const double floats[] = {i, j, k, l, m, n, o, p};
  const int64_t integers[] = {a, b, c, d, e, f, g, h};
  int64_t number = 0, place = 1;
  for (const int64_t one : integers) number += one * place, place *= 10;
  for (const double one : floats) number += static_cast<int64_t>(one) * place, place *= 10;
  return number;
}

FAKE_CUDA int cuBrandNewThing_v2() { return 2; }
