// The contract of this folder's transport, defined in middleman.c, middleman_held.c and
// middleman_change.c.
//
// A transport between a process and its peers that does harm: it takes another transport's place,
// sends through it, and drops, repeats, delays, reorders or changes what is sent, as a plan says.
// Checksums are always right: what it changes it sums up anew. What it does is told afterwards.
//
// Lifetime: the plan is set before transports are created; one that follows holds for them, too.
// Threads:  as transports.
#ifndef PEN_TESTS_HOSTILE_MIDDLEMAN_H
#define PEN_TESTS_HOSTILE_MIDDLEMAN_H

#include <stdio.h>

#include "scheduler/protocol/message.h"
#include "scheduler/transport/transport.h"

typedef enum middleman_deed {
    MIDDLEMAN_DROP,
    MIDDLEMAN_REPEAT,  // once or a few times, at once or later
    MIDDLEMAN_DELAY,   // with all that follows on the same link and lane
    MIDDLEMAN_REORDER, // alone: what follows overtakes it
    MIDDLEMAN_CHANGE,
    MIDDLEMAN_INVENT,  // sends something that was sent before, on another link or lane of time
    MIDDLEMAN_MISLEAD, // to another peer
    MIDDLEMAN_CUT,     // the link
    MIDDLEMAN_PRETEND, // who introduces itself is told to be somebody else
} middleman_deed;
#define MIDDLEMAN_DEED_COUNT (MIDDLEMAN_PRETEND + 1)
#define MIDDLEMAN_ANY_KIND UINT32_MAX
#define MIDDLEMAN_FRAMES PEN_MESSAGE_KIND_COUNT       // as a kind of message
#define MIDDLEMAN_OTHERS (PEN_MESSAGE_KIND_COUNT + 1) // what makes and ends links; what is none

typedef struct middleman_plan {
    const pen_transport_kind *inner;
    uint64_t seed;
    uint32_t deeds;       // bits, by number
    uint32_t only_kind;   // of messages, or MIDDLEMAN_FRAMES, that anything is done to
    uint64_t spared;      // bits, of kinds that nothing is done to
    uint32_t one_in;      // of those
    uint64_t most;        // deeds of all transports together
    double delay_seconds; // at most
} middleman_plan;

extern const pen_transport_kind pen_transport_middleman;

// Forgets what was done, and begins with a new plan. Transports that live keep what they send
// through.
void middleman_begin(const middleman_plan *plan);
// How often something was done so far, in all and by deed.
uint64_t middleman_count(void);
uint64_t middleman_count_of(middleman_deed deed);
// The last things that were done, a line each.
void middleman_tell(FILE *file);

#endif // PEN_TESTS_HOSTILE_MIDDLEMAN_H
