// The contract of this folder: what a transport does. The kinds are in transport_list.c.
//
// Moves bytes between processes: small messages, and frames (tensors or parts of them) from memory
// to memory. Knows no graph.
//
// Peers are numbers: 0 is the coordinator, workers count from 1. A link joins two peers; messages
// and frames on it arrive once and in order, or the link is down. Between two peers the lower
// number connects, the higher one listens.
//
// A link outlives connections that break (`resume_seconds`): it is down only when its peer says so,
// is another process, is not there any more (its address refuses connections), or could not be
// reached for that long.
//
// A transport never blocks its caller: what it calls back runs on its own thread
// and must return soon. Memory of a frame is lent from send_frame until `let_go`: until the peer
// has said that it has the frame, or the link is down. At the receiver it is written into the
// memory that `begin` names, each byte once. Both are a domain and an offset (memory_place.h).
// Sending is not limited here: credit is the protocol's (scheduler/protocol/run_table.h); but who
// sends 256 MiB of messages that are not acknowledged loses the link.
//
// Lifetime: create, listen, connect …, close (refuses new work, returns), stop (waits until nothing
//           is called back any more), destroy.
// Threads:  functions from any thread but within a callback only those that send.
#ifndef PEN_SCHEDULER_TRANSPORT_TRANSPORT_H
#define PEN_SCHEDULER_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/checksum.h"
#include "base/memory_place.h"
#include "base/status.h"
#include "graph/tensor_type.h"

// a frame moves in pieces of this size, each with a checksum (CRC32C) of its own
#ifndef PEN_TRANSPORT_CHUNK_BYTES // simulations have small ones
#define PEN_TRANSPORT_CHUNK_BYTES PEN_CHECKSUM_CHUNK_BYTES
#endif
#define PEN_TRANSPORT_MESSAGE_LIMIT ((uint64_t)1 << 20)
#define PEN_TRANSPORT_PEER_LIMIT 4096u // peers have numbers below it
#define PEN_TRANSPORT_ANY_PEER UINT32_MAX

typedef enum pen_frame_kind {
    PEN_FRAME_VALUE,  // of a channel: step is the round, microbatch its number in it
    PEN_FRAME_TENSOR, // bytes of a parameter or state: channel is its number, offset where
    PEN_FRAME_BLOB,   // bytes of an encoded description: channel is its number, offset where
} pen_frame_kind;

typedef struct pen_frame {
    pen_frame_kind kind;
    uint64_t generation;
    uint64_t incarnation; // of the sender's process
    uint64_t step;
    uint32_t form;
    uint32_t microbatch;
    uint32_t channel;
    uint16_t layout;
    pen_tensor_type type; // VALUE
    uint64_t sequence;    // VALUE: run_table.h; others: as the requester numbered it
    uint64_t offset;      // TENSOR, BLOB
    uint64_t bytes;       // payload
} pen_frame;

// Who is at the other end of a link that was opened to us, as it says itself.
typedef struct pen_introduction {
    const char *job; // text that both must have; NULL or "" takes any
    uint32_t peer;   // its number; PEN_TRANSPORT_ANY_PEER: it waits to be told
    uint64_t generation;
    uint64_t incarnation;
    uint32_t level;          // of the kernels that it wants (base/system/kernel_level.h); 0: any
    const char *certificate; // names in its certificate, which was verified, separated by spaces;
                             // NULL without TLS
    bool shares_memory;      // of who speaks: frames to and from peers of its host may go through
                             // shared memory, if they want it too
    bool is_misled;          // told to `accept`: it looks for another peer or job than is here now
} pen_introduction;

// Called on the transport's own threads: what is about frames (begin, end, let_go) may run beside
// the rest, but nothing after `down`, save let_go. `context` comes first.
typedef struct pen_transport_events {
    void *context;
    // Whether to take a link that someone opened to us; an error is told to them. They try again
    // when its code is UNAVAILABLE. A link to the same peer that is still there goes down first,
    // then comes `up`, or `down` instead. One that is misled is not taken, and neither follows: the
    // question is only whether it may try again.
    pen_status (*accept)(void *context, const pen_introduction *introduction, const char *address);
    void (*up)(void *context, uint32_t peer);
    void (*down)(void *context, uint32_t peer, pen_status take_reason); // once after each up, or
                                                                        // instead of it
    // An attempt to open a link failed, and why, in few words; others follow, or `down`. NULL:
    // nobody wants to know.
    void (*attempt_failed)(void *context, uint32_t peer, const char *why);
    void (*message)(void *context, uint32_t peer, const void *bytes, uint64_t count);
    // Where the payload of a frame is to be written: `frame->bytes` bytes, left alone until `end`.
    // An error refuses the frame, is told to the sender (which sees the link go down with it), and
    // takes the link down; so does a place that the transport cannot reach.
    pen_status (*begin)(void *context, uint32_t peer, const pen_frame *frame,
                        pen_memory_place *out_place);
    // The payload is whole. checksums [chunks] as the sender made them. `is_compared`: the
    // transport has summed up what it wrote, and found them right; else whoever computes compares
    // (base/checksum.h).
    void (*end)(void *context, uint32_t peer, const pen_frame *frame, const uint32_t *checksums,
                bool is_compared);
    // The checksums of a frame that sum_frame has sent are made, and the peer has not seen it yet.
    // Also by the thread that sends, within sum_frame. NULL: nobody wants to know.
    void (*summed)(void *context, uint32_t peer, uint64_t token);
    // The peer has a frame that was sent, or the link is down; its memory is no longer read.
    // `token` is that of send_frame.
    void (*let_go)(void *context, uint32_t peer, uint64_t token);
} pen_transport_events;

