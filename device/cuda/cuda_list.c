// Lists of launches: what is enqueued when one runs, and the tables of kernels of many.
//
// Launches that follow each other without a node of the host between are captured as one graph
// when they run a second time: the first run may be the only one. What differs from run to run is
// in memory (the keys of random numbers, which are copied before), or makes graphs of its own
// (whether nodes add to what is there).
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "device/cuda/cuda_inside.h"
#include "device/cuda/cuda_merge.h"
#include "graph/node_blame.h"
#include "graph/op.h"

#define LIST_ALIGNMENT 64u

#define LIST_VARIANTS 4u

// Actions that run as one graph, in each of the variants.
typedef struct list_segment {
    uint32_t first, end;
    pen_cuda_graph_exec *graphs[LIST_VARIANTS]; // NULL: not captured yet
    bool has_run[LIST_VARIANTS];
    bool is_refused; // the driver made no graph: launches are enqueued one by one
} list_segment;

struct pen_launch_list {
    pen_launch_list *next; // of the device's
    pen_arena *arena;
    pen_look **looks; // [look_count]
    uint32_t look_count;
    uint32_t first_look;  // its number
    cuda_action *actions; // [action_count]
    uint32_t action_count;
    list_segment *segments; // [segment_count]
    uint32_t segment_count;
    const cuda_launch **drawers; // [drawer_count]: launches that draw random numbers
    struct cuda_random *drawn;   // [drawer_count]
    uint32_t drawer_count;
    pen_cuda_address randoms;    // [drawer_count]; 0: none
    bool adds, spans_lanes;      // there are nodes that add: over microbatches, and over lanes
    pen_cuda_address workspaces; // of steps of many, which run at once; 0: none
    pen_cuda_address tables;     // of actions of many; 0: none
    bool may_raise;              // a word
    pen_cuda_address given;      // memory that is left of what was given
    uint64_t given_bytes;
};

// ---- steps

// Nodes that add to what is there, or draw, are not of many: their arguments differ from run to
// run.
static bool list_is_of_many(const cuda_launch *launch) {
    if (launch->host != NULL || launch->step_count == 0) return false;
    if (launch->kernel->node->accumulates || launch->kernel->entry->draw != NULL) return false;
    return launch->steps[0].many != 0;
}

// Room that the workspace of a launch needs of its own, since another of its kind may run at once.
static uint64_t list_own_workspace(const cuda_launch *launch) {
    return list_is_of_many(launch) ? cuda_kernel_workspace(launch->kernel) : 0;
}

// Of what was given: plans reckon with that, and with no more.
static pen_status list_take_memory(const cuda_device *device, pen_launch_list *list, uint64_t bytes,
                                   pen_cuda_address *out_address) {
    const uint64_t aligned = pen_align_up(bytes, CUDA_ALIGNMENT);
    if (bytes == 0) return PEN_OK;
    if (aligned > list->given_bytes) {
        return pen_error(PEN_INTERNAL, "device '%s': a list keeps more than was reckoned with",
                         device->memory.budget.device);
    }
    *out_address = list->given;
    list->given += aligned;
    list->given_bytes -= aligned;
    return PEN_OK;
}

// A launch that has memory of the list takes it instead of its own.
static pen_status list_add_launch(cuda_merge *merge, const cuda_launch *launch,
                                  pen_cuda_address workspace, pen_cuda_address random) {
    pen_cuda_call call = launch->call;
    pen_cuda_step steps[PEN_CUDA_STEPS];
    cuda_part *part;
    uint32_t step_count = launch->step_count;
    if (workspace != 0) call.workspace = workspace;
    if (random != 0) call.random = random;
    PEN_TRY(PEN_NEW(merge->arena, 1, &part));
    PEN_TRY(cuda_part_make(launch, call.workspace, merge->arena, part));
    if (launch->host != NULL) return cuda_merge_add(merge, part, NULL);
    memcpy(steps, launch->steps, step_count * sizeof *steps);
    if (workspace != 0 || random != 0) step_count = launch->kernel->entry->steps(&call, steps);
    const bool is_of_many = list_is_of_many(launch);
    for (uint32_t i = 0; i < step_count; i++) {
        if (!is_of_many) steps[i].many = 0;
        PEN_TRY(cuda_merge_add(merge, part, &steps[i]));
    }
    return PEN_OK;
}

