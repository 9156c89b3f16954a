// The replicas of a plan file.
#ifndef PEN_PARTITION_PLAN_PLAN_FILE_REPLICAS_H
#define PEN_PARTITION_PLAN_PLAN_FILE_REPLICAS_H

#include "base/name_map.h"
#include "base/text.h"
#include "partition/plan/plan_table.h"

// Finds devices of a plan that is being read. Borrowed.
typedef struct pen_plan_file_finder {
    const pen_plan *plan;
    const pen_name_map *devices; // by name
    const pen_option_source *source;
    pen_arena *arena;
} pen_plan_file_finder;

// INVALID_INPUT with the position of `*name`: near names are listed. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_file_device(const pen_plan_file_finder *finder,
                                              const char *const *name, uint32_t *out_device);

// Gives a plan, whose devices and stages are read, its replicas and owners, and the stages their
// microbatches. A stage is of the replica that its device is in.
//   INVALID_INPUT  with position, names the replica or the owner
//   OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_plan_file_replicas(const pen_plan_file_finder *finder,
                                                const plan_file *file, pen_plan *plan);

// Adds the lists of replicas and owners; nothing where there are none.
void pen_plan_file_write_replicas(const pen_plan *plan, pen_text *text);

#endif // PEN_PARTITION_PLAN_PLAN_FILE_REPLICAS_H
