// SPDX-License-Identifier: Apache-2.0
#include <hiredis/hiredis.h>
#include <hiredis/read.h>

/// Whether the reader has read the head of a bulk string, or waits for the rest of one.
static inline int carillonReaderAwaitsBulk(const redisReader *reader) {
    return reader->ridx >= 0 && reader->rstack[reader->ridx].type == REDIS_REPLY_STRING;
}