static bool list_draws(const cuda_launch *launch) {
    return launch->host == NULL && launch->kernel->entry->draw != NULL;
}

static pen_status list_add_look(cuda_device *device, cuda_merge *merge, pen_look *look,
                                pen_launch_list *list) {
    cuda_part *part;
    PEN_TRY(PEN_NEW(merge->arena, 1, &part));
    PEN_TRY(cuda_part_make_look(look, merge->arena, part));
    const pen_cuda_step step = {PEN_CUDA_OF_MANY(look, cuda_look_args),
                                .grid = {pen_cuda_blocks_for(look->count), 1, 1},
                                .args.look = {.is_wide = look->is_wide,
                                              .number = UINT32_MAX - device->look_count,
                                              .count = look->count,
                                              .x = pen_cuda_address_of(look->of),
                                              .flag = cuda_word(device, CUDA_FLAG_WORD)}};
    device->look_count += 1;
    list->looks[list->look_count++] = look;
    return cuda_merge_add(merge, part, &step);
}

// What the list takes: actions at most, room for workspaces, and whether words may be raised.
static void list_count(const pen_list_item *items, uint32_t count, pen_launch_list *list,
                       uint64_t *out_bytes) {
    *out_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const cuda_launch *launch = (const cuda_launch *)items[i].launch;
        if (launch == NULL || launch->host != NULL) {
            list->action_count += 1;
        } else {
            list->action_count += launch->step_count;
        }
        if (launch != NULL) *out_bytes += list_own_workspace(launch);
        if (launch != NULL && list_draws(launch)) list->drawer_count += 1;
        if (launch != NULL && launch->kernel->node->accumulates) {
            list->adds = true;
            if (launch->kernel->node->op->spans_lanes) list->spans_lanes = true;
        }
        if (launch == NULL || launch->kernel->word > 0) list->may_raise = true;
    }
}

// Launches take memory of the list in their order: workspaces of those that may run at once, and
// keys of random numbers.
static pen_status list_merge(cuda_device *device, const pen_list_item *items, uint32_t count,
                             pen_launch_list *list) {
    uint64_t bytes;
    cuda_merge merge;
    list_count(items, count, list, &bytes);
    PEN_TRY(PEN_NEW(list->arena, count, &list->looks));
    PEN_TRY(list_take_memory(device, list, bytes, &list->workspaces));
    PEN_TRY(cuda_merge_begin(&merge, list->arena, list->action_count));
    PEN_TRY(list_take_memory(device, list, list->drawer_count * sizeof(struct cuda_random),
                             &list->randoms));
    PEN_TRY(PEN_NEW(list->arena, list->drawer_count, &list->drawers));
    PEN_TRY(PEN_NEW(list->arena, list->drawer_count, &list->drawn));
    pen_cuda_address next = list->workspaces, random = list->randoms;
    uint32_t drawers = 0;
    list->first_look = device->look_count;
    for (uint32_t i = 0; i < count; i++) {
        const cuda_launch *launch = (const cuda_launch *)items[i].launch;
        if (launch == NULL) {
            PEN_TRY(list_add_look(device, &merge, items[i].look, list));
            continue;
        }
        const uint64_t own = list_own_workspace(launch);
        const bool draws = list_draws(launch);
        PEN_TRY(list_add_launch(&merge, launch, own > 0 ? next : 0, draws ? random : 0));
        next += own;
        if (!draws) continue;
        list->drawers[drawers++] = launch;
        random += sizeof(struct cuda_random);
    }
    cuda_merge_end(&merge);
    list->actions = merge.actions;
    list->action_count = merge.action_count;
    return PEN_OK;
}

// ---- wrong data, before updates

