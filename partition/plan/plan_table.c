// The keys of a plan file.

#include "partition/plan/plan_table.h"

static const char *const file_source_names[] = {"assumed", "stated", "measured", NULL};

const char *const pen_plan_transfer_names[] = {"forward", "backward", "each step", NULL};

static const pen_option_field file_handling_fields[] = {
    FILE_SECONDS_AS("latency", pen_stage_handling, latency_seconds,
                    "besides, until they are there"),
    FILE_SECONDS_AS("send", pen_stage_handling, send_seconds, "that the source's device computes"),
    FILE_SECONDS_AS("receive", pen_stage_handling, receive_seconds,
                    "that the target's device computes"),
};
static const pen_option_table file_handling_table = {
    PEN_OPTION_FIELDS(pen_stage_handling, file_handling_fields)};

static const pen_option_field file_edge_fields[] = {
    FILE_INDEX(file_edge, from, "the lower stage"),
    FILE_INDEX(file_edge, to, "the higher stage"),
    FILE_BYTES(file_edge, forward_bytes, "of a microbatch"),
    FILE_SECONDS(file_edge, forward, "on their way"),
    PEN_OPTION(MAPPING, file_edge, forward_handling, "what moving them takes besides",
               .table = &file_handling_table),
    PEN_OPTION(BOOL, file_edge, has_gradient, "gradients flow back", .default_text = "false"),
    FILE_BYTES(file_edge, backward_bytes, "of a microbatch"),
    FILE_SECONDS(file_edge, backward, "on their way"),
    PEN_OPTION(MAPPING, file_edge, backward_handling, "what moving them takes besides",
               .table = &file_handling_table),
};
static const pen_option_table file_edge_table = {PEN_OPTION_FIELDS(file_edge, file_edge_fields)};
static const pen_option_field file_edge_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &file_edge_table};

static const pen_option_field file_step_edge_fields[] = {
    FILE_INDEX(file_step_edge, from, "stage"),
    FILE_INDEX(file_step_edge, to, "stage"),
    PEN_OPTION(INTEGER, file_step_edge, phase, "of the updates, that it leaves with",
               PEN_OPTION_RANGE(0, FILE_PHASE_LIMIT), .default_text = "0"),
    FILE_BYTES(file_step_edge, bytes, "of a step"),
    FILE_SECONDS(file_step_edge, seconds, "on their way"),
    PEN_OPTION(MAPPING, file_step_edge, handling, "what moving them takes besides",
               .table = &file_handling_table),
};
static const pen_option_table file_step_edge_table = {
    PEN_OPTION_FIELDS(file_step_edge, file_step_edge_fields)};
static const pen_option_field file_step_edge_item = {.kind = PEN_OPTION_MAPPING,
                                                     .table = &file_step_edge_table};

static const pen_option_field file_transfer_fields[] = {
    PEN_OPTION(TEXT, file_transfer, value, "the tensor's name", .is_required = true),
    FILE_INDEX(file_transfer, from, "stage"),
    FILE_INDEX(file_transfer, to, "stage"),
    PEN_OPTION(CHOICE, file_transfer, when, "in which pass", .choices = pen_plan_transfer_names,
               .default_text = "forward"),
    FILE_BYTES(file_transfer, bytes, "of a microbatch, or of a step"),
    FILE_SECONDS(file_transfer, seconds, "to move them"),
};
static const pen_option_table file_transfer_table = {
    PEN_OPTION_FIELDS(file_transfer, file_transfer_fields)};
static const pen_option_field file_transfer_item = {.kind = PEN_OPTION_MAPPING,
                                                    .table = &file_transfer_table};

static const pen_option_field file_model_fields[] = {
    PEN_OPTION(PATH, file_model, file, "the model's file", .is_required = true),
    PEN_OPTION(TEXT, file_model, hash, "of its nodes, operators and shapes", .is_required = true),
};
static const pen_option_table file_model_table = {PEN_OPTION_FIELDS(file_model, file_model_fields)};

