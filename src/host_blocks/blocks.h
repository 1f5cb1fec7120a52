// What this library exports as malloc, by an address that nobody replaces.
#pragma once

#include <stddef.h>

extern "C" __attribute__((visibility("hidden"))) void* gpumemprof_host_malloc(size_t size);
