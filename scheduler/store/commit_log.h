// What has been decided about a training, in order: who coordinates it, and which checkpoints it
// has. A folder of records with numbers, each written beside, synced, and then published under its
// number by an atomic create, so that of two coordinators one gets it.
//
//   FENCE     "from here on generation G is in force": written before anything is done in it
//   MANIFEST  "the checkpoint of step S is whole": which shards it has, with their checksums
//
// Whoever appends a record must know all records before it: where another took the number, the
// appender reads on, and when that was the fence of a higher generation, is superseded. So a
// coordinator that comes back from the dead can neither overwrite its successor's records nor go on
// in a generation that is over; no clock and no lock is needed. A record that is found may not yet
// be durable: opening the log syncs what it found, and then builds on it.
//
// Records are text (commit_record.h), the last line of which is a checksum of all before. One that
// is damaged may have been the fence of a generation: as long as no record behind it can be read,
// the generation counts as one higher for it.
//
// Lifetime: in the arena it was opened with.
// Threads:  one.
#ifndef PEN_SCHEDULER_STORE_COMMIT_LOG_H
#define PEN_SCHEDULER_STORE_COMMIT_LOG_H

#include "base/limits.h"
#include "scheduler/store/commit.h"
#include "scheduler/store/disk.h"

typedef struct pen_commit_log pen_commit_log;

// Opens the log in `folder`, which is made if it is not there, and reads all records. Those that
// are damaged are passed over with a warning.
//   CORRUPT  there are too many; the records are of several jobs
//   IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_commit_log_open(pen_disk *disk, const char *folder, pen_arena *arena,
                                             pen_commit_log **out_log);

// The generation in force; 0: there was none yet. The job of the records; "" then.
uint64_t pen_commit_log_generation(const pen_commit_log *log);
const char *pen_commit_log_job(const pen_commit_log *log);

// The generation with which the training that began last did; 0: none did.
uint64_t pen_commit_log_begun(const pen_commit_log *log);

// Manifests that can be read, of the training that began last, newest first; NULL: no more. Valid
// until the log is appended to or pruned.
const pen_commit_record *pen_commit_log_manifest(const pen_commit_log *log, uint32_t index);

// Records that are there and cannot be read.
uint32_t pen_commit_log_damaged_count(const pen_commit_log *log);

// The name of record `number` in the folder: "commit.000000000012". Returns `out_name`.
#define PEN_COMMIT_NAME_BYTES 32
const char *pen_commit_log_name(uint64_t number, char out_name[PEN_COMMIT_NAME_BYTES]);

// Appends a record of `record->generation`; the number is given to it. Returns when it is durable.
//   CANCELLED  superseded: a fence of a higher generation is there, or of this one that another
//              appended; or a manifest's generation was not fenced here. Nothing was appended
//   IO         it may be there or not; the next append finds out. OUT_OF_MEMORY
//   INVALID_INPUT  a text in it cannot be written; the job is not that of the log
PEN_NODISCARD pen_status pen_commit_log_append(pen_commit_log *log, pen_commit_record *record);

// Where shards lie.
typedef struct pen_shard_place {
    pen_disk *disk;
    const char *folder;
} pen_shard_place;

// Removes records and shards that are no longer needed: the newest `keep` (at least 2) manifests
// stay, and the fence in force. Before anything is removed the shards of the newest manifest are
// read back; unless all are whole, everything stays, with a warning. Only for the generation that
// was fenced here: CANCELLED else. IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_commit_log_prune(pen_commit_log *log, const pen_shard_place *shards,
                                              uint32_t keep);

#endif // PEN_SCHEDULER_STORE_COMMIT_LOG_H
