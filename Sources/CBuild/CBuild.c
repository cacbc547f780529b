// SPDX-License-Identifier: Apache-2.0
#include "CBuild.h"

// Package.swift defines these from the environment. They are in C because the build cannot pass a text to a Swift module, and in a
// module of their own so that another commit compiles nothing else.
#ifndef CARILLON_COMMIT
#define CARILLON_COMMIT ""
#endif
#ifndef CARILLON_DATE
#define CARILLON_DATE ""
#endif

const char *cbuild_commit(void) { return CARILLON_COMMIT; }

const char *cbuild_date(void) { return CARILLON_DATE; }

const char *cbuild_kind(void) {
#if defined(CARILLON_TRAINED)
    return "trained";
#elif defined(DEBUG)
    return "debug";
#else
    return "release";
#endif
}
