// A record of the commit log as bytes:
//
//   penstock: commit 1
//   kind: manifest
//   number: 12
//   generation: 3
//   job: penstock-0123456789abcdef
//   …
//   shard: 1048712 g3-s120-w1.safetensors
//   holders:
//   checksums: 0a1b2c3d4e5f6071
//   checksum: 89abcdef
//
// Lines "key: value" in one order, each number and text in one way of writing, so that a record is
// written as it was read. The last line is the CRC32C of all bytes before it: no byte can be
// changed unseen.
//
// Threads: any.
#ifndef PEN_SCHEDULER_STORE_COMMIT_RECORD_H
#define PEN_SCHEDULER_STORE_COMMIT_RECORD_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/store/commit.h"

//   INVALID_INPUT  a text has a character that cannot be written, or it is longer than the limits
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_commit_record_encode(const pen_commit_record *record, pen_arena *arena,
                                                  const char **out_bytes, uint64_t *out_count);

//   CORRUPT        at which byte, and what is wrong there
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_commit_record_decode(const char *bytes, uint64_t count,
                                                  pen_arena *arena, pen_commit_record *out_record);

// What a record says of one shard, as bytes for a message, with a checksum likewise; and back.
//   decode: CORRUPT says what is wrong
PEN_NODISCARD pen_status pen_shard_summary_encode(const pen_shard_summary *summary,
                                                  pen_arena *arena, const char **out_bytes,
                                                  uint64_t *out_count);
PEN_NODISCARD pen_status pen_shard_summary_decode(const char *bytes, uint64_t count,
                                                  pen_arena *arena, pen_shard_summary *out_summary);

#endif // PEN_SCHEDULER_STORE_COMMIT_RECORD_H
