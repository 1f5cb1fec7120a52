// What every event looks at and runs, side by side. Between two events of a real step the tensor
// operations push us out of the caches: what lies scattered over the library costs a miss a
// variable, and one of the TLB's beside it.
#pragma once

/// A variable that is read for every event and hardly ever written, a word or a few: all of them
/// lie in three cache lines.
#define HOT_DATA __attribute__((section("probe_hot")))

/// One that has cache lines of its own: between the words it would leave gaps.
#define HOT_LINES alignas(64) __attribute__((section("probe_hot_lines")))

/// A function that every event passes through; the linker puts them together.
#define HOT __attribute__((hot))
