// The data and code that every event uses, placed together. Between two events of a real step the
// tensor operations evict the probe from the caches, so scattered variables would cost a cache and
// TLB miss each.
#pragma once

/// A variable that is read for every event and rarely written, a word or a few: all of them are in
/// three cache lines.
#define HOT_DATA __attribute__((section("probe_hot")))

/// For an object with whole cache lines, which among single words would leave gaps.
#define HOT_LINES alignas(64) __attribute__((section("probe_hot_lines")))

/// A function that every event runs; the linker places them together.
#define HOT __attribute__((hot))
