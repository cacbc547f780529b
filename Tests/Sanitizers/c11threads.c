// SPDX-License-Identifier: Apache-2.0
/*
 * Lets the thread sanitizer see librdkafka's threads and locks; preloaded by `make test-thread`, part of no product.
 *
 * Debian's librdkafka makes its threads and locks by C11's calls (thrd_create, mtx_lock, cnd_wait …). The sanitizer
 * intercepts only the POSIX ones: a thread that it never saw begin crashes in the first intercepted call, and a lock
 * that it never saw taken orders nothing, so that each use of librdkafka would look like a race. glibc's C11 types are
 * its POSIX types under other names, so each call is handed on to its POSIX twin, which the sanitizer does intercept.
 *
 *   clang -O1 -shared -fPIC -o c11threads.so c11threads.c && LD_PRELOAD=$PWD/c11threads.so <test binary>
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "mtx_t");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "cnd_t");

static int result(int error) {
    switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case ETIMEDOUT: return thrd_timedout;
    case EBUSY: return thrd_busy;
    default: return thrd_error;
    }
}

struct start { thrd_start_t run; void *argument; };

static void *enter(void *raw) {
    struct start start = *(struct start *)raw;
    free(raw);
    return (void *)(intptr_t)start.run(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *argument) {
    struct start *start = malloc(sizeof *start);
    if (!start) return thrd_nomem;
    start->run = run;
    start->argument = argument;
    int error = pthread_create((pthread_t *)thread, NULL, enter, start);
    if (error) free(start);
    return result(error);
}

int thrd_join(thrd_t thread, int *value) {
    void *raw = NULL;
    int error = pthread_join((pthread_t)thread, &raw);
    if (value) *value = (int)(intptr_t)raw;
    return result(error);
}

int mtx_init(mtx_t *lock, int type) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int error = pthread_mutex_init((pthread_mutex_t *)lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result(error);
}

int mtx_lock(mtx_t *lock) { return result(pthread_mutex_lock((pthread_mutex_t *)lock)); }
int mtx_trylock(mtx_t *lock) { return result(pthread_mutex_trylock((pthread_mutex_t *)lock)); }
int mtx_unlock(mtx_t *lock) { return result(pthread_mutex_unlock((pthread_mutex_t *)lock)); }
void mtx_destroy(mtx_t *lock) { pthread_mutex_destroy((pthread_mutex_t *)lock); }

int cnd_init(cnd_t *condition) { return result(pthread_cond_init((pthread_cond_t *)condition, NULL)); }
int cnd_signal(cnd_t *condition) { return result(pthread_cond_signal((pthread_cond_t *)condition)); }
int cnd_broadcast(cnd_t *condition) { return result(pthread_cond_broadcast((pthread_cond_t *)condition)); }
void cnd_destroy(cnd_t *condition) { pthread_cond_destroy((pthread_cond_t *)condition); }

int cnd_wait(cnd_t *condition, mtx_t *lock) {
    return result(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)lock));
}

int cnd_timedwait(cnd_t *condition, mtx_t *lock, const struct timespec *until) {
    return result(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)lock, until));
}
