// For tests of what a sanitizer's own runtime does differently.
#pragma once

#include <gtest/gtest.h>

/// Skips the test where it runs under one, and says why.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NOT_UNDER_SANITIZERS(why) GTEST_SKIP() << (why)
#else
#define NOT_UNDER_SANITIZERS(why) static_cast<void>(why)
#endif

/// Where it is the thread sanitizer's runtime alone.
#if defined(__SANITIZE_THREAD__)
#define NOT_UNDER_THREAD_SANITIZER(why) GTEST_SKIP() << (why)
#else
#define NOT_UNDER_THREAD_SANITIZER(why) static_cast<void>(why)
#endif
