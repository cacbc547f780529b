// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "ccount.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static __thread ccount_memory counted;

#ifndef SANITIZED

// glibc's own functions under their other names: those of the program stand before them.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

static void *count(void *memory, size_t size) {
    counted.allocations++;
    counted.bytes += size;
    counted.held += (int64_t)malloc_usable_size(memory);
    return memory;
}

void *malloc(size_t size) { return count(__libc_malloc(size), size); }

void *calloc(size_t number, size_t size) { return count(__libc_calloc(number, size), number * size); }

void *realloc(void *old, size_t size) {
    counted.held -= (int64_t)malloc_usable_size(old);
    return count(__libc_realloc(old, size), size);
}

void free(void *memory) {
    counted.held -= (int64_t)malloc_usable_size(memory);
    __libc_free(memory);
}

void *aligned_alloc(size_t alignment, size_t size) { return count(__libc_memalign(alignment, size), size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *memory = count(__libc_memalign(alignment, size), size);
    if (!memory) { return ENOMEM; }
    *result = memory;
    return 0;
}

#endif

ccount_memory ccount_thread_memory(void) { return counted; }

int ccount_open_instructions(void) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t ccount_read_instructions(int descriptor) {
    uint64_t value = 0;
    if (read(descriptor, &value, sizeof value) != (ssize_t)sizeof value) { return 0; }
    return value;
}
