// Preloaded into a process, it makes the wall clock jump: by as many seconds as the file that
// FALSE_CLOCK names says, at any time. The monotonic clock stays true.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *out_time);
int gettimeofday(struct timeval *restrict out_time, void *restrict zone);
time_t time(time_t *out_time);

static long long clock_jump(void) {
    char text[32] = "";
    const char *path = getenv("FALSE_CLOCK");
    const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    const ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    return count > 0 ? strtoll(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *out_time) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, out_time);
    const int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && is_wall) out_time->tv_sec += clock_jump();
    return result;
}

int gettimeofday(struct timeval *restrict out_time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    *out_time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return result;
}

time_t time(time_t *out_time) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out_time != NULL) *out_time = now.tv_sec;
    return now.tv_sec;
}
