/*
 * A clock that is wrong: loaded before all other libraries (LD_PRELOAD), it moves the time of day by the seconds in
 * SEVENHOP_CLOCK_SHIFT.  What only counts (CLOCK_MONOTONIC) goes on as it is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    const char *text = getenv("SEVENHOP_CLOCK_SHIFT");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    int result;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    result = real(clock, out);
    if (!result && clock == CLOCK_REALTIME) out->tv_sec += shift();
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
