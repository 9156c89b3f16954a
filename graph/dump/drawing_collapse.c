#include "graph/dump/drawing_collapse.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

// Bundles are too few, and some are cut, below this part of the limit.
#define COLLAPSE_FEW 8

typedef struct collapse_entry {
    const char *name;
    uint32_t group;
    uint32_t position; // among the nodes given
} collapse_entry;

// Entries [first, end), whose names share their first `prefix` bytes.
typedef struct collapse_range {
    uint32_t first;
    uint32_t end;
    size_t prefix;
    bool is_closed; // not to be opened further
} collapse_range;

typedef struct collapse_state {
    collapse_entry *entries; // by group, then by name
    collapse_range *ranges;
    uint32_t range_count;
    uint32_t limit;
} collapse_state;

static int collapse_compare_entries(const void *left, const void *right) {
    const collapse_entry *a = left;
    const collapse_entry *b = right;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int collapse_compare_positions(const void *left, const void *right) {
    const collapse_entry *a = left;
    const collapse_entry *b = right;
    return a->position < b->position ? -1 : a->position > b->position;
}

// Where the part of `name` that begins at `prefix` ends, its separator included.
static size_t collapse_part_end(const char *name, size_t prefix) {
    const size_t length = strlen(name + prefix);
    const size_t part = strcspn(name + prefix, "/.:");
    // separators that follow each other, and one at the beginning, are part of the part
    const size_t more = strspn(name + prefix + part, "/.:");
    if (part == 0 && more < length) return collapse_part_end(name, prefix + more);
    return prefix + part + more;
}

// The end of the entries from `first` on that share the next part of the first one's name.
static uint32_t collapse_child_end(const collapse_state *state, uint32_t first, uint32_t end,
                                   size_t prefix, size_t *out_prefix) {
    const char *name = state->entries[first].name;
    const size_t part_end = collapse_part_end(name, prefix);
    uint32_t next = first + 1;
    while (next < end && strncmp(state->entries[next].name, name, part_end) == 0 &&
           collapse_part_end(state->entries[next].name, prefix) == part_end)
        next++;
    *out_prefix = part_end;
    return next;
}

static uint32_t collapse_count_children(const collapse_state *state, const collapse_range *range) {
    uint32_t count = 0;
    size_t prefix;
    for (uint32_t i = range->first; i < range->end; count++) {
        i = collapse_child_end(state, i, range->end, range->prefix, &prefix);
    }
    return count;
}

// Replaces a range by one for each next part of its names.
static void collapse_open(collapse_state *state, uint32_t index) {
    const collapse_range range = state->ranges[index];
    uint32_t slot = index;
    for (uint32_t i = range.first; i < range.end;) {
        size_t prefix;
        const uint32_t end = collapse_child_end(state, i, range.end, range.prefix, &prefix);
        state->ranges[slot] = (collapse_range){i, end, prefix, end - i == 1};
        slot = state->range_count;
        state->range_count += end < range.end ? 1 : 0;
        i = end;
    }
}

// Opens the largest ranges, all those of one size together, so that what is alike is drawn alike;
// or closes them. Returns whether there were any.
static bool collapse_step(collapse_state *state) {
    uint32_t most = 0;
    for (uint32_t r = 0; r < state->range_count; r++) {
        const collapse_range *range = &state->ranges[r];
        if (!range->is_closed && range->end - range->first > most) most = range->end - range->first;
    }
    uint64_t count = state->range_count;
    for (uint32_t r = 0; r < state->range_count; r++) {
        const collapse_range *range = &state->ranges[r];
        if (range->is_closed || range->end - range->first != most) continue;
        count += collapse_count_children(state, range) - 1;
    }
    const uint32_t range_count = state->range_count;
    for (uint32_t r = 0; r < range_count; r++) {
        collapse_range *range = &state->ranges[r];
        if (range->is_closed || range->end - range->first != most) continue;
        if (count > state->limit) {
            range->is_closed = true;
        } else {
            collapse_open(state, r);
        }
    }
    return most > 0;
}

// Cuts ranges that could not be opened, most names being flat, in the order of the graph.
static void collapse_cut(collapse_state *state) {
    if (state->range_count >= state->limit / COLLAPSE_FEW) return;
    uint64_t bundled = 0;
    const uint32_t range_count = state->range_count;
    const uint32_t spare = state->limit - range_count;
    for (uint32_t r = 0; r < range_count; r++) {
        bundled += state->ranges[r].end - state->ranges[r].first;
    }
    for (uint32_t r = 0; r < range_count; r++) {
        const collapse_range range = state->ranges[r];
        const uint32_t count = range.end - range.first;
        const uint32_t piece_count = 1 + (uint32_t)((uint64_t)spare * count / bundled);
        if (piece_count == 1) continue;
        qsort(&state->entries[range.first], count, sizeof *state->entries,
              collapse_compare_positions);
        const uint32_t piece = (count + piece_count - 1) / piece_count;
        state->ranges[r].end = range.first + piece;
        for (uint32_t first = range.first + piece; first < range.end; first += piece) {
            const uint32_t end = first + piece < range.end ? first + piece : range.end;
            state->ranges[state->range_count++] = (collapse_range){first, end, range.prefix, true};
        }
    }
}

static pen_status collapse_name(const collapse_state *state, const collapse_range *range,
                                pen_arena *arena, const char **out_name) {
    const char *name = state->entries[range->first].name;
    if (range->end - range->first == 1) {
        *out_name = name;
        return PEN_OK;
    }
    if (range->prefix > 0) {
        return pen_arena_format(arena, out_name, "%.*s*", (int)range->prefix, name);
    }
    // nothing that they share: one of them, for a start
    return pen_arena_format(arena, out_name, "%s and %u more", name, range->end - range->first - 1);
}

typedef struct collapse_order {
    uint32_t first; // lowest position
    uint32_t range;
} collapse_order;

static int collapse_compare_orders(const void *left, const void *right) {
    const collapse_order *a = left;
    const collapse_order *b = right;
    return a->first < b->first ? -1 : a->first > b->first;
}

// Bundles in the order of their first nodes, so that the picture reads as the graph does.
static pen_status collapse_write(const collapse_state *state, const uint32_t *nodes,
                                 pen_arena *arena, pen_bundling *bundling) {
    collapse_order *order;
    PEN_TRY(PEN_NEW(arena, state->range_count, &order));
    PEN_TRY(PEN_NEW(arena, state->range_count, &bundling->bundles));
    bundling->bundle_count = state->range_count;
    for (uint32_t r = 0; r < state->range_count; r++) {
        order[r] = (collapse_order){UINT32_MAX, r};
        for (uint32_t i = state->ranges[r].first; i < state->ranges[r].end; i++) {
            if (state->entries[i].position < order[r].first)
                order[r].first = state->entries[i].position;
        }
    }
    qsort(order, state->range_count, sizeof *order, collapse_compare_orders);
    for (uint32_t b = 0; b < state->range_count; b++) {
        const collapse_range *range = &state->ranges[order[b].range];
        pen_bundle *bundle = &bundling->bundles[b];
        PEN_TRY(collapse_name(state, range, arena, &bundle->name));
        bundle->node_count = range->end - range->first;
        bundle->node_first = nodes[order[b].first];
        for (uint32_t i = range->first; i < range->end; i++) {
            bundling->bundle_of[state->entries[i].position] = b;
        }
    }
    return PEN_OK;
}

// Begins with one bundle for each group and splits the largest by the next part of its nodes' names
// while the limit allows; at last by position.
pen_status pen_drawing_collapse(const pen_graph *graph, const pen_bundling_request *request,
                                pen_arena *arena, pen_bundling *out_bundling) {
    const uint32_t *nodes = request->nodes;
    const uint32_t node_count = request->node_count;
    collapse_state state = {.limit = request->limit};
    *out_bundling = (pen_bundling){0};
    PEN_TRY(PEN_NEW(arena, node_count, &state.entries));
    PEN_TRY(PEN_NEW(arena, (size_t)node_count + 1, &state.ranges));
    PEN_TRY(PEN_NEW(arena, node_count, &out_bundling->bundle_of));
    for (uint32_t i = 0; i < node_count; i++) {
        state.entries[i].name = pen_node_name(graph, (pen_node_id){nodes[i]});
        state.entries[i].position = i;
        if (request->group_of_node != NULL) {
            state.entries[i].group = request->group_of_node[nodes[i]];
        }
    }
    if (node_count > 0) {
        qsort(state.entries, node_count, sizeof *state.entries, collapse_compare_entries);
    }
    for (uint32_t i = 0; i < node_count;) {
        collapse_range *range = &state.ranges[state.range_count++];
        range->first = i;
        while (i < node_count && state.entries[i].group == state.entries[range->first].group)
            i++;
        range->end = i;
        range->is_closed = range->end - range->first == 1;
    }
    while (collapse_step(&state)) {
    }
    if (node_count > 0) collapse_cut(&state);
    return collapse_write(&state, nodes, arena, out_bundling);
}