typedef struct pen_transport_names {
    const char *const *names; // [count]; none: any
    size_t count;
} pen_transport_names;

// Files are read again when they change: links that are made then are checked by the new ones.
typedef struct pen_transport_tls { // paths of PEM files; all NULL: none
    const char *ca;
    const char *cert;
    const char *key;
    const char *crl; // lists of certificates that were taken back; NULL: none are
    // Who may be peer 0, and any other: an alternative name in its certificate, which is verified
    // (a host, an address, a URI); never the common one. Lent for as long as the transport lives.
    pen_transport_names coordinators, workers;
} pen_transport_tls;

typedef struct pen_transport_options {
    pen_introduction self;
    pen_transport_tls tls;
    bool tells_links; // each link that is taken is a line of the log, as those that are refused are
    struct pen_rotating_log *audit; // lines about those who call (grpc_audit.h); NULL: none
    bool is_insecure;               // addresses that are not loopback are allowed without TLS
    // A file that who calls from this host may have in common with who is called, in place of being
    // of one user; NULL: none. Read when the transport is made
    const char *token_file;
    // How long a link stays up without a connection: one that broke is made again, and what had
    // not come is sent again, which nobody sees but the counters. 0: a link breaks with its
    // connection. Of two ends, both must want it.
    double resume_seconds;
    double ring_spin_seconds; // how long shared memory is looked at, at least, before its thread
                              // sleeps
    struct pen_simulated_network *network; // of a transport of tests, in virtual time; else NULL
} pen_transport_options;

typedef struct pen_transport_counters {
    uint64_t bytes_sent; // payloads
    uint64_t bytes_received;
    uint64_t frames_sent;
    uint64_t frames_received;
    uint64_t bytes_copied;  // payload bytes copied by us, both ways
    uint64_t refusals;      // links and connections that were not taken
    uint64_t resumes;       // connections of links that were made again
    uint64_t retransmitted; // messages and chunks of frames that were sent again
} pen_transport_counters;

typedef struct pen_transport {
    const struct pen_transport_kind *kind;
} pen_transport;

typedef struct pen_transport_kind {
    const char *name;
    const char *summary;

    PEN_NODISCARD pen_status (*create)(const pen_transport_options *options,
                                       const pen_transport_events *events,
                                       pen_transport **out_transport);
    // Changes how the transport introduces itself in links opened from now on (workers learn their
    // number when they are assigned). Links that are up stay so.
    PEN_NODISCARD pen_status (*introduce)(pen_transport *transport, const pen_introduction *self);
    // Takes links at `address` ("host:port", port 0: any). *out_port is the port taken.
    PEN_NODISCARD pen_status (*listen)(pen_transport *transport, const char *address,
                                       uint16_t *out_port);
    // Opens a link to `peer`; `up` or `down` says what came of it. Tries for `deadline_seconds`
    // from now, then it is UNAVAILABLE; what the other end refuses is not tried again.
    // INVALID_INPUT: there is a link to that peer, or one being opened.
    PEN_NODISCARD pen_status (*connect)(pen_transport *transport, uint32_t peer,
                                        const char *address, double deadline_seconds);
    // Copies the message (at most PEN_TRANSPORT_MESSAGE_LIMIT). Overtakes frames that wait.
    // UNAVAILABLE: no link.
    PEN_NODISCARD pen_status (*send_message)(pen_transport *transport, uint32_t peer,
                                             const void *bytes, uint64_t count);
    // Lends payload and checksums [chunks] until let_go(token), which comes exactly once, also when
    // the link goes down. UNAVAILABLE: no link. UNSUPPORTED: the payload lies in a domain that the
    // transport does not reach; all kinds reach the host's, and no other so far.
    PEN_NODISCARD pen_status (*send_frame)(pen_transport *transport, uint32_t peer,
                                           const pen_frame *frame, pen_memory_place payload,
                                           const uint32_t *checksums, uint64_t token);
    // As send_frame, but the transport makes the checksums: while it copies the payload, or before
    // it returns where it does not copy. `summed` says that they are there.
    PEN_NODISCARD pen_status (*sum_frame)(pen_transport *transport, uint32_t peer,
                                          const pen_frame *frame, pen_memory_place payload,
                                          uint32_t *checksums, uint64_t token);
    // Takes the link to a peer down.
    void (*disconnect)(pen_transport *transport, uint32_t peer);
    pen_transport_counters (*counters)(const pen_transport *transport);
    void (*close)(pen_transport *transport);
    void (*stop)(pen_transport *transport);
    void (*destroy)(pen_transport *transport); // accepts NULL
} pen_transport_kind;

static inline uint32_t pen_frame_chunk_count(uint64_t bytes) {
    return (uint32_t)((bytes + PEN_TRANSPORT_CHUNK_BYTES - 1) / PEN_TRANSPORT_CHUNK_BYTES);
}

extern const pen_transport_kind *const pen_transport_kinds[]; // ended by NULL

// NOT_FOUND lists the kinds there are: "grpc", "local".
PEN_NODISCARD pen_status pen_transport_kind_find(const char *name,
                                                 const pen_transport_kind **out_kind);

#endif // PEN_SCHEDULER_TRANSPORT_TRANSPORT_H
