// SPDX-License-Identifier: Apache-2.0
/* First, so that Glibc's own module and this one agree on fd_set. */
#include <sys/select.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <event2/util.h>

#include <sys/prctl.h>

/* prctl is variadic, which Swift cannot call; pthread_setname_np is hidden from its Glibc module. */
static inline int name_current_thread(const char *name) { return prctl(PR_SET_NAME, name); }

/* Neither core files nor other processes of this user may show this one's memory (PR_SET_DUMPABLE in prctl(2)). */
static inline void forbid_memory_access(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
static inline int memory_access_is_forbidden(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0; }

#include <gnu/libc-version.h>
static inline const char *system_library_version(void) { return gnu_get_libc_version(); }

/* resolv.h too. The limits are those of this thread's later questions for names. */
#include <resolv.h>
static inline void limit_name_queries(int seconds, int tries) {
  if (res_init() != 0) return;
  if (_res.retrans > seconds) _res.retrans = seconds;
  if (_res.retry > tries) _res.retry = tries;
}

/* malloc.h is in no module of Swift's either. */
#include <malloc.h>
static inline void set_malloc_thresholds(int trim, int map) {
  mallopt(M_TRIM_THRESHOLD, trim);
  mallopt(M_MMAP_THRESHOLD, map);
}
