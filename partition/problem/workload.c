#include "partition/problem/workload.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json_reader.h"
#include "base/limits.h"
#include "base/system/file.h"

// Where in the file: "nodes[12].size".
typedef struct workload_place {
    const char *file;
    const char *list; // "nodes", "edges"; NULL: the top
    size_t index;
} workload_place;

PEN_PRINTF(3, 4)
static pen_status workload_blame(const workload_place *place, const char *key, const char *format,
                                 ...) {
    char what[192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (place->list == NULL) {
        return pen_error(PEN_INVALID_INPUT, "%s: %s: %s", place->file, key, what);
    }
    return pen_error(PEN_INVALID_INPUT, "%s: %s[%zu].%s: %s", place->file, place->list,
                     place->index, key, what);
}

// For messages that say what was found.
static const char *workload_kind_name(const json_t *value) {
    if (value == NULL) return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

static pen_status workload_blame_kind(const workload_place *place, const char *key,
                                      const char *expected, const json_t *found) {
    return workload_blame(place, key, "expected %s, found %s", expected, workload_kind_name(found));
}

// A number from 0 to PEN_PROBLEM_COST_LIMIT.
static pen_status workload_get_amount(const workload_place *place, const json_t *object,
                                      const char *key, double *out_number) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) return workload_blame_kind(place, key, "a number", value);
    const double number = json_number_value(value);
    if (!(number >= 0.0) || number >= PEN_PROBLEM_COST_LIMIT) {
        return workload_blame(place, key, "expected a number from 0 to %g, found %g",
                              PEN_PROBLEM_COST_LIMIT, number);
    }
    *out_number = number;
    return PEN_OK;
}

// An integer in [minimum, maximum]; 3.0 is one.
static pen_status workload_get_integer(const workload_place *place, const json_t *object,
                                       const char *key, int64_t minimum, int64_t maximum,
                                       int64_t *out_number) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) return workload_blame_kind(place, key, "an integer", value);
    const double real = json_number_value(value);
    const bool is_integer = json_is_integer(value) || (real == floor(real) && fabs(real) < 0x1p53);
    int64_t number = 0;
    if (is_integer) number = json_is_integer(value) ? json_integer_value(value) : (int64_t)real;
    if (!is_integer || number < minimum || number > maximum) {
        return workload_blame(place, key, "expected an integer from %lld to %lld, found %.17g",
                              (long long)minimum, (long long)maximum, real);
    }
    *out_number = number;
    return PEN_OK;
}

static pen_status workload_get_flag(const workload_place *place, const json_t *object,
                                    const char *key, bool *out_flag) {
    const json_t *value = json_object_get(object, key);
    if (json_is_boolean(value)) {
        *out_flag = json_is_true(value);
        return PEN_OK;
    }
    if (!json_is_number(value)) {
        return workload_blame_kind(place, key, "0, 1, false or true", value);
    }
    const double number = json_number_value(value);
    if (number != 0.0 && number != 1.0) {
        return workload_blame(place, key, "expected 0, 1, false or true, found %.17g", number);
    }
    *out_flag = number != 0.0;
    return PEN_OK;
}

static pen_status workload_get_list(const workload_place *place, const json_t *object,
                                    const char *key, size_t limit, const json_t **out_list) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value)) return workload_blame_kind(place, key, "a list", value);
    if (json_array_size(value) > limit) {
        return workload_blame(place, key, "%zu entries, at most %zu are possible",
                              json_array_size(value), limit);
    }
    *out_list = value;
    return PEN_OK;
}

// ---- ids

typedef struct workload_id {
    int64_t id;
    uint32_t node;
} workload_id;

// A reader at work.
typedef struct workload_reader {
    const char *name;
    pen_arena *arena;
    pen_workload *workload;
    workload_id *ids; // [node_count], ascending
    pen_problem_node *nodes;
    pen_problem_edge *edges;
    double *compute;
} workload_reader;