static const pen_option_field file_cluster_fields[] = {
    PEN_OPTION(TEXT, file_cluster, hash, "of devices, links, and what is stated of them",
               .is_required = true),
};
static const pen_option_table file_cluster_table = {
    PEN_OPTION_FIELDS(file_cluster, file_cluster_fields)};

static const pen_option_field file_numerics_fields[] = {
    PEN_OPTION(CHOICE, file_numerics, level, "instructions of the kernels; auto: any",
               .choices = pen_kernel_level_names, .default_text = "auto"),
    PEN_OPTION(CHOICE, file_numerics, precision, "of operands of products",
               .choices = pen_precision_names, .default_text = "float32"),
    PEN_OPTION(INTEGER, file_numerics, lanes, "that the microbatches of a step form",
               PEN_OPTION_RANGE(1, FILE_COUNT_LIMIT), .default_text = "1"),
};
static const pen_option_table file_numerics_table = {
    PEN_OPTION_FIELDS(file_numerics, file_numerics_fields)};

static const pen_option_field file_predicted_fields[] = {
    PEN_OPTION(TEXT, file_predicted, value, "of the objective: a time; of traffic: bytes"),
    PEN_OPTION(TEXT, file_predicted, lower_bound, "no placement is below; none: not known"),
    FILE_SECONDS(file_predicted, step, "of a whole step"),
    PEN_OPTION(NUMBER, file_predicted, bubble, "share of the time that devices with stages idle",
               PEN_OPTION_RANGE(0, 1), .default_text = "0"),
    FILE_BYTES(file_predicted, process,
               "memory of a process besides that of its devices; 0: not known"),
    FILE_COUNT(file_predicted, measured, "nodes whose times are measured"),
    FILE_COUNT(file_predicted, stated, "nodes whose times follow from stated rates"),
    FILE_COUNT(file_predicted, assumed, "nodes whose times are assumed"),
};
static const pen_option_table file_predicted_table = {
    PEN_OPTION_FIELDS(file_predicted, file_predicted_fields)};

static const pen_option_field file_memory_fields[] = {
    FILE_BYTES(pen_device_memory, parameters, "with running statistics and constants"),
    FILE_BYTES(pen_device_memory, gradients, "sums over microbatches"),
    FILE_BYTES(pen_device_memory, optimizer_state, "momentum and the like"),
    FILE_BYTES(pen_device_memory, activations,
               "kept for the backward pass, of all microbatches in flight"),
    FILE_BYTES(pen_device_memory, receive_buffers,
               "for tensors from other devices and from the data"),
    FILE_BYTES(pen_device_memory, workspace, "what lives within one task"),
    FILE_BYTES(pen_device_memory, saved, "copied aside, for a checkpoint to be written of it"),
    FILE_BYTES(pen_device_memory, total, "all of the above"),
};
static const pen_option_table file_memory_table = {
    PEN_OPTION_FIELDS(pen_device_memory, file_memory_fields)};

static const pen_option_field file_device_fields[] = {
    PEN_OPTION(TEXT, file_device, name, "of the device", .is_required = true),
    FILE_COUNT(file_device, nodes, "that plans list"),
    FILE_SECONDS(file_device, load, "computing and transfers of a microbatch"),
    PEN_OPTION(BYTES, file_device, limit, "memory that the plan may use; none: any",
               .maximum = PEN_OPTION_TO(FILE_BYTES_LIMIT),
               .present_offset = offsetof(file_device, has_limit)),
    PEN_OPTION(MAPPING, file_device, memory, "at its worst moment", .table = &file_memory_table),
    PEN_OPTION(INTEGER, file_device, host, "by number: devices of one share its lines",
               PEN_OPTION_RANGE(0, PEN_CLUSTER_DEVICE_LIMIT), .default_text = "0"),
    PEN_OPTION(INTEGER, file_device, process, "likewise; none: each pair of devices has a line",
               PEN_OPTION_RANGE(0, PEN_CLUSTER_DEVICE_LIMIT),
               .present_offset = offsetof(file_device, has_process)),
    PEN_OPTION(NUMBER, file_device, slowness,
               "of its computing: times as long as costs say, as a run saw",
               PEN_OPTION_RANGE(0, FILE_FIGURE_LIMIT), .default_text = "0"),
    PEN_OPTION(BANDWIDTH, file_device, line_out, "of its host, to others; none: no limit",
               PEN_OPTION_RANGE(0, FILE_RATE_LIMIT)),
    PEN_OPTION(BANDWIDTH, file_device, line_in, "from others",
               PEN_OPTION_RANGE(0, FILE_RATE_LIMIT)),
    PEN_OPTION(TEXT, file_device, tasks,
               "in order: F forward, B backward, I and W its halves, each with stage.microbatch, U "
               "update with stage.phase; none: as the schedule orders them"),
};
static const pen_option_table file_device_table = {
    PEN_OPTION_FIELDS(file_device, file_device_fields)};