static bool list_updates(const cuda_action *action) {
    const cuda_launch *launch =
        action->members == NULL ? action->launch : action->members->part->launch;
    return launch != NULL && launch->kernel->node->op->is_update;
}

// Before updates that come after kernels that may raise a word, of this list or of one before it,
// the flag is raised where one did.
static pen_status list_add_checks(const cuda_device *device, pen_launch_list *list) {
    const cuda_action check = {.step = cuda_check_step(device)};
    cuda_action *actions;
    bool may_be_raised = true;
    uint32_t count = 0;
    if (device->next_word == 0) return PEN_OK; // no kernel has one
    PEN_TRY(PEN_NEW(list->arena, 2 * (size_t)list->action_count, &actions));
    for (uint32_t i = 0; i < list->action_count; i++) {
        const cuda_action *action = &list->actions[i];
        if (list_updates(action) && may_be_raised) {
            actions[count++] = check;
            may_be_raised = false;
        }
        if (action->launch != NULL && action->launch->kernel->word > 0) may_be_raised = true;
        actions[count++] = *action;
    }
    list->actions = actions;
    list->action_count = count;
    return PEN_OK;
}

// ---- tables: where the blocks of each argument begin, then the arguments

static uint32_t list_member_count(const cuda_action *action) {
    uint32_t count = 0;
    for (const cuda_member *member = action->members; member != NULL; member = member->next)
        count++;
    return count;
}

static uint64_t list_first_blocks_bytes(uint32_t count) {
    return pen_align_up(((uint64_t)count + 1) * sizeof(uint32_t), LIST_ALIGNMENT);
}

static uint64_t list_table_bytes(const cuda_action *action) {
    const uint32_t count = list_member_count(action);
    if (count == 0) return 0;
    return list_first_blocks_bytes(count) +
           pen_align_up((uint64_t)count * action->step.many_bytes, LIST_ALIGNMENT);
}

// The action's table at `here`, which is going to be at `address`.
static void list_fill_table(cuda_action *action, uint8_t *here, pen_cuda_address address) {
    const uint32_t count = list_member_count(action);
    const uint64_t first = list_first_blocks_bytes(count);
    uint8_t *argument = here + first;
    uint32_t block = 0;
    uint32_t *first_blocks = (uint32_t *)(void *)here;
    for (const cuda_member *member = action->members; member != NULL; member = member->next) {
        *first_blocks++ = block;
        memcpy(argument, &member->step.args, member->step.many_bytes);
        argument += member->step.many_bytes;
        block += member->step.grid[0];
    }
    *first_blocks = block;
    action->step.args.many =
        (struct cuda_many_args){.count = count, .first_blocks = address, .table = address + first};
}

static pen_status list_make_tables(cuda_device *device, pen_launch_list *list) {
    uint64_t bytes = 0, at = 0;
    uint64_t *tables;
    for (uint32_t i = 0; i < list->action_count; i++)
        bytes += list_table_bytes(&list->actions[i]);
    if (bytes == 0) return PEN_OK;
    PEN_TRY(list_take_memory(device, list, bytes, &list->tables));
    PEN_TRY(PEN_NEW(list->arena, bytes / sizeof *tables, &tables));
    for (uint32_t i = 0; i < list->action_count; i++) {
        cuda_action *action = &list->actions[i];
        if (action->members == NULL) continue;
        const uint64_t own = list_table_bytes(action);
        list_fill_table(action, (uint8_t *)tables + at, list->tables + at);
        at += own;
    }
    return pen_cuda_write_at(&device->memory, list->tables, tables, bytes);
}

// ---- what a list takes, before there is one

// Of a member of a table: where its blocks begin, and half of what an action adds, which has two
// members at least (one more beginning, and two times what is rounded up).
#define LIST_MEMBER_BYTES (sizeof(uint32_t) + (sizeof(uint32_t) + 2 * (LIST_ALIGNMENT - 1)) / 2)
#define LIST_OPERANDS 64u // more than a node has whose kernel is of many

