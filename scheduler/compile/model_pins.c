#include "scheduler/compile/model_pins.h"

#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

#define PINS_NAME_BYTES 128
#define PINS_NAMES_SHOWN 8

// What TensorFlow's form says; -1 where it says no number.
typedef struct pins_place {
    char job[PINS_NAME_BYTES];
    int64_t task, device;
} pins_place;

static int64_t pins_number(const char *digits) {
    int64_t number = 0;
    const char *c = digits;
    for (; *c >= '0' && *c <= '9' && number < INT32_MAX; c++) {
        number = number * 10 + (*c - '0');
    }
    return c == digits ? -1 : number;
}

static pins_place pins_read(const char *text) {
    pins_place place = {.task = -1, .device = -1};
    for (const char *part = text; *part != '\0';) {
        if (*part == '/') part++;
        const size_t length = strcspn(part, "/");
        const char *colon = memchr(part, ':', length);
        if (colon != NULL && strncmp(part, "job:", 4) == 0 && length - 4 < PINS_NAME_BYTES) {
            memcpy(place.job, colon + 1, length - 4);
            place.job[length - 4] = '\0';
        } else if (colon != NULL && strncmp(part, "task:", 5) == 0) {
            place.task = pins_number(colon + 1);
        } else if (colon != NULL && strncmp(part, "replica:", 8) != 0) {
            const char *last = memchr(colon + 1, ':', length - (size_t)(colon + 1 - part));
            place.device = pins_number(last != NULL ? last + 1 : colon + 1);
        }
        part += length;
    }
    return place;
}

// Whether a job of TensorFlow may be that device: it has '_' for what jobs cannot have.
static bool pins_is_name(const char *name, const char *device) {
    for (; *name != '\0' && *device != '\0'; name++, device++) {
        const bool is_sign = !(*device >= 'a' && *device <= 'z') &&
                             !(*device >= 'A' && *device <= 'Z') &&
                             !(*device >= '0' && *device <= '9');
        if (*name != *device && !(*name == '_' && is_sign)) return false;
    }
    return *name == *device;
}

static bool pins_find(const pen_cluster *cluster, const char *name, uint32_t *out_device) {
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (!pins_is_name(name, cluster->devices[d].name)) continue;
        *out_device = d;
        return true;
    }
    return false;
}

static pen_status pins_refuse(const char *text, const pen_cluster *cluster) {
    char names[512] = "";
    size_t at = 0;
    for (uint32_t d = 0; d < cluster->device_count && d < PINS_NAMES_SHOWN; d++) {
        const int written = snprintf(names + at, sizeof names - at, "%s%.50s", d > 0 ? ", " : "",
                                     cluster->devices[d].name);
        at += written > 0 ? (size_t)written : 0;
    }
    return pen_error(
        PEN_NOT_FOUND, "the model asks for device '%.100s'; the cluster has %u devices: %s%s", text,
        cluster->device_count, names, cluster->device_count > PINS_NAMES_SHOWN ? ", …" : "");
}

pen_status pen_model_pin_device(const char *text, const pen_cluster *cluster,
                                uint32_t *out_device) {
    char name[PINS_NAME_BYTES + 32];
    const pins_place place = pins_read(text);
    if (pins_find(cluster, text, out_device)) return PEN_OK;
    snprintf(name, sizeof name, "%s%lld", place.job, (long long)place.task);
    if (place.job[0] != '\0' && place.task >= 0 && pins_find(cluster, name, out_device)) {
        return PEN_OK;
    }
    if (place.job[0] != '\0' && pins_find(cluster, place.job, out_device)) return PEN_OK;
    const int64_t index = place.job[0] != '\0' ? place.task : place.device;
    if (index < 0 || index >= (int64_t)cluster->device_count) return pins_refuse(text, cluster);
    *out_device = (uint32_t)index;
    return PEN_OK;
}

static pen_status pins_fill(const pen_program *program, const pen_cluster *cluster,
                            pen_constraint_pin *pins, uint32_t *count) {
    for (uint32_t i = 0; i < program->pin_count; i++) {
        const pen_model_pin *pin = &program->pins[i];
        pen_node_id node;
        uint32_t device = 0;
        const pen_status status = pen_graph_find_node(program->graph, pin->node, &node);
        if (pen_status_get_code(status) == PEN_NOT_FOUND) {
            pen_status_ignore(status, "a pass made another of it");
            continue;
        }
        PEN_TRY(status);
        PEN_TRY(pen_status_add_context(pen_model_pin_device(pin->device, cluster, &device),
                                       "in node '%.100s'", pin->node));
        pins[(*count)++] = (pen_constraint_pin){pin->node, cluster->devices[device].name};
    }
    return PEN_OK;
}

pen_status pen_model_pins_add(const pen_program *program, const pen_cluster *cluster,
                              pen_arena *arena, pen_constraints *constraints) {
    pen_constraint_pin *pins;
    uint32_t count = constraints->pins.count;
    if (program->pin_count == 0) return PEN_OK;
    PEN_TRY(PEN_NEW(arena, (size_t)count + program->pin_count, &pins));
    if (count > 0) memcpy(pins, constraints->pins.items, count * sizeof *pins);
    PEN_TRY(pins_fill(program, cluster, pins, &count));
    constraints->pins = (pen_option_list){.items = pins, .count = count};
    return PEN_OK;
}
