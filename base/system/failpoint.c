#include "base/system/failpoint.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define FAILPOINT_LIMIT 16
#define FAILPOINT_TEXT 1024

typedef enum failpoint_deed {
    FAILPOINT_KILL,
    FAILPOINT_STOP,
    FAILPOINT_EXIT,
    FAILPOINT_SLEEP,
    FAILPOINT_FAIL,
} failpoint_deed;

typedef struct failpoint {
    const char *name;
    unsigned long at; // the time it is done, from 1
    failpoint_deed deed;
    double seconds;
    atomic_ulong count;
} failpoint;

bool pen_failpoints_are_set;
static failpoint failpoint_list[FAILPOINT_LIMIT];
static unsigned failpoint_count;
static char failpoint_text[FAILPOINT_TEXT];

static bool failpoint_read_deed(const char *text, failpoint *point) {
    static const char *const names[] = {"kill", "stop", "exit", "sleep=", "fail"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t length = strlen(names[i]);
        const bool has_number = i == FAILPOINT_SLEEP;
        if (strncmp(text, names[i], length) != 0) continue;
        char *end = NULL;
        if (has_number) point->seconds = strtod(text + length, &end);
        if (has_number ? *end != '\0' || end == text + length : text[length] != '\0') return false;
        point->deed = (failpoint_deed)i;
        return true;
    }
    return false;
}

// "name:count:deed"
static bool failpoint_read(char *text, failpoint *point) {
    char *count = strchr(text, ':');
    if (count == NULL) return false;
    *count++ = '\0';
    char *end;
    point->name = text;
    point->at = strtoul(count, &end, 10);
    if (end == count || *end != ':' || point->at == 0) return false;
    return failpoint_read_deed(end + 1, point);
}

// Reads the environment before there are threads. A text that cannot be read ends the program: a
// test that names a wrong place would pass otherwise.
bool pen_failpoints_init(void) {
    const char *text = getenv("PENSTOCK_FAILPOINT");
    if (text == NULL || text[0] == '\0') return true;
    snprintf(failpoint_text, sizeof failpoint_text, "%s", text);
    char *rest = failpoint_text;
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
        const bool is_read = failpoint_count < FAILPOINT_LIMIT &&
                             failpoint_read(one, &failpoint_list[failpoint_count]);
        if (!is_read) {
            fprintf(stderr,
                    "PENSTOCK_FAILPOINT: found \"%s\", expected at most %d of NAME:COUNT:DEED, "
                    "where DEED is kill, stop, exit, sleep=SECONDS or fail\n",
                    text, FAILPOINT_LIMIT);
            return false;
        }
        failpoint_count += 1;
    }
    pen_failpoints_are_set = true;
    return true;
}

// Returns true where the call at this place is to fail.
static bool failpoint_do(const failpoint *point) {
    fprintf(stderr, "failpoint %s\n", point->name);
    switch (point->deed) {
    case FAILPOINT_KILL:
        raise(SIGKILL);
        break;
    case FAILPOINT_STOP:
        raise(SIGSTOP);
        break;
    case FAILPOINT_EXIT:
        _exit(1);
    case FAILPOINT_SLEEP:
        pen_clock_pause(point->seconds);
        break;
    case FAILPOINT_FAIL:
        return true;
    }
    return false;
}

bool pen_failpoint_hit(const char *name) {
    bool fails = false;
    for (unsigned i = 0; i < failpoint_count; i++) {
        failpoint *point = &failpoint_list[i];
        if (strcmp(point->name, name) != 0) continue;
        if (atomic_fetch_add(&point->count, 1) + 1 != point->at) continue;
        fails = failpoint_do(point) || fails;
    }
    return fails;
}
