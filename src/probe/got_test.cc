// libstdc++ reads the clock through its table; here another function takes the clock's place.
#include "probe/got.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <locale>
#include <string>

namespace gpumemprof::probe {
namespace {

int standing_clock(clockid_t, timespec* out) {
  *out = {42, 0};
  return 0;
}

int64_t seconds_by_libstdcxx() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

/// The lines of /proc/self/maps that name libstdc++: address ranges and protections.
std::string maps_of_libstdcxx() {
  std::ifstream maps("/proc/self/maps");
  std::string lines;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("libstdc++") != std::string::npos) lines += line + "\n";
  }
  return lines;
}

TEST(Got, CallsOfOtherLibrariesGoToTheReplacementAndBackAgain) {
  auto* real = reinterpret_cast<void*>(&clock_gettime);
  Replacement ours{"clock_gettime", reinterpret_cast<void*>(&standing_clock), 0};
  Replaced result = replace_in_loaded_objects(&ours, 1);
  EXPECT_GE(ours.count, 1u);
  EXPECT_GE(result.changed, 1u);
  EXPECT_EQ(result.refused, 0u);
  EXPECT_EQ(seconds_by_libstdcxx(), 42);
  uint32_t found = ours.count;
  result = replace_in_loaded_objects(&ours, 1);
  EXPECT_EQ(ours.count, found);
  EXPECT_EQ(result.changed, 0u);  // all of them lead to us already
  Replacement back{"clock_gettime", real, 0};
  replace_in_loaded_objects(&back, 1);
  EXPECT_EQ(seconds_by_libstdcxx() / 1000000, time(nullptr) / 1000000);
}

TEST(Got, OnlyTheOneObjectIsChangedWhereOneIsAskedFor) {
  const void* in_libc = dlsym(RTLD_DEFAULT, "getpid");
  const void* in_libstdcxx = dlsym(RTLD_DEFAULT, "_ZNSt6locale7classicEv");
  Replacement ours{"clock_gettime", reinterpret_cast<void*>(&standing_clock), 0};
  Replacement back{"clock_gettime", reinterpret_cast<void*>(&clock_gettime), 0};
  replace_in_object_of(in_libc, &ours, 1);
  EXPECT_NE(seconds_by_libstdcxx(), 42);
  const Replaced result = replace_in_object_of(in_libstdcxx, &ours, 1);
  EXPECT_EQ(ours.count, 1u);
  EXPECT_EQ(result.changed, 1u);
  EXPECT_EQ(seconds_by_libstdcxx(), 42);
  replace_in_object_of(in_libstdcxx, &back, 1);
  EXPECT_NE(seconds_by_libstdcxx(), 42);
}

TEST(Got, EveryPageHasItsProtectionBack) {
  seconds_by_libstdcxx();
  std::string before = maps_of_libstdcxx();
  ASSERT_NE(before, "");
  Replacement ours{"clock_gettime", reinterpret_cast<void*>(&standing_clock), 0};
  Replacement back{"clock_gettime", reinterpret_cast<void*>(&clock_gettime), 0};
  replace_in_loaded_objects(&ours, 1);
  replace_in_loaded_objects(&back, 1);
  EXPECT_EQ(maps_of_libstdcxx(), before);
}

char other_letter(const void*, char) { return '!'; }

/// Through the table of virtual functions, which is libstdc++'s own: a program has copies of those
/// that it names itself.
char lower_letter() {
  return std::use_facet<std::ctype<char>>(std::locale::classic()).tolower('A');
}

TEST(Got, VirtualFunctionsGoToTheReplacementAndBackAgain) {
  constexpr char kName[] = "_ZNKSt5ctypeIcE10do_tolowerEc";
  ASSERT_EQ(lower_letter(), 'a');
  Replacement ours{kName, reinterpret_cast<void*>(&other_letter), 0};
  Replaced result = replace_in_loaded_objects(&ours, 1);
  EXPECT_GE(ours.count, 1u);
  EXPECT_EQ(result.refused, 0u);
  EXPECT_EQ(lower_letter(), '!');
  Replacement back{kName, dlsym(RTLD_DEFAULT, kName), 0};
  replace_in_loaded_objects(&back, 1);
  EXPECT_EQ(lower_letter(), 'a');
}

TEST(Got, ANameThatNobodyCallsChangesNothing) {
  Replacement ours{"gpumemprof_no_such_function", reinterpret_cast<void*>(&standing_clock), 0};
  Replaced result = replace_in_loaded_objects(&ours, 1);
  EXPECT_EQ(ours.count, 0u);
  EXPECT_EQ(result.changed, 0u);
}

TEST(Got, TheKernelStoresAWordWhateverTheProtectionAndRefusesWithoutASignal) {
  auto* page = static_cast<void**>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  int a = 0, b = 0;
  page[2] = page[4] = &a;
  EXPECT_TRUE(store_through_kernel(page + 3, &b));
  mprotect(page, 4096, PROT_READ);
  EXPECT_TRUE(store_through_kernel(page + 3, &a));
  EXPECT_EQ(page[3], &a);
  EXPECT_EQ(page[2], &a);
  EXPECT_EQ(page[4], &a);
  EXPECT_EQ(protection_of(reinterpret_cast<uintptr_t>(page)), PROT_READ);
  munmap(page, 4096);
  EXPECT_FALSE(store_through_kernel(page + 3, &b));
}

TEST(Got, ProtectionIsTheKernels) {
  char* pages =
      static_cast<char*>(mmap(nullptr, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int wanted[] = {PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC, PROT_NONE};
  for (int i = 0; i < 4; ++i) mprotect(pages + i * 4096, 4096, wanted[i]);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(protection_of(reinterpret_cast<uintptr_t>(pages + i * 4096 + 100)), wanted[i]);
  }
  munmap(pages, 4 * 4096);
  EXPECT_EQ(protection_of(0), -1);
}

}  // namespace
}  // namespace gpumemprof::probe
