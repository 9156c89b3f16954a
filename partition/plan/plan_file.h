// Plans as text files: YAML that people can read, compare and edit. README.md of docs/ says how.
//
//   version: 1
//   job: "job.yaml"
//   model: {file: "resnet18.onnx", hash: "3f…"}
//   …
//   stages:
//     - {devices: ["a"], nodes: 12, in_flight: 2, …}
//   nodes:
//     - {name: "/conv1/Conv", stage: 0, seconds: 1.2ms, source: measured, bytes: 9408B, reason: …}
//
// To move a node, change its stage; figures need not be right then, nor be there: `penstock plan
// --from` works them out again. Whoever reads a plan checks it (pen_plan_check).
#ifndef PEN_PARTITION_PLAN_PLAN_FILE_H
#define PEN_PARTITION_PLAN_PLAN_FILE_H

#include "partition/plan/plan.h"

#define PEN_PLAN_BYTES_LIMIT ((size_t)128 << 20)
#define PEN_PLAN_NODES_LIMIT (1u << 22) // of YAML: a node of a plan is 13

// INVALID_INPUT with position; DOES_NOT_FIT, NOT_FOUND, IO, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_plan_read(const char *path, pen_arena *arena, pen_plan **out_plan);
// From memory, opening no file; `path` is its name in messages, and paths in it are resolved beside
// it. `is_edited`: figures may be out of date, so memory is not judged and sums need not be right.
PEN_NODISCARD pen_status pen_plan_parse(const char *path, const char *bytes, size_t length,
                                        bool is_edited, pen_arena *arena, pen_plan **out_plan);
// A file that is read in order to work out its figures anew.
PEN_NODISCARD pen_status pen_plan_read_edited(const char *path, pen_arena *arena,
                                              pen_plan **out_plan);

#endif // PEN_PARTITION_PLAN_PLAN_FILE_H