static int workload_compare_ids(const void *left, const void *right) {
    const workload_id *a = left, *b = right;
    if (a->id != b->id) return a->id < b->id ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static bool workload_find(const workload_id *ids, uint32_t count, int64_t id, uint32_t *out_node) {
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (ids[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == count || ids[low].id != id) return false;
    *out_node = ids[low].node;
    return true;
}

static pen_status workload_sort_ids(const pen_workload *workload, pen_arena *arena,
                                    workload_id **out_ids) {
    const uint32_t count = workload->given.node_count;
    workload_id *ids;
    PEN_TRY(PEN_NEW(arena, count, &ids));
    for (uint32_t v = 0; v < count; v++)
        ids[v] = (workload_id){workload->id_of_node[v], v};
    if (count > 1) qsort(ids, count, sizeof *ids, workload_compare_ids);
    *out_ids = ids;
    return PEN_OK;
}

// ---- parts of the file

// The benchmark has two kinds of devices: accelerators with memory, and cores that run any number
// of nodes at once.
static pen_status workload_read_devices(workload_reader *reader, const json_t *root) {
    const workload_place top = {.file = reader->name};
    pen_workload *workload = reader->workload;
    int64_t accelerator_count = 0, core_count = 0;
    double bytes = 0.0;
    PEN_TRY(workload_get_integer(&top, root, "maxFPGAs", 0, PEN_PROBLEM_DEVICE_LIMIT / 2,
                                 &accelerator_count));
    PEN_TRY(
        workload_get_integer(&top, root, "maxCPUs", 0, PEN_PROBLEM_DEVICE_LIMIT / 2, &core_count));
    PEN_TRY(workload_get_amount(&top, root, "maxSizePerFPGA", &bytes));
    const uint32_t count = (uint32_t)(accelerator_count + core_count);
    if (count == 0) return workload_blame(&top, "maxFPGAs and maxCPUs", "there is no device");
    pen_problem_device *devices;
    PEN_TRY(PEN_NEW(reader->arena, count, &devices));
    for (uint32_t d = 0; d < count; d++) {
        devices[d] =
            d < accelerator_count
                ? (pen_problem_device){.kind = 0,
                                       .slowness = 1.0,
                                       .send = 1.0,
                                       .receive = 1.0,
                                       .bytes_limit = bytes}
                : (pen_problem_device){
                      .kind = 1, .slowness = 1.0, .bytes_limit = INFINITY, .is_parallel = true};
    }
    workload->accelerator_count = (uint32_t)accelerator_count;
    workload->core_count = (uint32_t)core_count;
    workload->given.devices = devices;
    workload->given.device_count = count;
    workload->given.kind_count = 2;
    return PEN_OK;
}

// Entries of a list are objects.
static pen_status workload_check_entry(const workload_place *place, const json_t *entry) {
    if (json_is_object(entry)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "%s: %s[%zu]: expected an object, found %s", place->file,
                     place->list, place->index, workload_kind_name(entry));
}

// What an accelerator does not support costs infinitely much there.
static pen_status workload_read_node(workload_reader *reader, const workload_place *place,
                                     const json_t *object) {
    PEN_TRY(workload_check_entry(place, object));
    const uint32_t count = reader->workload->given.node_count;
    pen_problem_node *node = &reader->nodes[place->index];
    bool is_supported, is_backward;
    *node = (pen_problem_node){.color = PEN_PROBLEM_ANY, .pin = PEN_PROBLEM_ANY};
    PEN_TRY(workload_get_integer(place, object, "id", INT64_MIN, INT64_MAX,
                                 &reader->workload->id_of_node[place->index]));
    PEN_TRY(workload_get_flag(place, object, "supportedOnFpga", &is_supported));
    PEN_TRY(workload_get_flag(place, object, "isBackwardNode", &is_backward));
    if (is_backward) node->role = PEN_ROLE_BACKWARD_INPUT;
    PEN_TRY(workload_get_amount(place, object, "fpgaLatency", &reader->compute[place->index]));
    PEN_TRY(
        workload_get_amount(place, object, "cpuLatency", &reader->compute[count + place->index]));
    if (!is_supported) reader->compute[place->index] = INFINITY;
    if (json_object_get(object, "size") != NULL) {
        PEN_TRY(workload_get_amount(place, object, "size", &node->bytes));
    }
    return PEN_OK;
}

// Numbers the colour classes 0, 1, … in ascending order of their names.
static pen_status workload_read_colors(workload_reader *reader, const json_t *list) {
    workload_id *colors;
    const uint32_t count = reader->workload->given.node_count;
    uint32_t found = 0;
    PEN_TRY(PEN_NEW(reader->arena, count, &colors));
    for (uint32_t v = 0; v < count; v++) {
        const json_t *object = json_array_get(list, v);
        const workload_place place = {reader->name, "nodes", v};
        if (json_object_get(object, "colorClass") == NULL) continue;
        PEN_TRY(workload_get_integer(&place, object, "colorClass", INT64_MIN, INT64_MAX,
                                     &colors[found].id));
        colors[found++].node = v;
    }
    if (found > 1) qsort(colors, found, sizeof *colors, workload_compare_ids);
    uint32_t color = 0;
    for (uint32_t i = 0; i < found; i++) {
        if (i > 0 && colors[i].id != colors[i - 1].id) color++;
        reader->nodes[colors[i].node].color = color;
    }
    return PEN_OK;
}

// Ids are any integers and need not be in order, so they are sorted for the edges to find them.
static pen_status workload_read_nodes(workload_reader *reader, const json_t *root) {
    const workload_place top = {.file = reader->name};
    pen_workload *workload = reader->workload;
    const json_t *list = NULL;
    PEN_TRY(workload_get_list(&top, root, "nodes", PEN_NODE_COUNT_LIMIT, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    workload->given.node_count = count;
    PEN_TRY(PEN_NEW(reader->arena, count, &reader->nodes));
    PEN_TRY(PEN_NEW(reader->arena, (size_t)count * 2, &reader->compute));
    PEN_TRY(PEN_NEW(reader->arena, count, &workload->id_of_node));
    workload->given.nodes = reader->nodes;
    workload->given.compute = reader->compute;
    for (uint32_t v = 0; v < count; v++) {
        const workload_place place = {reader->name, "nodes", v};
        PEN_TRY(workload_read_node(reader, &place, json_array_get(list, v)));
    }
    PEN_TRY(workload_read_colors(reader, list));
    PEN_TRY(workload_sort_ids(workload, reader->arena, &reader->ids));
    for (uint32_t i = 1; i < count; i++) {
        if (reader->ids[i].id != reader->ids[i - 1].id) continue;
        const workload_place place = {reader->name, "nodes", reader->ids[i].node};
        return workload_blame(&place, "id", "another node has the same");
    }
    return PEN_OK;
}

static pen_status workload_read_end(const workload_reader *reader, const workload_place *place,
                                    const json_t *object, const char *key, uint32_t *out_node) {
    int64_t id = 0;
    PEN_TRY(workload_get_integer(place, object, key, INT64_MIN, INT64_MAX, &id));
    if (workload_find(reader->ids, reader->workload->given.node_count, id, out_node)) return PEN_OK;
    return workload_blame(place, key, "there is no node %lld", (long long)id);
}

// Costs of one source may differ by this much and are then taken for equal.
#define WORKLOAD_COST_TOLERANCE 1e-6

// The benchmark gives each edge a cost, but a node's result is sent once: all edges of a node must
// have the same.
static pen_status workload_read_edges(workload_reader *reader, const json_t *root) {
    const workload_place top = {.file = reader->name};
    const json_t *list = NULL;
    bool *has_cost; // of each node
    PEN_TRY(workload_get_list(&top, root, "edges", PEN_PROBLEM_EDGE_LIMIT, &list));
    const uint32_t count = (uint32_t)json_array_size(list);
    PEN_TRY(PEN_NEW(reader->arena, count, &reader->edges));
    PEN_TRY(PEN_NEW(reader->arena, reader->workload->given.node_count, &has_cost));
    for (uint32_t e = 0; e < count; e++) {
        const workload_place place = {reader->name, "edges", e};
        const json_t *object = json_array_get(list, e);
        pen_problem_edge *edge = &reader->edges[e];
        double cost = 0.0;
        PEN_TRY(workload_check_entry(&place, object));
        PEN_TRY(workload_read_end(reader, &place, object, "sourceId", &edge->source));
        PEN_TRY(workload_read_end(reader, &place, object, "destId", &edge->target));
        PEN_TRY(workload_get_amount(&place, object, "cost", &cost));
        pen_problem_node *source = &reader->nodes[edge->source];
        if (has_cost[edge->source] && fabs(source->transfer - cost) > WORKLOAD_COST_TOLERANCE) {
            return workload_blame(
                &place, "cost", "%.17g, but another edge of node %lld costs %.17g", cost,
                (long long)reader->workload->id_of_node[edge->source], source->transfer);
        }
        if (!has_cost[edge->source]) source->transfer = cost;
        has_cost[edge->source] = true;
    }
    reader->workload->given.edges = reader->edges;
    reader->workload->given.edge_count = count;
    return PEN_OK;
}

static pen_status workload_name_all(workload_reader *reader) {
    pen_workload *workload = reader->workload;
    const char **names, **device_names;
    PEN_TRY(PEN_NEW(reader->arena, workload->given.node_count, &names));
    for (uint32_t v = 0; v < workload->given.node_count; v++) {
        PEN_TRY(
            pen_arena_format(reader->arena, &names[v], "%lld", (long long)workload->id_of_node[v]));
    }
    PEN_TRY(PEN_NEW(reader->arena, workload->given.device_count, &device_names));
    for (uint32_t d = 0; d < workload->given.device_count; d++) {
        const bool is_core = d >= workload->accelerator_count;
        PEN_TRY(pen_arena_format(reader->arena, &device_names[d], "%u (%s)", d,
                                 is_core ? "core" : "accelerator"));
    }
    workload->given.names = names;
    workload->given.device_names = device_names;
    return PEN_OK;
}

static pen_status workload_read_root(workload_reader *reader, const json_t *root) {
    PEN_TRY(PEN_NEW(reader->arena, 1, &reader->workload));
    if (!json_is_object(root)) {
        return pen_error(PEN_INVALID_INPUT, "%s: expected an object, found %s", reader->name,
                         workload_kind_name(root));
    }
    PEN_TRY(workload_read_devices(reader, root));
    PEN_TRY(workload_read_nodes(reader, root));
    PEN_TRY(workload_read_edges(reader, root));
    return workload_name_all(reader);
}

static pen_status workload_load(const char *name, const char *bytes, size_t length,
                                json_t **out_root) {
    if (length > PEN_WORKLOAD_BYTES_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s: %zu bytes, at most %llu are possible", name,
                         length, PEN_WORKLOAD_BYTES_LIMIT);
    }
    return pen_json_load(name, bytes, length, PEN_INVALID_INPUT, out_root);
}

pen_status pen_workload_parse(const char *name, const char *bytes, size_t length, pen_arena *arena,
                              pen_workload **out_workload) {
    json_t *root = NULL;
    workload_reader reader = {.name = name, .arena = arena};
    pen_status status = workload_load(name, bytes, length, &root);
    if (status == PEN_OK) status = workload_read_root(&reader, root);
    if (status == PEN_OK) *out_workload = reader.workload;
    json_decref(root);
    return status;
}

pen_status pen_workload_read(const char *path, pen_arena *arena, pen_workload **out_workload) {
    pen_mapping mapping = {0};
    pen_status status = pen_mapping_open(path, &mapping);
    if (status == PEN_OK) {
        status = pen_workload_parse(path, (const char *)mapping.bytes, mapping.length, arena,
                                    out_workload);
    }
    pen_mapping_close(&mapping);
    return status;
}

// ---- placements

void pen_workload_write_placement(const pen_workload *workload, const uint32_t *device_of_node,
                                  pen_json_writer *json) {
    pen_json_key_object(json, "placement");
    for (uint32_t v = 0; v < workload->given.node_count; v++) {
        char id[24];
        snprintf(id, sizeof id, "%lld", (long long)workload->id_of_node[v]);
        pen_json_key_unsigned(json, id, device_of_node[v]);
    }
    pen_json_end_object(json);
}

// An object of ids and devices, alone or as `place --json` prints it.
static pen_status workload_read_devices_of_nodes(const pen_workload *workload, const char *path,
                                                 json_t *root, pen_arena *arena,
                                                 uint32_t *out_device_of_node) {
    workload_id *ids;
    PEN_TRY(workload_sort_ids(workload, arena, &ids));
    for (uint32_t v = 0; v < workload->given.node_count; v++) {
        out_device_of_node[v] = PEN_PROBLEM_ANY;
    }
    json_t *map = json_object_get(root, "placement");
    if (map == NULL) map = root;
    if (!json_is_object(map)) {
        return pen_error(PEN_INVALID_INPUT, "%s: expected an object of node ids, found %s", path,
                         workload_kind_name(map));
    }
    const workload_place top = {.file = path};
    for (void *i = json_object_iter(map); i != NULL; i = json_object_iter_next(map, i)) {
        const char *key = json_object_iter_key(i);
        char written[24]; // the id as it is written here: no other spelling is one
        uint32_t node = 0;
        int64_t device = 0;
        const long long id = strtoll(key, NULL, 10);
        snprintf(written, sizeof written, "%lld", id);
        if (strcmp(key, written) != 0 ||
            !workload_find(ids, workload->given.node_count, id, &node)) {
            return pen_error(PEN_INVALID_INPUT, "%s: there is no node '%.40s'", path, key);
        }
        PEN_TRY(workload_get_integer(&top, map, key, 0, workload->given.device_count - 1, &device));
        out_device_of_node[node] = (uint32_t)device;
    }
    return PEN_OK;
}

pen_status pen_workload_parse_placement(const pen_workload *workload, const char *name,
                                        const char *bytes, size_t length, pen_arena *arena,
                                        uint32_t *out_device_of_node) {
    json_t *root = NULL;
    pen_status status = workload_load(name, bytes, length, &root);
    if (status == PEN_OK) {
        status = workload_read_devices_of_nodes(workload, name, root, arena, out_device_of_node);
    }
    json_decref(root);
    return status;
}

pen_status pen_workload_read_placement(const pen_workload *workload, const char *path,
                                       pen_arena *arena, uint32_t *out_device_of_node) {
    pen_mapping mapping = {0};
    pen_status status = pen_mapping_open(path, &mapping);
    if (status == PEN_OK) {
        status = pen_workload_parse_placement(workload, path, (const char *)mapping.bytes,
                                              mapping.length, arena, out_device_of_node);
    }
    pen_mapping_close(&mapping);
    return status;
}
