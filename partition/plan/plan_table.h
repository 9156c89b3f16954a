// The keys of a plan file, and what they are read into before it is a plan.
#ifndef PEN_PARTITION_PLAN_PLAN_TABLE_H
#define PEN_PARTITION_PLAN_PLAN_TABLE_H

#include "base/option/option.h"
#include "partition/plan/plan.h"
#include "partition/problem/problem.h"

// Figures of a plan, which its reader may leave out, and indices, which it may not.
#define FILE_BYTES(type, member, says)                                                             \
    PEN_OPTION(BYTES, type, member, says, .maximum = PEN_OPTION_TO(FILE_BYTES_LIMIT),              \
               .default_text = "0B")
#define FILE_SECONDS(type, member, says)                                                           \
    PEN_OPTION(SECONDS, type, member, says, PEN_OPTION_RANGE(0, FILE_FIGURE_LIMIT),                \
               .default_text = "0s")
#define FILE_SECONDS_AS(name, type, member, says)                                                  \
    PEN_OPTION_AS(name, SECONDS, type, member, says, PEN_OPTION_RANGE(0, FILE_FIGURE_LIMIT),       \
                  .default_text = "0s")
#define FILE_COUNT(type, member, says)                                                             \
    PEN_OPTION(INTEGER, type, member, says, PEN_OPTION_RANGE(0, FILE_COUNT_LIMIT),                 \
               .default_text = "0")
#define FILE_INDEX(type, member, says)                                                             \
    PEN_OPTION(INTEGER, type, member, says, PEN_OPTION_RANGE(0, FILE_COUNT_LIMIT),                 \
               .is_required = true)

typedef struct file_model {
    const char *file;
    const char *hash;
} file_model;

typedef struct file_numerics {
    pen_kernel_level level;
    pen_precision precision;
    int64_t lanes;
} file_numerics;

typedef struct file_cluster {
    const char *hash;
} file_cluster;

typedef struct file_predicted {
    const char *value;
    const char *lower_bound;
    double step;
    double bubble;
    uint64_t process;
    int64_t measured;
    int64_t stated;
    int64_t assumed;
} file_predicted;

typedef struct file_device {
    const char *name;
    int64_t nodes;
    double load;
    uint64_t limit;
    bool has_limit;
    pen_device_memory memory;
    int64_t host;
    int64_t process;
    bool has_process; // and so a host
    double slowness;
    double line_out; // 0: no limit
    double line_in;
    const char *tasks;
} file_device;

typedef struct file_replica {
    pen_option_list lanes;   // int64_t: the first and the last, or one
    pen_option_list devices; // const char *
} file_replica;

typedef struct file_stage {
    pen_option_list devices; // const char *
    bool has_backward;
    bool has_update;
    bool recompute;
    int64_t nodes;
    int64_t in_flight;
    uint64_t parameters;
    double forward;
    double backward_input;
    double backward_weight;
    double update;
    uint64_t fixed;
    uint64_t workspace;
    uint64_t activations;
    uint64_t halved;
} file_stage;

typedef struct file_edge {
    int64_t from;
    int64_t to;
    uint64_t forward_bytes;
    double forward;
    pen_stage_handling forward_handling;
    bool has_gradient;
    uint64_t backward_bytes;
    double backward;
    pen_stage_handling backward_handling;
} file_edge;

typedef struct file_step_edge {
    int64_t from;
    int64_t to;
    int64_t phase;
    uint64_t bytes;
    double seconds;
    pen_stage_handling handling;
} file_step_edge;

typedef enum file_when {
    FILE_WHEN_FORWARD,
    FILE_WHEN_BACKWARD,
    FILE_WHEN_EACH_STEP,
} file_when;

typedef struct file_transfer {
    const char *value;
    int64_t from;
    int64_t to;
    file_when when;
    uint64_t bytes;
    double seconds;
} file_transfer;

typedef struct file_node {
    const char *name;
    int64_t stage;
    int64_t updates;
    bool has_updates;
    double seconds;
    pen_figure_source source;
    uint64_t bytes;
    const char *reason;
} file_node;

typedef struct plan_file {
    int64_t version;
    const char *job;
    pen_option_list settings; // const char *
    file_model model;
    file_cluster cluster;
    file_numerics numerics;
    const char *costs;
    const char *strategy;
    pen_objective objective;
    int64_t seed;
    const char *schedule;
    pen_exchange exchange;
    int64_t update_phases;
    int64_t microbatches;
    int64_t microbatch_size;
    file_predicted predicted;
    pen_option_list devices;    // file_device
    pen_option_list replicas;   // file_replica
    pen_option_list owners;     // const char *
    pen_option_list stages;     // file_stage
    pen_option_list edges;      // file_edge
    pen_option_list step_edges; // file_step_edge
    pen_option_list transfers;  // file_transfer
    pen_option_list nodes;      // file_node
} plan_file;

// "forward", "backward", "each step", NULL: as file_when.
extern const char *const pen_plan_transfer_names[];

#define FILE_PHASE_LIMIT 64
#define FILE_LANE_LIMIT 65535
#define FILE_COUNT_LIMIT 4294967294.0
#define FILE_FIGURE_LIMIT 1e12 // seconds
#define FILE_RATE_LIMIT 1e21   // bytes a second
#define FILE_BYTES_LIMIT 9e15  // whole numbers of bytes are exact

// The keys of the file; fills plan_file.
extern const pen_option_table pen_plan_table;

#endif // PEN_PARTITION_PLAN_PLAN_TABLE_H
