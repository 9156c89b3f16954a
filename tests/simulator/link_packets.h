// The inside of links, for links.c (ends and their sessions) and link_packets.c (what goes over the
// network, and what becomes of it there). Nobody else includes this.
#ifndef PEN_TESTS_SIMULATOR_LINK_PACKETS_H
#define PEN_TESTS_SIMULATOR_LINK_PACKETS_H

#include "scheduler/transport/link_session.h"
#include "tests/simulator/links.h"

#define LINK_ITEM_ROOM 192u
#define LINK_PACKET_ROOM 448u

typedef struct link_item {
    pen_link_item base;
    struct link_item *next_spare;
    uint64_t token;
    const uint64_t *words; // of a frame
    link_frame frame;
    uint32_t room;
    uint8_t bytes[]; // of a message
} link_item;

typedef enum link_state {
    LINK_ENDED,
    LINK_CALLING,
    LINK_UP,
} link_state;

typedef struct link link_end;
struct link {
    link_end *next;
    process *owner;
    process *other; // NULL: not known yet
    uint32_t other_host;
    uint32_t peer;
    link_state state;
    bool is_caller;
    bool is_stream;
    bool is_broken; // what belongs to the stream `broken_epoch` gets nowhere
    uint64_t broken_epoch;
    uint64_t epoch;
    uint64_t last_due; // of what was sent over the stream
    uint64_t attempt;
    uint64_t backoff;
    uint64_t give_up_at;
    uint64_t timer_at;
    link_introduction self;
    pen_link_id id;
    pen_link_session session;
    link_frame receiving;
    uint64_t *memory;
    link_item *spares;
};

typedef enum link_packet_kind {
    LINK_PACKET_CALL,
    LINK_PACKET_TAKEN,
    LINK_PACKET_REFUSED,
    LINK_PACKET_UNKNOWN, // there is no such link here
    LINK_PACKET_RESUME,
    LINK_PACKET_RESUMED,
    LINK_PACKET_BYE,
    LINK_PACKET_DATA,
} link_packet_kind;

typedef struct link_packet {
    struct link_packet *next_spare;
    link_packet_kind kind;
    process *from;
    process *to; // NULL: whoever is on to_host
    uint32_t to_host;
    bool is_stream;
    pen_link_id id;
    uint64_t epoch;
    uint64_t value;
    link_introduction introduction;
    pen_link_ack received;
    uint32_t room;
    uint32_t count;
    uint8_t bytes[]; // DATA
} link_packet;

// A message, or a piece of a frame.
typedef struct link_content {
    const uint8_t *bytes;
    uint32_t count;
    uint32_t piece;
    uint64_t word;
    link_frame frame; // of piece 0
} link_content;

// ---- link_packets.c
void link_send_control(link_end *l, link_packet_kind kind, uint64_t value);
void link_answer_packet(process *p, const link_packet *packet, link_packet_kind kind,
                        uint64_t value);
void link_send_data(link_end *l, const link_item *item, const pen_link_head *head);

// ---- links.c
link_end *link_find(const process *p, uint32_t peer);
link_end *link_find_id(const process *p, pen_link_id id);
link_end *link_other_end(const link_end *l);
void link_pump(link_end *l);
void link_suspend(link_end *l);
void link_break_stream(link_end *l);
void link_on_call(process *p, const link_packet *packet);
void link_on_taken(process *p, const link_packet *packet);
void link_on_refused(process *p, const link_packet *packet);
void link_on_resume(link_end *l, const link_packet *packet);
void link_on_resumed(link_end *l, const link_packet *packet);
void link_on_data(link_end *l, const pen_link_head *head, const link_content *content);
void link_on_lost(link_end *l);

#endif // PEN_TESTS_SIMULATOR_LINK_PACKETS_H
