// What coordinator and workers tell each other, beside frames: protobuf bytes (ControlMessage in
// scheduler/transport/penstock.proto) and a plain struct.
//
//   HELLO       W→C  who I am and what I run
//   REFUSED     C→W  why I do not take you
//   ASSIGN      C→W  be worker N of this generation; pull your description (BLOB 0)
//   READY       W→C  loaded
//   START       C→W  all are loaded
//   ROUND       C→W  run a round
//   GO          C→W  its losses are finite: update
//   LOSS        W→C  of a microbatch
//   SEEN        W→C  a piece of a value that is seen, of a microbatch; all come before its LOSS
//   GRADIENT    W→C  of a microbatch, of a stage, is made
//   ROUND_DONE  W→C
//   CREDIT      reader → maker of a channel: all frames below are consumed
//   PULL        receiver → holder: send me these bytes of a tensor or blob, as a frame
//   OFFER       holder → receiver: pull these
//   ASK, PART   C→W, W→C  a trace or report, in parts
//   PING, PONG  clocks, and that a peer is there
//   TAKEN       W→C  a piece of a tensor came whole and is in its place
//   FAIL        either way: I cannot go on
//   BEAT        W→C  I am here; C→W likewise
//   SNAPSHOT    C→W  copy your tensors aside and write them to a shard of this step
//   SNAPPED     W→C  they are copied
//   SHARD       W→C  the shard is durable, or why not
//   COMMITTED   C→W  the checkpoint of this step is whole and durable
//   SURVEY      C→W  measure this (run_survey.h)
//   SURVEYED    W→C  the figures, or why there are none
//   AUDIT       C→W  keep what you compute of this stage and microbatch
//   RECOMPUTE   C→W  a part of a package: compute what is in it (recompute.h)
//   RECOMPUTED  W→C  that many bytes are here; or, when all are, the digest, or why there is none
//   STOP, STOPPED
//
// Threads: any.
#ifndef PEN_SCHEDULER_PROTOCOL_MESSAGE_H
#define PEN_SCHEDULER_PROTOCOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/record/record.h"
#include "base/status.h"

#define PEN_PROTOCOL_VERSION 1u

typedef enum pen_message_kind {
    PEN_MESSAGE_HELLO,
    PEN_MESSAGE_REFUSED,
    PEN_MESSAGE_ASSIGN,
    PEN_MESSAGE_READY,
    PEN_MESSAGE_START,
    PEN_MESSAGE_ROUND,
    PEN_MESSAGE_GO,
    PEN_MESSAGE_LOSS,
    PEN_MESSAGE_ROUND_DONE,
    PEN_MESSAGE_CREDIT,
    PEN_MESSAGE_PULL,
    PEN_MESSAGE_OFFER,
    PEN_MESSAGE_ASK,
    PEN_MESSAGE_PART,
    PEN_MESSAGE_PING,
    PEN_MESSAGE_PONG,
    PEN_MESSAGE_FAIL,
    PEN_MESSAGE_STOP,
    PEN_MESSAGE_STOPPED,
    PEN_MESSAGE_TAKEN,
    PEN_MESSAGE_BEAT,
    PEN_MESSAGE_SNAPSHOT,
    PEN_MESSAGE_SNAPPED,
    PEN_MESSAGE_SHARD,
    PEN_MESSAGE_COMMITTED,
    PEN_MESSAGE_SURVEY,
    PEN_MESSAGE_SURVEYED,
    PEN_MESSAGE_GRADIENT,
    PEN_MESSAGE_AUDIT,
    PEN_MESSAGE_RECOMPUTE,
    PEN_MESSAGE_RECOMPUTED,
    PEN_MESSAGE_SEEN,
} pen_message_kind;
#define PEN_MESSAGE_KIND_COUNT (PEN_MESSAGE_SEEN + 1)

#define PEN_MESSAGE_JOB_BYTES 64
#define PEN_MESSAGE_NAME_BYTES 128
#define PEN_MESSAGE_TEXT_BYTES 1024
#define PEN_MESSAGE_PART_LIMIT ((size_t)512 << 10) // bytes of a PART
#define PEN_MESSAGE_ROOM ((size_t)4096)            // any message without its `bytes` is smaller

