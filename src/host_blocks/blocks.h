// What this library exports as malloc and mmap, by addresses that nobody replaces.
#pragma once

#include <stddef.h>
#include <sys/types.h>

extern "C" __attribute__((visibility("hidden"))) void* gpumemprof_host_malloc(size_t size);
extern "C" __attribute__((visibility("hidden"))) void* gpumemprof_host_mmap(void* at, size_t size,
                                                                            int protection,
                                                                            int flags, int fd,
                                                                            off_t offset);