// A node's share of workspaces and tables. Its launches are those that it will have: where operands
// are decides nothing but whether they are there.
static void list_add_bytes(const pen_graph *graph, const pen_node *node,
                           const pen_cuda_entry *entry, uint64_t *workspaces, uint64_t *tables) {
    pen_cuda_address operands[2][LIST_OPERANDS];
    pen_cuda_step steps[PEN_CUDA_STEPS];
    if (node->input_count > LIST_OPERANDS || node->output_count > LIST_OPERANDS) return;
    for (uint32_t i = 0; i < node->input_count; i++)
        operands[0][i] = pen_value_is(node->inputs[i]) ? (i + 1) * LIST_ALIGNMENT : 0;
    for (uint32_t i = 0; i < node->output_count; i++)
        operands[1][i] =
            pen_value_is(node->outputs[i]) ? (LIST_OPERANDS + i + 1) * LIST_ALIGNMENT : 0;
    const pen_cuda_call call = {.graph = graph,
                                .node = node,
                                .inputs = operands[0],
                                .outputs = operands[1],
                                .workspace = LIST_ALIGNMENT};
    const uint32_t count = entry->steps(&call, steps);
    if (count == 0 || steps[0].many == 0) return;
    if (entry->workspace_bytes != NULL)
        *workspaces += pen_align_up(entry->workspace_bytes(graph, node), LIST_ALIGNMENT);
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].many != 0) *tables += steps[i].many_bytes + LIST_MEMBER_BYTES;
}

static bool list_makes_scalar(const pen_graph *graph, const pen_node *node) {
    return node->output_count > 0 && pen_value_is(node->outputs[0]) &&
           pen_cuda_count(graph, node->outputs[0]) == 1;
}

uint64_t cuda_list_bytes(const pen_graph *graph, const pen_node_id *nodes, uint32_t count) {
    const uint64_t look = sizeof(struct cuda_look_args) + LIST_MEMBER_BYTES;
    uint64_t workspaces = 0, randoms = 0, tables = 0;
    for (uint32_t i = 0; i < count; i++) {
        const pen_node *node = pen_graph_node(graph, nodes[i]);
        if (node->op->is_view) continue;
        if (node->op->is_update) tables += look;
        if (list_makes_scalar(graph, node)) tables += look;
        const pen_cuda_entry *entry = pen_cuda_entry_find(graph, node);
        if (entry == NULL) continue;
        if (entry->draw != NULL)
            randoms += sizeof(struct cuda_random);
        else if (!node->accumulates)
            list_add_bytes(graph, node, entry, &workspaces, &tables);
    }
    return pen_align_up(workspaces, CUDA_ALIGNMENT) + pen_align_up(randoms, CUDA_ALIGNMENT) +
           pen_align_up(tables, CUDA_ALIGNMENT);
}

// ---- memory for lists

// The room is used from its beginning on, and from there again when nothing is left in it.
pen_status cuda_list_reserve(pen_device *base, uint64_t bytes, pen_buffer **out_buffer,
                             uint64_t *out_own_bytes) {
    cuda_device *device = cuda_device_of(base);
    pen_cuda_memory *memory = &device->memory;
    const pen_memory_place place = {&memory->domain, cuda_room(device) + device->room_bytes};
    uint64_t taken = device->room_bytes;
    *out_own_bytes = pen_list_room_take(base->kind, &taken, pen_align_up(bytes, CUDA_ALIGNMENT));
    if (*out_own_bytes > 0) return pen_cuda_buffer_create(memory, *out_own_bytes, out_buffer);
    PEN_TRY(pen_cuda_buffer_wrap(memory, place, bytes, out_buffer));
    device->room_bytes = taken;
    device->room_takings += 1;
    return PEN_OK;
}

void cuda_list_destroy_buffer(pen_device *base, pen_buffer *buffer) {
    cuda_device *device = cuda_device_of(base);
    const pen_cuda_address address = pen_cuda_address_of((pen_operand){.buffer = buffer});
    const pen_cuda_address room = cuda_room(device);
    if (buffer != NULL && address >= room && address < room + CUDA_ROOM_BYTES) {
        device->room_takings -= 1;
        if (device->room_takings == 0) device->room_bytes = 0;
    }
    pen_cuda_buffer_destroy(&device->memory, buffer);
}