// Fields that a kind does not have are zero. Text ends with 0.
typedef struct pen_message {
    // all kinds
    pen_message_kind kind;
    uint32_t protocol;
    uint64_t generation;
    uint64_t incarnation; // of the sender's process
    char job[PEN_MESSAGE_JOB_BYTES];

    uint32_t worker;                      // HELLO (0: any), ASSIGN, SNAPSHOT, SURVEY (sent to)
    uint64_t target_incarnation;          // ASSIGN: of whom it is meant for
    uint64_t plan_hash;                   // HELLO (0: none yet), ASSIGN
    uint32_t device_count;                // HELLO: that it can run, 0: any
    uint64_t memory_bytes;                // HELLO: that its process may use, 0: not known
    char build[PEN_MESSAGE_NAME_BYTES];   // HELLO
    char isa[PEN_MESSAGE_NAME_BYTES];     // HELLO: kernel level and libraries
    char address[PEN_MESSAGE_NAME_BYTES]; // HELLO: where it takes links
    uint64_t round;                       // ROUND, GO, LOSS, GRADIENT, ROUND_DONE, AUDIT, SEEN
    uint64_t order;                       // GO: of lanes (graph/arrivals.h), where that is free
    uint32_t form;                        // ROUND, LOSS, CREDIT
    uint32_t count;                       // ROUND: microbatches. SURVEY: threads. HELLO: cores that
                                          // its process may use, 0: not known
    bool updates;                         // ROUND
    bool continues;                       // ROUND: adds to the gradients of the round before
    uint64_t step;                        // ROUND: of the training, from 1. BEAT: the last one
                                          // done. SNAPSHOT, SNAPPED, SHARD, COMMITTED: steps done
    uint64_t update;                      // ROUND: of the optimizer, from 1
    uint64_t learning_rate;               // ROUND: bits of a double
    uint64_t unscale;                     // ROUND: likewise
    uint64_t first_microbatch;            // ROUND: of the step
    uint64_t epoch;                       // ROUND: from 0
    uint64_t first_example;               // ROUND: of the epoch's order
    uint64_t step_microbatches;           // ROUND: that the step has in all its rounds
    uint32_t microbatch;                  // LOSS, GRADIENT, AUDIT, SEEN
    uint32_t stage;                       // LOSS, GRADIENT, AUDIT
    uint32_t device;                      // LOSS, FAIL, SURVEY, AUDIT, RECOMPUTE (of the whole run)
    uint32_t node;                        // SURVEY: of the device's part
    uint64_t value;                       // LOSS: bits of a double; ROUND: likewise;
                                          // RECOMPUTED: the digest
    uint64_t correct_count;               // LOSS
    uint64_t target_count;                // LOSS
    uint64_t terms[PEN_TERMS_LIMIT];      // LOSS, SURVEYED: [term_count], bits of doubles
    uint32_t term_count;                  //
    uint32_t made;                        // LOSS: bits, of terms that the stage makes
    uint32_t channel;                     // CREDIT
    uint64_t sequence;                    // CREDIT, PULL and TAKEN (of the frame), PING, PONG,
                                          // SURVEY, SURVEYED; RECOMPUTE, RECOMPUTED: the question;
                                          // SNAPSHOT, SNAPPED, SHARD: the order to save
    uint32_t frame_kind;                  // PULL, OFFER: PEN_FRAME_TENSOR or PEN_FRAME_BLOB
    uint32_t number;                      // PULL, OFFER, ASK, PART, SURVEY, SEEN: which.
                                          // STOPPED: 1: some device computes.
                                          // READY: bits, of the folders that are seen
    uint64_t offset;                      // PULL, OFFER, ASK, PART, RECOMPUTE, SEEN: bytes;
                                          // RECOMPUTED: that are here
    uint64_t byte_count;                  // PULL, OFFER; ASSIGN: of the description; PART,
                                          // RECOMPUTE, SEEN: in all
    uint64_t clock;                       // PING: now at the sender, nanoseconds; PONG: the ping's;
                                          // ASSIGN: without a word of the coordinator, after which
                                          // to leave (0: never); BEAT: that the longest task runs;
                                          // SURVEY: for how long to repeat it
    uint64_t clock_here;                  // PONG: now
    uint64_t mark;                        // ASSIGN, SNAPSHOT: that is in the folders named
    bool is_local;                        // SNAPSHOT: the folder is the worker's own, to be made
    uint32_t state;                       // BEAT: a pen_member_state
    uint64_t step_nanoseconds;            // BEAT: that its last step took
    uint32_t code;                        // FAIL, SHARD (0: durable), SURVEYED (0: measured),
                                          // RECOMPUTED: a pen_status_code; REFUSED: a reason
    char text[PEN_MESSAGE_TEXT_BYTES];    // FAIL, REFUSED, SHARD, SURVEYED, RECOMPUTED: why;
                                          // STOPPED: what devices waited for; HELLO: the folder
                                          // beneath which it writes; SNAPSHOT: the name beneath it,
                                          // or the coordinator's path; ASSIGN: its paths of folders
                                          // that it saves to, with a line's end between
    const void *bytes; // PART, RECOMPUTE, SEEN, ROUND_DONE (figures), SHARD (encoded summary),
                       // READY (what devices lack, as text): [bytes_length], in what was decoded
    size_t bytes_length;
} pen_message;

// Its fields: what a kind has on the wire, and with which numbers.
extern const pen_record pen_message_record;

// "hello", "round_done".
const char *pen_message_kind_name(pen_message_kind kind);

// Writes at most `size` bytes and returns how many the message has: PEN_MESSAGE_ROOM plus the
// message's bytes_length suffice always. Texts are cut where their arrays end. No heap.
size_t pen_message_encode(const pen_message *message, void *out_bytes, size_t size);

// *out_message borrows `bytes`. Unknown fields are passed over. Texts for people are clean
// (pen_text_clean).
//   CORRUPT       says what
//   UNSUPPORTED   another protocol version, which `out_message` has, and nothing but it
PEN_NODISCARD pen_status pen_message_decode(const void *bytes, size_t length,
                                            pen_message *out_message);

#endif // PEN_SCHEDULER_PROTOCOL_MESSAGE_H
