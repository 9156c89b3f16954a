#include "base/clock.h"

#include <time.h>

double pen_clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void pen_clock_pause(double seconds) {
    const time_t whole = (time_t)seconds;
    const struct timespec pause = {.tv_sec = whole,
                                   .tv_nsec = (long)((seconds - (double)whole) * 1e9)};
    (void)nanosleep(&pause, NULL);
}
