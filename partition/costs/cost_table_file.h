// A cost table as a YAML file that people can read and edit.
//
//   version: 1
//   rates:
//     - {kind: cpu, threads: 2, flops: 95G, memory_bandwidth: 21GB/s}
//   operators:
//     - {op: matmul, shape: "float32[64,784] float32[784,512] -> float32[64,512]", kind: cpu,
//        threads: 2, seconds: 310us, workspace: 0, runs: 9}
//   links:
//     - {from: a, to: b, bandwidth: 9.4Gbit/s, latency: 41us}
//
// `workspace` and `runs` may be left out, and so may each list. A file has at most 64 MiB.
#ifndef PEN_PARTITION_COSTS_COST_TABLE_FILE_H
#define PEN_PARTITION_COSTS_COST_TABLE_FILE_H

#include "base/option/option.h"
#include "partition/costs/cost_table.h"

// The keys of the file, for its schema.
extern const pen_option_table pen_cost_table_keys;

// INVALID_INPUT with position; NOT_FOUND, IO, OUT_OF_MEMORY.
PEN_NODISCARD pen_status pen_cost_table_read(const char *path, pen_arena *arena,
                                             pen_cost_table **out_table);
PEN_NODISCARD pen_status pen_cost_table_parse(const char *path, const char *bytes, size_t length,
                                              pen_arena *arena, pen_cost_table **out_table);
// Written beside and renamed. Entries are sorted, figures have five digits, so equal tables give
// equal files. IO, NOT_FOUND (no such folder), DOES_NOT_FIT, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cost_table_write(const pen_cost_table *table, const char *path);
// The text of the file. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cost_table_format(const pen_cost_table *table, pen_arena *arena,
                                               const char **out_text);

#endif // PEN_PARTITION_COSTS_COST_TABLE_FILE_H
