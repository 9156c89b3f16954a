// What stands at the two ends of a link: what the devices there compute for what goes over it, and
// which lines of which hosts it shares with others.
#ifndef PEN_PARTITION_COSTS_LINK_ENDS_H
#define PEN_PARTITION_COSTS_LINK_ENDS_H

#include <stdint.h>

// A tensor goes in messages of so many bytes; one back grants its place anew, and one acknowledges.
#define PEN_MESSAGE_BYTES (1u << 20)
#define PEN_MESSAGES_BACK 2

// What the two ends of a link compute for what goes over it.
typedef struct pen_link_handling {
    double send;    // seconds of the source's device for each byte
    double receive; // of the target's
    double message; // of either, for each message, those that go back included
} pen_link_handling;

// What moving a result adds to the load of either end, besides its bytes: a latency keeps nobody
// from computing, messages do.
static inline double pen_link_handling_load(const pen_link_handling *link) {
    return link->message * (1 + PEN_MESSAGES_BACK);
}

// Where a device is. What goes from host to host takes the source's line out and the target's line
// in, each for bytes / its rate, whichever devices of the two hosts it is between. What goes
// between processes of one host takes the line out of the one and into the other while it is on
// its way. What stays in one process takes no line.
typedef struct pen_device_seat {
    uint32_t host;
    uint32_t process; // by one count for all hosts
    double out_rate;  // bytes a second of the host's line out, > 0; INFINITY: no limit
    double in_rate;   // and in
} pen_device_seat;

#endif // PEN_PARTITION_COSTS_LINK_ENDS_H
