// Where lanes are called: a socket in the folder that processes of a user meet in, and the door
// that leads there (ring_door.h). The folder may go while we run, as that of a user who logs out:
// then both are made again, there or in the next of the places.
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/transport/ring/ring_lanes_inside.h"

#define PLACE_LOOK_SECONDS 2.0 // from one look at the socket's name to the next

pen_status lanes_find_place(pen_ring_lanes *lanes) {
    pen_ring_meeting meeting;
    int listener;
    PEN_TRY(pen_ring_meeting_find(&meeting));
    PEN_TRY(pen_ring_listen(&meeting, lanes->name, &listener));
    pen_mutex_lock(&lanes->lock);
    lanes->meeting = meeting;
    const int before = lanes->listener;
    lanes->listener = listener;
    pen_mutex_unlock(&lanes->lock);
    if (before >= 0) close(before);
    return PEN_OK;
}

void lanes_leave_place(pen_ring_lanes *lanes) {
    for (uint32_t i = 0; i < lanes->door_count; i++)
        pen_ring_door_close(&lanes->meeting, lanes->name, lanes->doors[i], lanes->door_port);
    if (lanes->listener >= 0) pen_ring_unlisten(&lanes->meeting, lanes->name, lanes->listener);
}

uint64_t lanes_host(pen_ring_lanes *lanes) {
    pen_mutex_lock(&lanes->lock);
    const uint64_t host = lanes->meeting.host;
    pen_mutex_unlock(&lanes->lock);
    return host;
}

pen_status pen_ring_lanes_open_door(pen_ring_lanes *lanes, const char *host, uint16_t port) {
    PEN_ASSERT(lanes->door_count == 0 || lanes->door_port == port);
    if (strlen(host) >= sizeof lanes->doors[0]) {
        return pen_error(PEN_UNAVAILABLE, "the host's name '%.100s' is too long", host);
    }
    if (lanes->door_count == PEN_RING_LANES_DOORS) {
        return pen_error(PEN_UNAVAILABLE, "it listens at more than %u addresses",
                         PEN_RING_LANES_DOORS);
    }
    pen_mutex_lock(&lanes->lock);
    const pen_status status = pen_ring_door_open(&lanes->meeting, lanes->name, host, port);
    if (status == PEN_OK) {
        memcpy(lanes->doors[lanes->door_count++], host, strlen(host) + 1);
        lanes->door_port = port;
    }
    pen_mutex_unlock(&lanes->lock);
    return status;
}

// Those that are missing. One that leads to another process is that one's now.
static pen_status place_open_doors(pen_ring_lanes *lanes) {
    for (uint32_t i = 0; i < lanes->door_count; i++) {
        const char *host = lanes->doors[i];
        if (pen_ring_door_is_there(&lanes->meeting, host, lanes->door_port)) continue;
        PEN_TRY(pen_ring_door_open(&lanes->meeting, lanes->name, host, lanes->door_port));
    }
    return PEN_OK;
}

// Also a door may go alone: what cleans /tmp removes old links, and leaves sockets that are in use.
// Links that are up do not need the place any more. Where none can be made now, one may be later.
void lanes_look_at_place(pen_ring_lanes *lanes) {
    const double now = pen_clock_seconds();
    if (now < lanes->place_look_at) return;
    lanes->place_look_at = now + PLACE_LOOK_SECONDS;
    pen_status status = PEN_OK;
    if (!pen_ring_is_there(&lanes->meeting, lanes->name)) status = lanes_find_place(lanes);
    if (status == PEN_OK) {
        pen_mutex_lock(&lanes->lock);
        status = place_open_doors(lanes);
        pen_mutex_unlock(&lanes->lock);
    }
    pen_status_ignore(status, "it is tried again");
}
