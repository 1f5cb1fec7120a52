#include "probe/symbol_range.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace gpumemprof::probe {
namespace {

/// What the linker itself says, by address.
ObjectRange by_the_linker(const void* function) {
  Dl_info info;
  const Elf64_Sym* symbol = nullptr;
  if (!dladdr1(function, &info, reinterpret_cast<void**>(const_cast<Elf64_Sym**>(&symbol)),
               RTLD_DL_SYMENT) ||
      !symbol) {
    return {};
  }
  const auto begin = reinterpret_cast<uintptr_t>(info.dli_saddr);
  return {begin, begin + symbol->st_size};
}

TEST(SymbolRange, IsTheOneThatTheLinkerTellsOfTheSameFunction) {
  const void* in_libstdcxx = dlsym(RTLD_DEFAULT, "_ZNSt6locale7classicEv");
  ASSERT_NE(in_libstdcxx, nullptr);
  void* libstdcxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(libstdcxx, nullptr);
  for (const char* name : {"_ZNSt6locale7classicEv",
                           "_ZNSt9basic_iosIcSt11char_traitsIcEE5clearESt"
                           "12_Ios_Iostate",
                           "_ZNSi4peekEv", "__cxa_throw", "_ZSt9terminatev"}) {
    const void* function = dlsym(libstdcxx, name);  // a sanitizer has a __cxa_throw of its own
    ASSERT_NE(function, nullptr) << name;
    const ObjectRange expected = by_the_linker(function),
                      found = function_range(in_libstdcxx, name);
    EXPECT_EQ(found.begin, reinterpret_cast<uintptr_t>(function)) << name;
    EXPECT_EQ(found.begin, expected.begin) << name;
    EXPECT_EQ(found.end, expected.end) << name;
    EXPECT_GT(found.end, found.begin) << name;
  }
}

TEST(SymbolRange, IsEmptyWhereTheObjectDoesNotDefineTheFunction) {
  const void* in_libstdcxx = dlsym(RTLD_DEFAULT, "_ZNSt6locale7classicEv");
  EXPECT_EQ(function_range(in_libstdcxx, "getpid").end, 0u);  // it calls that one
  EXPECT_EQ(function_range(in_libstdcxx, "no_such_function").end, 0u);
  EXPECT_EQ(function_range(in_libstdcxx, "_ZSt4cout").end, 0u);  // no function
  EXPECT_EQ(function_range(in_libstdcxx, "").end, 0u);
  int on_the_stack = 0;
  EXPECT_EQ(function_range(&on_the_stack, "getpid").end, 0u);
}

}  // namespace
}  // namespace gpumemprof::probe
