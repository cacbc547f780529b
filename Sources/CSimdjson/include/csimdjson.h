// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

/// A parser with all buffers that one thread needs: a padded copy of the input, simdjson's index, tape and strings.
/// One thread at a time may use it.
typedef struct csimdjson_parser csimdjson_parser;

/// What a parse left behind, valid until the next parse with the same parser. The tape is simdjson's: 64-bit words,
/// type in the top 8 bits; each string starts with its length as 4 bytes.
typedef struct {
    const uint64_t *tape;
    const uint8_t *strings;
} csimdjson_tape;

typedef enum {
    CSIMDJSON_OK = 0,
    CSIMDJSON_EMPTY,
    CSIMDJSON_TOO_LONG,
    CSIMDJSON_TOO_DEEP,
    CSIMDJSON_NO_MEMORY,
    CSIMDJSON_NOT_UTF8,
    CSIMDJSON_BAD_STRING,
    CSIMDJSON_UNCLOSED_STRING,
    CSIMDJSON_BAD_NUMBER,
    CSIMDJSON_BAD_STRUCTURE,
} csimdjson_status;

#ifdef __cplusplus
extern "C" {
#endif

/// NULL when there is no memory. `max_depth`: how many objects and arrays may be open at once.
csimdjson_parser *csimdjson_create(size_t max_bytes, size_t max_depth);
void csimdjson_destroy(csimdjson_parser *parser);

/// Reads one whole document. Sizes and depth are checked before and while reading; nothing recurses.
csimdjson_status csimdjson_parse(csimdjson_parser *parser, const void *bytes, size_t length, csimdjson_tape *result);

/// Where in the input the value at a tape index of the last document begins; worked out for all values at the first
/// call after a parse, so that documents nobody asks about cost nothing.
size_t csimdjson_offset(csimdjson_parser *parser, size_t tape_index);

/// Of simdjson's headers, such as `3.0.1`.
const char *csimdjson_header_version(void);

#ifdef __cplusplus
}
#endif