// ---- segments: a single launch is no graph

static pen_status list_find_segments(pen_launch_list *list) {
    uint32_t first = 0;
    PEN_TRY(PEN_NEW(list->arena, list->action_count / 2 + 1, &list->segments));
    for (uint32_t i = 0; i <= list->action_count; i++) {
        if (i < list->action_count && !list->actions[i].is_on_host) continue;
        if (i - first > 1) {
            list->segments[list->segment_count++] = (list_segment){.first = first, .end = i};
        }
        first = i + 1;
    }
    return PEN_OK;
}

static uint32_t list_variant(const pen_launch_list *list, const pen_run_context *run) {
    return (list->adds && run->first_microbatch ? 1u : 0u) |
           (list->spans_lanes && run->later_lane ? 2u : 0u);
}

// ---- members of the device's kind

// What runs still uses its memory: it is awaited.
void cuda_list_destroy(pen_device *base, pen_launch_list *list) {
    if (list == NULL) return;
    cuda_device *device = cuda_device_of(base);
    const pen_cuda_memory *memory = &device->memory;
    for (pen_launch_list **at = &device->lists; *at != NULL; at = &(*at)->next) {
        if (*at != list) continue;
        *at = list->next;
        break;
    }
    (void)memory->driver->context_set(memory->context);
    (void)memory->driver->stream_wait(memory->stream);
    for (uint32_t s = 0; s < list->segment_count; s++) {
        for (uint32_t v = 0; v < LIST_VARIANTS; v++) {
            if (list->segments[s].graphs[v] == NULL) continue;
            (void)memory->driver->graph_exec_destroy(list->segments[s].graphs[v]);
        }
    }
    pen_arena_destroy(list->arena);
}

// What was made before an error is released again.
pen_status cuda_list_create(pen_device *base, const pen_list_item *items, uint32_t count,
                            const pen_list_memory *memory, pen_launch_list **out_list) {
    cuda_device *device = cuda_device_of(base);
    pen_launch_list *list;
    pen_arena *arena;
    PEN_TRY(pen_cuda_memory_enter(&device->memory));
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = PEN_NEW(arena, 1, &list);
    if (status != PEN_OK) {
        pen_arena_destroy(arena);
        return status;
    }
    list->arena = arena;
    list->given = pen_cuda_address_of(memory->at);
    list->given_bytes = memory->bytes;
    status = list_merge(device, items, count, list);
    if (status == PEN_OK) status = list_add_checks(device, list);
    if (status == PEN_OK) status = list_make_tables(device, list);
    if (status == PEN_OK) status = list_find_segments(list);
    if (status != PEN_OK) {
        cuda_list_destroy(base, list);
        return status;
    }
    list->next = device->lists;
    device->lists = list;
    *out_list = list;
    return PEN_OK;
}

static pen_status list_do(cuda_device *device, const cuda_action *action,
                          const pen_run_context *run) {
    if (action->launch == NULL) return cuda_launch_step(device, &action->step);
    const pen_cuda_flag flag = cuda_flag(device);
    const pen_status status =
        action->is_on_host ? pen_cuda_host_run(&device->host, action->launch->host, &flag, run)
                           : cuda_launch_step_of(device, action->launch, &action->step, run);
    if (status == PEN_OK) return PEN_OK;
    const cuda_kernel *kernel = action->launch->kernel;
    return pen_node_blame(kernel->graph, kernel->node, status);
}

static pen_status list_do_all(cuda_device *device, const pen_launch_list *list, uint32_t first,
                              uint32_t end, const pen_run_context *run) {
    for (uint32_t i = first; i < end; i++)
        PEN_TRY(list_do(device, &list->actions[i], run));
    return PEN_OK;
}