static const pen_option_field file_device_item = {.kind = PEN_OPTION_MAPPING,
                                                  .table = &file_device_table};

static const pen_option_field file_device_name = {.kind = PEN_OPTION_TEXT};
static const pen_option_field file_lane = {.kind = PEN_OPTION_INTEGER,
                                           PEN_OPTION_RANGE(0, FILE_LANE_LIMIT)};
static const pen_option_field file_replica_fields[] = {
    PEN_OPTION(LIST, file_replica, lanes, "of a step: the first and the last", .item = &file_lane,
               .is_required = true, .count_minimum = 1, .count_maximum = 2,
               .is_list_optional = true),
    PEN_OPTION(LIST, file_replica, devices, "that run it, of no other replica",
               .item = &file_device_name, .is_required = true, .count_minimum = 1,
               .count_maximum = PEN_CLUSTER_DEVICE_LIMIT, .is_list_optional = true),
};
static const pen_option_table file_replica_table = {
    PEN_OPTION_FIELDS(file_replica, file_replica_fields)};
static const pen_option_field file_replica_item = {.kind = PEN_OPTION_MAPPING,
                                                   .table = &file_replica_table};

static const pen_option_field file_stage_fields[] = {
    PEN_OPTION(LIST, file_stage, devices, "that run it: one", .item = &file_device_name,
               .is_required = true, .count_minimum = 1, .count_maximum = 1,
               .is_list_optional = true),
    FILE_COUNT(file_stage, nodes, "that plans list"),
    FILE_COUNT(file_stage, in_flight, "microbatches held at once, at most"),
    FILE_BYTES(file_stage, parameters, "that no lower stage of the device has"),
    PEN_OPTION(BOOL, file_stage, has_backward, "computes gradients", .default_text = "false"),
    PEN_OPTION(BOOL, file_stage, has_update, "has updates, once a step", .default_text = "false"),
    PEN_OPTION(BOOL, file_stage, recompute, "runs forward once more before backward",
               .default_text = "false"),
    FILE_SECONDS(file_stage, forward, "of a microbatch"),
    FILE_SECONDS(file_stage, backward_input, "of a microbatch"),
    FILE_SECONDS(file_stage, backward_weight, "of a microbatch"),
    FILE_SECONDS(file_stage, update, "once a step"),
    FILE_BYTES(file_stage, fixed, "held all the time"),
    FILE_BYTES(file_stage, workspace, "while it runs"),
    FILE_BYTES(file_stage, activations, "for each microbatch in flight"),
    FILE_BYTES(file_stage, halved, "for each microbatch between the halves of its backward pass"),
};
static const pen_option_table file_stage_table = {PEN_OPTION_FIELDS(file_stage, file_stage_fields)};
static const pen_option_field file_stage_item = {.kind = PEN_OPTION_MAPPING,
                                                 .table = &file_stage_table};

static const pen_option_field file_node_fields[] = {
    PEN_OPTION(TEXT, file_node, name, "of a node of the model", .is_required = true),
    FILE_INDEX(file_node, stage, "that runs it; counts from 0"),
    PEN_OPTION(INTEGER, file_node, updates,
               "with replicas: the stage that updates its parameters; none: its own",
               PEN_OPTION_RANGE(0, FILE_COUNT_LIMIT),
               .present_offset = offsetof(file_node, has_updates)),
    FILE_SECONDS(file_node, seconds, "with its backward pass, of a microbatch"),
    PEN_OPTION(CHOICE, file_node, source, "where the time comes from", .choices = file_source_names,
               .default_text = "assumed"),
    FILE_BYTES(file_node, bytes, "that it adds to its device"),
    PEN_OPTION(TEXT, file_node, reason, "why it is there"),
};
static const pen_option_table file_node_table = {PEN_OPTION_FIELDS(file_node, file_node_fields)};
static const pen_option_field file_node_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &file_node_table};

