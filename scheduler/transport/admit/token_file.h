// Proofs that a caller has the same token file as the process that it calls.
//
// The file's content is never sent, since another user may listen in place of the process that is
// meant. Sent is a proof (HMAC-SHA256) for one port, one moment, and one number that is drawn; who
// is called answers with another one, so that the caller knows, too, whom it has reached.
//
// Threads: any, each with proofs of its own.
#ifndef PEN_SCHEDULER_TRANSPORT_ADMIT_TOKEN_FILE_H
#define PEN_SCHEDULER_TRANSPORT_ADMIT_TOKEN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/system/machine.h"

#define PEN_TOKEN_FILE_LEAST 16u    // bytes, without blanks at the end
#define PEN_TOKEN_FILE_MOST 4096u   // bytes
#define PEN_TOKEN_FILE_SECONDS 60.0 // that a proof is good for, and that it may be early
#define PEN_TOKEN_PROOF_BYTES 128   // of a proof as text, with the 0 behind it
#define PEN_TOKEN_ANSWER_BYTES 65   // likewise, of the answer to it
#define PEN_TOKEN_SEEN_LIMIT 1024u  // proofs that are remembered

typedef struct pen_token_file {
    bool is_given;
    uint8_t key[32]; // a digest of the content
    char machine[PEN_MACHINE_BOOT_BYTES];
} pen_token_file;

// Reads it. NULL: none is given. NOT_FOUND, IO; INVALID_INPUT: it is too short or too long, or
// everybody on this machine may read or write it
PEN_NODISCARD pen_status pen_token_file_read(const char *path, pen_token_file *out_file);

// A proof for a call to `port` at the time `now` (of the day, in seconds), and what the called one
// has to answer. False: the system gives no random bytes
bool pen_token_file_prove(const pen_token_file *file, uint16_t port, double now,
                          char out_proof[PEN_TOKEN_PROOF_BYTES],
                          char out_answer[PEN_TOKEN_ANSWER_BYTES]);

// Numbers of proofs that were taken lately. Begins as zeros.
typedef struct pen_token_seen {
    struct {
        uint64_t number;
        double until;
    } list[PEN_TOKEN_SEEN_LIMIT];
} pen_token_seen;

// Judges a proof that was shown to who listens at `port`. INVALID_INPUT: it is none, of another
// file, for another port, of another time, or was shown before
PEN_NODISCARD pen_status pen_token_file_judge(const pen_token_file *file, pen_token_seen *seen,
                                              uint16_t port, double now, const char *proof,
                                              char out_answer[PEN_TOKEN_ANSWER_BYTES]);

// An answer in a form that only processes of one machine expect, so that it is of no use to who
// hands a proof on to another machine. Containers of one machine make the same. False: there is
// none
bool pen_token_file_answer_nearby(const pen_token_file *file,
                                  const char answer[PEN_TOKEN_ANSWER_BYTES],
                                  char out_nearby[PEN_TOKEN_ANSWER_BYTES]);

// Whether two texts of this length are the same; the time that takes says nothing.
bool pen_token_answer_is(const char expected[PEN_TOKEN_ANSWER_BYTES], const char *found);

#endif // PEN_SCHEDULER_TRANSPORT_ADMIT_TOKEN_FILE_H
