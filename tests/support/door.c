#include "tests/support/door.h"

#include <unistd.h>

#include "scheduler/transport/ring/ring_door.h"
#include "tests/support/check.h"

static void door_find(uint16_t port, char out_path[PEN_RING_DOOR_LIMIT]) {
    pen_ring_meeting meeting;
    CHECK_OK(pen_ring_meeting_find(&meeting));
    CHECK(pen_ring_door_path(meeting.folder, "127.0.0.1", port, out_path), "a long path");
}

void door_lead(uint16_t from, uint16_t to) {
    char ours[PEN_RING_DOOR_LIMIT], theirs[PEN_RING_DOOR_LIMIT];
    door_find(from, ours);
    door_find(to, theirs);
    (void)unlink(ours);
    CHECK(symlink(theirs, ours) == 0, "symlink");
}

void door_close(uint16_t from) {
    char path[PEN_RING_DOOR_LIMIT];
    door_find(from, path);
    (void)unlink(path);
}
