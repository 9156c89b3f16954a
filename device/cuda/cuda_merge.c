#include "device/cuda/cuda_merge.h"

#include "graph/op.h"

struct cuda_group {
    cuda_group *next;
    cuda_member *first, *last;
};

pen_status cuda_merge_begin(cuda_merge *merge, pen_arena *arena, uint32_t step_limit) {
    *merge = (cuda_merge){.arena = arena};
    return PEN_NEW(arena, step_limit, &merge->actions);
}

// ---- what must come after what

static void part_add_range(cuda_part *part, pen_cuda_address first, uint64_t bytes,
                           bool is_written) {
    if (first == 0 || bytes == 0) return;
    part->ranges[part->range_count++] = (cuda_range){first, first + bytes, is_written};
}

static uint64_t part_bytes(const pen_graph *graph, pen_value_id value) {
    return pen_value_is(value) ? pen_tensor_type_bytes(pen_value_type(graph, value)) : 0;
}

pen_status cuda_part_make(const cuda_launch *launch, pen_cuda_address workspace, pen_arena *arena,
                          cuda_part *out_part) {
    const pen_node *node = launch->kernel->node;
    const pen_graph *graph = launch->kernel->graph;
    *out_part = (cuda_part){.launch = launch};
    PEN_TRY(PEN_NEW(arena, (size_t)node->input_count + node->output_count + 1, &out_part->ranges));
    for (uint32_t i = 0; i < node->input_count; i++)
        part_add_range(out_part, launch->call.inputs[i], part_bytes(graph, node->inputs[i]), false);
    for (uint32_t i = 0; i < node->output_count; i++)
        part_add_range(out_part, launch->call.outputs[i], part_bytes(graph, node->outputs[i]),
                       true);
    part_add_range(out_part, workspace, cuda_kernel_workspace(launch->kernel), true);
    return PEN_OK;
}

pen_status cuda_part_make_look(pen_look *look, pen_arena *arena, cuda_part *out_part) {
    const uint64_t size = look->is_wide ? sizeof(double) : sizeof(float);
    *out_part = (cuda_part){.look = look};
    PEN_TRY(PEN_NEW(arena, 1, &out_part->ranges));
    part_add_range(out_part, pen_cuda_address_of(look->of), look->count * size, false);
    return PEN_OK;
}

static bool part_is_update(const cuda_part *part) {
    return part->launch != NULL && part->launch->kernel->node->op->is_update;
}

static bool range_conflicts(const cuda_range *a, const cuda_range *b) {
    return (a->is_written || b->is_written) && a->first < b->end && b->first < a->end;
}

static bool part_must_follow(const cuda_part *part, const cuda_part *other) {
    if (part->launch != NULL && part->launch == other->launch) return true;
    if (part_is_update(part) && other->look != NULL) return true;
    for (uint32_t i = 0; i < part->range_count; i++) {
        for (uint32_t k = 0; k < other->range_count; k++)
            if (range_conflicts(&part->ranges[i], &other->ranges[k])) return true;
    }
    return false;
}

static bool group_is_followed(const cuda_group *group, const cuda_part *part) {
    for (const cuda_member *member = group->first; member != NULL; member = member->next)
        if (part_must_follow(part, member->part)) return true;
    return false;
}

// ---- merging

// The first group becomes an action: of one it stays what it was.
static void merge_emit_group(cuda_merge *merge) {
    const cuda_group *group = merge->groups;
    cuda_action *action = &merge->actions[merge->action_count++];
    merge->groups = group->next;
    *action = (cuda_action){.launch = group->first->part->launch, .step = group->first->step};
    for (const cuda_member *member = group->first; member != NULL; member = member->next) {
        if (member->part->look != NULL) member->part->look->is_late = merge->has_updates;
        if (part_is_update(member->part)) merge->has_updates = true;
    }
    if (group->first == group->last) return;
    action->launch = NULL;
    action->members = group->first;
    action->step.kernel = group->first->step.many;
    for (const cuda_member *member = group->first->next; member != NULL; member = member->next)
        action->step.grid[0] += member->step.grid[0];
}

// All groups up to and with the last one that the part must follow.
static void merge_emit_before(cuda_merge *merge, const cuda_group *last) {
    while (last != NULL && merge->groups != last)
        merge_emit_group(merge);
    if (last != NULL) merge_emit_group(merge);
}

static pen_status merge_add_member(const cuda_merge *merge, cuda_group *group,
                                   const cuda_part *part, const pen_cuda_step *step) {
    cuda_member *member;
    PEN_TRY(PEN_NEW(merge->arena, 1, &member));
    *member = (cuda_member){.part = part, .step = *step};
    if (group->last == NULL)
        group->first = member;
    else
        group->last->next = member;
    group->last = member;
    return PEN_OK;
}

// A step of many goes to the first group of its kernel behind all that it must follow; where there
// is none, it begins one.
static pen_status merge_add_many(cuda_merge *merge, cuda_group *after, const cuda_part *part,
                                 const pen_cuda_step *step) {
    cuda_group **at = after == NULL ? &merge->groups : &after->next;
    while (*at != NULL && (*at)->first->step.many != step->many)
        at = &(*at)->next;
    if (*at == NULL) PEN_TRY(PEN_NEW(merge->arena, 1, at));
    return merge_add_member(merge, *at, part, step);
}

pen_status cuda_merge_add(cuda_merge *merge, const cuda_part *part, const pen_cuda_step *step) {
    cuda_group *after = NULL;
    for (cuda_group *group = merge->groups; group != NULL; group = group->next)
        if (group_is_followed(group, part)) after = group;
    if (step != NULL && step->many != 0) return merge_add_many(merge, after, part, step);
    merge_emit_before(merge, after);
    cuda_action *action = &merge->actions[merge->action_count++];
    *action = (cuda_action){.launch = part->launch, .is_on_host = step == NULL};
    if (step != NULL) action->step = *step;
    if (part_is_update(part)) merge->has_updates = true;
    return PEN_OK;
}

void cuda_merge_end(cuda_merge *merge) {
    while (merge->groups != NULL)
        merge_emit_group(merge);
}