// Nothing runs while it is captured. The stream leaves that state whatever happens.
static pen_status list_capture(cuda_device *device, const pen_launch_list *list,
                               list_segment *segment, uint32_t variant,
                               const pen_run_context *run) {
    static const char *const doing = "while launches were made a graph";
    const pen_cuda_memory *memory = &device->memory;
    const pen_cuda_driver *driver = memory->driver;
    pen_cuda_graph *graph = NULL;
    PEN_TRY(pen_cuda_check(
        memory, driver->capture_begin(memory->stream, PEN_CUDA_CAPTURE_THREAD_LOCAL), doing));
    pen_status status = list_do_all(device, list, segment->first, segment->end, run);
    status = pen_status_join(
        status, pen_cuda_check(memory, driver->capture_end(memory->stream, &graph), doing));
    if (status == PEN_OK) {
        status = pen_cuda_check(
            memory, driver->graph_instantiate(&segment->graphs[variant], graph, 0), doing);
    }
    if (graph != NULL) (void)driver->graph_destroy(graph);
    return status;
}

static pen_status list_run_segment(cuda_device *device, const pen_launch_list *list,
                                   list_segment *segment, const pen_run_context *run) {
    const pen_cuda_memory *memory = &device->memory;
    const uint32_t variant = list_variant(list, run);
    if (!segment->has_run[variant]) {
        segment->has_run[variant] = true;
        return list_do_all(device, list, segment->first, segment->end, run);
    }
    if (segment->graphs[variant] == NULL && !segment->is_refused) {
        const pen_status status = list_capture(device, list, segment, variant, run);
        segment->is_refused = status != PEN_OK;
        pen_status_ignore(status, "launches say what is wrong, if they do not run either");
    }
    if (segment->graphs[variant] == NULL)
        return list_do_all(device, list, segment->first, segment->end, run);
    return pen_cuda_check(memory,
                          memory->driver->graph_launch(segment->graphs[variant], memory->stream),
                          "while a graph was enqueued");
}

static pen_status list_draw(cuda_device *device, const pen_launch_list *list,
                            const pen_run_context *run) {
    if (list->drawer_count == 0) return PEN_OK;
    for (uint32_t i = 0; i < list->drawer_count; i++) {
        const cuda_kernel *kernel = list->drawers[i]->kernel;
        list->drawn[i] = kernel->entry->draw(kernel->node, run);
    }
    return pen_cuda_write_at(&device->memory, list->randoms, list->drawn,
                             list->drawer_count * sizeof *list->drawn);
}

pen_status cuda_list_enqueue(pen_device *base, pen_launch_list *list, const pen_run_context *run) {
    cuda_device *device = cuda_device_of(base);
    uint32_t done = 0;
    PEN_TRY(pen_cuda_memory_enter(&device->memory));
    PEN_TRY(list_draw(device, list, run));
    for (uint32_t s = 0; s < list->segment_count; s++) {
        list_segment *segment = &list->segments[s];
        PEN_TRY(list_do_all(device, list, done, segment->first, run));
        PEN_TRY(list_run_segment(device, list, segment, run));
        done = segment->end;
    }
    PEN_TRY(list_do_all(device, list, done, list->action_count, run));
    if (list->may_raise) device->may_be_raised = true;
    return PEN_OK;
}

// The largest number that the flag was raised to is of the first look. One whose list is gone is
// told by nobody.
pen_status cuda_list_found(pen_device *base, const pen_look **out_look) {
    cuda_device *device = cuda_device_of(base);
    const pen_cuda_memory *memory = &device->memory;
    const uint32_t number = UINT32_MAX - device->found_number;
    *out_look = NULL;
    if (device->found_number == 0) return PEN_OK;
    device->found_number = 0;
    for (const pen_launch_list *list = device->lists; list != NULL; list = list->next) {
        if (number - list->first_look >= list->look_count) continue; // also when below
        *out_look = list->looks[number - list->first_look];
    }
    PEN_TRY(pen_cuda_memory_enter(memory));
    return pen_cuda_check(memory,
                          memory->driver->fill(cuda_word(device, CUDA_FLAG_WORD), 0,
                                               sizeof(uint32_t), memory->stream),
                          "while memory was set to zeros");
}
