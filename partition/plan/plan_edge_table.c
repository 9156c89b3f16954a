// The keys of a plan file's edges and transfers.

#include "partition/plan/plan_table.h"

const char *const pen_plan_transfer_names[] = {"forward", "backward", "each step", NULL};

static const pen_option_field file_edge_fields[] = {
    FILE_INDEX(file_edge, from, "the lower stage"),
    FILE_INDEX(file_edge, to, "the higher stage"),
    FILE_BYTES(file_edge, forward_bytes, "of a microbatch"),
    FILE_SECONDS(file_edge, forward, "to move them"),
    PEN_OPTION(BOOL, file_edge, has_gradient, "gradients flow back", .default_text = "false"),
    FILE_BYTES(file_edge, backward_bytes, "of a microbatch"),
    FILE_SECONDS(file_edge, backward, "to move them"),
};
static const pen_option_table file_edge_table = {PEN_OPTION_FIELDS(file_edge, file_edge_fields)};
const pen_option_field pen_plan_edge_item = {.kind = PEN_OPTION_MAPPING, .table = &file_edge_table};

static const pen_option_field file_step_edge_fields[] = {
    FILE_INDEX(file_step_edge, from, "stage"),
    FILE_INDEX(file_step_edge, to, "stage"),
    PEN_OPTION(INTEGER, file_step_edge, phase, "of the updates, that it leaves with",
               PEN_OPTION_RANGE(0, FILE_PHASE_LIMIT), .default_text = "0"),
    FILE_BYTES(file_step_edge, bytes, "of a step"),
    FILE_SECONDS(file_step_edge, seconds, "to move them"),
};
static const pen_option_table file_step_edge_table = {
    PEN_OPTION_FIELDS(file_step_edge, file_step_edge_fields)};
const pen_option_field pen_plan_step_edge_item = {.kind = PEN_OPTION_MAPPING,
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
const pen_option_field pen_plan_transfer_item = {.kind = PEN_OPTION_MAPPING,
                                                 .table = &file_transfer_table};
