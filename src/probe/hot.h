// What every event looks at and runs, side by side. Between two events of a real step the tensor
// operations push us out of the caches: what lies scattered over the library costs a miss a
// variable, and one of the TLB's beside it.
#pragma once

/// A variable that is read for every event and hardly ever written. Not for zeros by the kilobyte:
/// they would be in the file.
#define HOT_DATA __attribute__((section("probe_hot")))

/// A function that every event passes through; the linker puts them together.
#define HOT __attribute__((hot))