static const pen_option_field plan_file_fields[] = {
    PEN_OPTION(INTEGER, plan_file, version, "of this format", .is_required = true,
               PEN_OPTION_RANGE(1, 1)),
    PEN_OPTION(PATH, plan_file, job, "the job that is planned"),
    PEN_OPTION_AS("set", LIST, plan_file, settings,
                  "values in place of the job's: \"train.batch=64\"", .item = &file_device_name),
    PEN_OPTION(MAPPING, plan_file, model, "what is trained", .table = &file_model_table,
               .is_required = true),
    PEN_OPTION(MAPPING, plan_file, cluster, "where", .table = &file_cluster_table,
               .is_required = true),
    PEN_OPTION(MAPPING, plan_file, numerics, "how numbers are rounded",
               .table = &file_numerics_table),
    PEN_OPTION(PATH, plan_file, costs, "the cost table that was used"),
    PEN_OPTION(TEXT, plan_file, strategy, "that placed it", .default_text = "manual"),
    PEN_OPTION(CHOICE, plan_file, objective, "what was made small", .choices = pen_objective_names,
               .default_text = "step_time"),
    PEN_OPTION(INTEGER, plan_file, seed, "of the search", PEN_OPTION_RANGE(0, 9e18),
               .default_text = "0"),
    PEN_OPTION(TEXT, plan_file, schedule, "of the tasks", .is_required = true),
    PEN_OPTION(CHOICE, plan_file, exchange,
               "when updates run: last on their device, or among tasks",
               .choices = pen_exchange_names, .default_text = "after_backward"),
    PEN_OPTION(INTEGER, plan_file, update_phases, "in which stages exchange values once a step",
               PEN_OPTION_RANGE(1, FILE_PHASE_LIMIT), .default_text = "1"),
    PEN_OPTION(INTEGER, plan_file, microbatches, "of a step", .is_required = true,
               PEN_OPTION_RANGE(1, FILE_COUNT_LIMIT)),
    PEN_OPTION(INTEGER, plan_file, microbatch_size, "examples", .is_required = true,
               PEN_OPTION_RANGE(1, 9e18)),
    PEN_OPTION(MAPPING, plan_file, predicted, "what a step will take",
               .table = &file_predicted_table),
    PEN_OPTION(LIST, plan_file, devices, "of the cluster, in its order", .item = &file_device_item,
               .count_minimum = 1, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT, .is_required = true),
    PEN_OPTION(LIST, plan_file, replicas,
               "pipelines that share a step's lanes; none: one of all devices",
               .item = &file_replica_item, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT),
    PEN_OPTION(LIST, plan_file, owners,
               "devices of no replica that update; each has one of the last stages, of 0 nodes; "
               "none: replicas do",
               .item = &file_device_name, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
               .is_list_optional = true),
    PEN_OPTION(LIST, plan_file, stages, "in order: no edge leads to a lower one",
               .item = &file_stage_item, .count_minimum = 1, .is_required = true),
    PEN_OPTION(LIST, plan_file, edges, "between stages", .item = &file_edge_item),
    PEN_OPTION(LIST, plan_file, step_edges, "between the updates of stages, once a step",
               .item = &file_step_edge_item),
    PEN_OPTION(LIST, plan_file, transfers, "tensors that go from device to device",
               .item = &file_transfer_item),
    PEN_OPTION(LIST, plan_file, nodes, "of the model; what belongs to them follows",
               .item = &file_node_item, .count_minimum = 1, .is_required = true),
};

const pen_option_table pen_plan_table = {
    .help = "A plan: which device runs what, made by `penstock plan`.",
    PEN_OPTION_FIELDS(plan_file, plan_file_fields)};
