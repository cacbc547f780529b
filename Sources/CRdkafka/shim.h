// SPDX-License-Identifier: Apache-2.0
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <sys/eventfd.h>

/* Swift's Glibc module does not show eventfd or its flags. */
static inline int carillon_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
