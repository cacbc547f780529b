// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

// What one thread asked of the allocator since it began, and the instructions that it ran in user space.
typedef struct {
    uint64_t allocations;
    uint64_t bytes;
    // The bytes of what it was given and has not given back. Memory that another thread gives back stays in the sum.
    int64_t held;
} ccount_memory;

// Both zero where a sanitizer owns the allocator.
ccount_memory ccount_thread_memory(void);

// A descriptor that counts the calling thread's instructions from now on; -1 where the machine or the system has no counter.
int ccount_open_instructions(void);
// What the descriptor has counted; 0 where it cannot be read.
uint64_t ccount_read_instructions(int descriptor);
