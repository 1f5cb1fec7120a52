#include "base/descriptor.h"

#include <sys/resource.h>

namespace gpumemprof {
namespace {

rlimit g_before = {};
bool g_is_raised = false;

}  // namespace

void raise_descriptor_limit() {
  rlimit limit;
  if (g_is_raised || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlimit raised = {limit.rlim_max, limit.rlim_max};
  if (limit.rlim_cur >= limit.rlim_max || setrlimit(RLIMIT_NOFILE, &raised) != 0) return;
  g_before = limit;
  g_is_raised = true;
}

void restore_descriptor_limit() {
  if (!g_is_raised) return;
  setrlimit(RLIMIT_NOFILE, &g_before);
  g_is_raised = false;
}

size_t descriptor_limit() {
  rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 256;
}

}  // namespace gpumemprof
