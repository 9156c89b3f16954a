#include "partition/spec/cluster_spec.h"

#include <string.h>

#include "base/format/quantity.h"
#include "base/format/yaml_reader.h"
#include "base/name_map.h"
#include "base/text.h"
#include "partition/spec/name_range.h"

#define CLUSTER_PORT_LIMIT 65535
#define CLUSTER_THREAD_COUNT_LIMIT 1024
#define CLUSTER_GPU_LIMIT 1023
#define CLUSTER_RATE_LIMIT 1e21 // operations or bytes a second
#define CLUSTER_LATENCY_LIMIT 3600

static const char *const cluster_device_kinds[] = {
    [PEN_CLUSTER_CPU] = "cpu",
    [PEN_CLUSTER_REFERENCE] = "reference",
    [PEN_CLUSTER_CUDA] = "cuda",
    NULL,
};

// What kinds of devices are called elsewhere.
static const pen_text_word cluster_kind_words[] = {
    {"gpu", "cuda"}, {"nvidia", "cuda"}, {NULL, NULL}};

const char *pen_cluster_device_kind_name(pen_cluster_device_kind kind) {
    return cluster_device_kinds[kind];
}

static const char *const cluster_per_names[] = {
    [PEN_CLUSTER_PER_JOB] = "job",
    [PEN_CLUSTER_PER_TASK] = "task",
    NULL,
};

static const pen_option_field cluster_device_fields[] = {
    PEN_OPTION(TEXT, pen_cluster_device_spec, name,
               "unlike any other device's; n[01-16]/cpu0 stands for 16 devices",
               .is_required = true),
    PEN_OPTION(CHOICE, pen_cluster_device_spec, per,
               "task: one in each task of a start by Slurm, MPI or Kubernetes (--launched), with "
               "the task's number behind the name; cores and memory as granted, if not given",
               .choices = cluster_per_names, .default_text = "job"),
    PEN_OPTION(CHOICE, pen_cluster_device_spec, kind,
               "cuda is a GPU of NVIDIA; reference is slow and exact, to compare with",
               .choices = cluster_device_kinds, .words = cluster_kind_words, .default_text = "cpu"),
    PEN_OPTION(TEXT, pen_cluster_device_spec, host,
               "address of the process that it is in, NAME:PORT, with the ranges of the name; this "
               "process when not given"),
    PEN_OPTION_AS("memory", BYTES, pen_cluster_device_spec, memory_bytes,
                  "most that may be used; what the machine has when not given",
                  .minimum = PEN_OPTION_FROM(1)),
    PEN_OPTION_AS("reserve", BYTES, pen_cluster_device_spec, reserve_bytes,
                  "of the memory, kept for others"),
    PEN_OPTION(INTEGER, pen_cluster_device_spec, threads,
               "threads that compute; all cores when not given",
               PEN_OPTION_RANGE(1, CLUSTER_THREAD_COUNT_LIMIT)),
    PEN_OPTION(INTEGER, pen_cluster_device_spec, gpu,
               "of kind cuda: which GPU of the machine, from 0",
               .present_offset = offsetof(pen_cluster_device_spec, has_gpu),
               PEN_OPTION_RANGE(0, CLUSTER_GPU_LIMIT)),
    PEN_OPTION(
        TEXT, pen_cluster_device_spec, model,
        "of kind cuda: what the GPU is called, as doctor names it; plans find its rates, and "
        "what was measured, by this"),
    PEN_OPTION(RATE, pen_cluster_device_spec, flops, "operations a second, for plans",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT)),
    PEN_OPTION(BANDWIDTH, pen_cluster_device_spec, memory_bandwidth,
               "bytes a second from and to its memory, for plans", .minimum = PEN_OPTION_ABOVE(0),
               .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT)),
};
static const pen_option_table cluster_device_table = {
    PEN_OPTION_FIELDS(pen_cluster_device_spec, cluster_device_fields)};
const pen_option_field pen_cluster_device_item = {.kind = PEN_OPTION_MAPPING,
                                                  .table = &cluster_device_table};

static const pen_option_field cluster_end_item = {.kind = PEN_OPTION_TEXT};
static const pen_option_field cluster_link_fields[] = {
    PEN_OPTION(LIST, pen_cluster_link_spec, between,
               "two devices by name, n[01-16]/cpu0, or pattern; both directions",
               .item = &cluster_end_item, .count_minimum = 2, .count_maximum = 2),
    PEN_OPTION(TEXT, pen_cluster_link_spec, from,
               "in place of between, one direction: from these devices"),
    PEN_OPTION(TEXT, pen_cluster_link_spec, to, "to these"),
    PEN_OPTION(BANDWIDTH, pen_cluster_link_spec, bandwidth, "of each pair of devices",
               .is_required = true, .minimum = PEN_OPTION_ABOVE(0),
               .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT)),
    PEN_OPTION(SECONDS, pen_cluster_link_spec, latency,
               "that a message without content takes while one end computes",
               .present_offset = offsetof(pen_cluster_link_spec, has_latency),
               .maximum = PEN_OPTION_TO(CLUSTER_LATENCY_LIMIT)),
    PEN_OPTION(BANDWIDTH, pen_cluster_link_spec, send,
               "bytes for each second of computing that sending takes from the device",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT)),
    PEN_OPTION(BANDWIDTH, pen_cluster_link_spec, receive, "likewise, that receiving takes",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT)),
    PEN_OPTION(SECONDS, pen_cluster_link_spec, message,
               "of computing that each message takes from either device",
               .present_offset = offsetof(pen_cluster_link_spec, has_message),
               .maximum = PEN_OPTION_TO(CLUSTER_LATENCY_LIMIT)),
};

// Either `between` or `from` and `to`: both at once would say two things.
static pen_status cluster_check_link(const void *object, const pen_option_source *source) {
    const pen_cluster_link_spec *link = object;
    const bool is_symmetric = link->between.count > 0;
    if (is_symmetric && (link->from != NULL || link->to != NULL)) {
        return pen_option_blame(source, link->from != NULL ? &link->from : &link->to,
                                pen_error(PEN_INVALID_INPUT,
                                          "links: found between together with from or to, expected "
                                          "between: [A, B], or from: A and to: B"));
    }
    if (!is_symmetric && (link->from == NULL || link->to == NULL)) {
        return pen_option_blame(source, link,
                                pen_error(PEN_INVALID_INPUT,
                                          "links: '%s' is missing, expected between: [A, B], or "
                                          "from: A and to: B",
                                          link->to != NULL     ? "from"
                                          : link->from != NULL ? "to"
                                                               : "between"));
    }
    return PEN_OK;
}

static const pen_option_table cluster_link_table = {
    PEN_OPTION_FIELDS(pen_cluster_link_spec, cluster_link_fields),
    .check = cluster_check_link,
};
const pen_option_field pen_cluster_link_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &cluster_link_table};

static const pen_option_field cluster_fields[] = {
    PEN_OPTION_AS("devices", LIST, pen_cluster_spec, written_devices, "where it runs",
                  .item = &pen_cluster_device_item, .is_required = true, .count_minimum = 1,
                  .count_maximum = PEN_CLUSTER_DEVICE_LIMIT, .may_be_file = true),
    PEN_OPTION_AS("links", LIST, pen_cluster_spec, written_links,
                  "how fast devices reach each other; later ones win",
                  .item = &pen_cluster_link_item, .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
                  .may_be_file = true),
};
const pen_option_table pen_cluster_table = {.help =
                                                "A cluster: devices, and the links between them.",
                                            PEN_OPTION_FIELDS(pen_cluster_spec, cluster_fields)};

// Ranges of an entry's name and host.
typedef struct cluster_names {
    pen_name_ranges name;
    pen_name_ranges host;
} cluster_names;

pen_status pen_cluster_spec_blame(const pen_cluster_spec *spec, const void *field,
                                  pen_status status) {
    return spec->source == NULL ? status : pen_option_blame(spec->source, field, status);
}

pen_status pen_cluster_reserve_error(const pen_cluster_device_spec *device, uint64_t memory_bytes) {
    char reserve[PEN_QUANTITY_TEXT_BYTES];
    char memory[PEN_QUANTITY_TEXT_BYTES];
    return pen_error(PEN_INVALID_INPUT,
                     "device '%.100s': found a reserve of %s, expected less than its memory, %s",
                     device->name, pen_bytes_format(device->reserve_bytes, reserve),
                     pen_bytes_format(memory_bytes, memory));
}

// "NAME" or "NAME:PORT"; names of the form [::1] may hold colons.
static bool cluster_host_is_good(const char *host) {
    const char *name_end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(name_end != NULL ? name_end : host, ':');
    if (strpbrk(host, " \t\n/") != NULL || colon == host) return false;
    int64_t port;
    if (colon == NULL) return true;
    return pen_integer_parse(colon + 1, &port) && port >= 1 && port <= CLUSTER_PORT_LIMIT;
}

static pen_status cluster_check_ranges(const cluster_names *names) {
    if (names->host.range_count > names->name.range_count) {
        return pen_error(PEN_INVALID_INPUT,
                         "found %u ranges, expected at most those of the name, %u",
                         names->host.range_count, names->name.range_count);
    }
    for (uint32_t i = 0; i < names->host.range_count; i++) {
        if (names->host.ranges[i].count == names->name.ranges[i].count) continue;
        return pen_error(PEN_INVALID_INPUT, "found a range of %u, expected %u as in the name",
                         names->host.ranges[i].count, names->name.ranges[i].count);
    }
    return PEN_OK;
}

// An error about devices[index].KEY, whose message goes on from there.
static pen_status cluster_refuse(const pen_cluster_spec *spec, uint32_t index, const char *key,
                                 const void *field, pen_status status) {
    if (pen_status_get_code(status) != PEN_INVALID_INPUT) return status;
    const pen_status whole =
        pen_error(PEN_INVALID_INPUT, "devices[%u].%s: %s", index, key, pen_status_message(status));
    pen_status_ignore(status, "its message goes on with the path before it");
    return pen_cluster_spec_blame(spec, field, whole);
}

static const pen_cluster_task cluster_own_task; // without others: this process

static uint32_t cluster_task_count(const pen_cluster_spec *spec) {
    return spec->task_count > 0 ? spec->task_count : 1;
}

static const pen_cluster_task *cluster_task(const pen_cluster_spec *spec, uint32_t index) {
    return spec->task_count > 0 ? &spec->tasks[index] : &cluster_own_task;
}

static uint32_t cluster_count_per_task(const pen_cluster_spec *spec) {
    const pen_cluster_device_spec *written = spec->written_devices.items;
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->written_devices.count; i++) {
        count += written[i].per == PEN_CLUSTER_PER_TASK;
    }
    return count;
}

const pen_cluster_device_spec *pen_cluster_spec_other_kind(const pen_cluster_spec *spec) {
    for (uint32_t d = 1; d < spec->device_count; d++) {
        if (spec->devices[d].kind != spec->devices[0].kind) return &spec->devices[d];
    }
    return NULL;
}

bool pen_cluster_spec_has_tasks(const pen_cluster_spec *spec) {
    return cluster_count_per_task(spec) > 0;
}

void pen_cluster_spec_set_task(const pen_cluster_spec *spec, const pen_cluster_task *task,
                               pen_cluster_device_spec *device) {
    const uint32_t per_task = cluster_count_per_task(spec);
    const uint32_t sharing = per_task > 0 ? per_task : 1;
    device->host = task->host;
    if (device->written->memory_bytes == 0) device->memory_bytes = task->memory_bytes / sharing;
    if (device->written->threads > 0 || task->threads == 0) return;
    device->threads = task->threads / sharing > 0 ? task->threads / sharing : 1;
}

// Where a device of each task is, follows from the task; its name is not one of several already.
static pen_status cluster_check_per(const pen_cluster_spec *spec, uint32_t index,
                                    const cluster_names *names) {
    const pen_cluster_device_spec *written = spec->written_devices.items;
    const pen_cluster_device_spec *device = &written[index];
    if (device->per != PEN_CLUSTER_PER_TASK) return PEN_OK;
    if (device->host != NULL) {
        return cluster_refuse(spec, index, "host", &device->host,
                              pen_error(PEN_INVALID_INPUT,
                                        "found \"%.100s\" together with per: task, expected one "
                                        "of the two: a task says itself where it is",
                                        device->host));
    }
    if (names->name.range_count == 0) return PEN_OK;
    return cluster_refuse(spec, index, "name", &device->name,
                          pen_error(PEN_INVALID_INPUT,
                                    "found \"%.100s\" together with per: task, expected a name "
                                    "without ranges: the task's number is put behind it",
                                    device->name));
}

static pen_status cluster_parse_names(const pen_cluster_spec *spec, uint32_t index,
                                      cluster_names *out_names) {
    const pen_cluster_device_spec *written = spec->written_devices.items;
    const pen_cluster_device_spec *device = &written[index];
    const char *host = device->host != NULL ? device->host : "";
    PEN_TRY(cluster_refuse(spec, index, "name", &device->name,
                           pen_name_ranges_parse(device->name, &out_names->name)));
    PEN_TRY(cluster_refuse(spec, index, "host", &device->host,
                           pen_name_ranges_parse(host, &out_names->host)));
    PEN_TRY(cluster_check_per(spec, index, out_names));
    return cluster_refuse(spec, index, "host", &device->host, cluster_check_ranges(out_names));
}

// Where expanded devices go.
typedef struct cluster_expansion {
    pen_cluster_spec *spec;
    pen_arena *arena;
    pen_cluster_device_spec *devices; // [spec->device_count], those of earlier entries filled
    uint32_t count;                   // filled so far
    pen_name_map map;                 // names to positions in `devices`
} cluster_expansion;

static pen_status cluster_refuse_name(const cluster_expansion *expansion, uint32_t index,
                                      const char *name, uint32_t other) {
    const pen_cluster_device_spec *written = expansion->spec->written_devices.items;
    const size_t other_index = (size_t)(expansion->devices[other].written - written);
    return pen_cluster_spec_blame(expansion->spec, &written[index].name,
                                  pen_error(PEN_INVALID_INPUT,
                                            "devices[%u].name: found \"%.100s\", which is "
                                            "devices[%zu] already, expected another name",
                                            index, name, other_index));
}

static pen_status cluster_add(cluster_expansion *expansion, uint32_t index, const char *name,
                              pen_cluster_device_spec **out_device) {
    const pen_cluster_device_spec *written = expansion->spec->written_devices.items;
    pen_cluster_device_spec *device = &expansion->devices[expansion->count];
    *device = written[index];
    device->written = &written[index];
    device->name = name;
    *out_device = device;
    const uint32_t other = pen_name_map_find(&expansion->map, name);
    if (other != PEN_NAME_MAP_NONE) return cluster_refuse_name(expansion, index, name, other);
    return pen_name_map_add(&expansion->map, name, expansion->count++);
}

static pen_status cluster_expand_tasks(cluster_expansion *expansion, uint32_t index) {
    const pen_cluster_device_spec *written = expansion->spec->written_devices.items;
    for (uint32_t t = 0; t < cluster_task_count(expansion->spec); t++) {
        pen_cluster_device_spec *device;
        const char *name;
        PEN_TRY(pen_arena_format(expansion->arena, &name, "%s%u", written[index].name, t));
        PEN_TRY(cluster_add(expansion, index, name, &device));
        device->task = t;
        pen_cluster_spec_set_task(expansion->spec, cluster_task(expansion->spec, t), device);
    }
    return PEN_OK;
}

// One entry with ranges becomes as many devices as its names stand for; each remembers the entry,
// so that errors name the line that was written.
static pen_status cluster_expand_entry(cluster_expansion *expansion, uint32_t index) {
    const pen_cluster_device_spec *items = expansion->spec->written_devices.items;
    const pen_cluster_device_spec *written = &items[index];
    cluster_names names;
    PEN_TRY(cluster_parse_names(expansion->spec, index, &names));
    if (written->per == PEN_CLUSTER_PER_TASK) return cluster_expand_tasks(expansion, index);
    for (uint32_t i = 0; i < names.name.total; i++) {
        pen_cluster_device_spec *device;
        const char *name;
        PEN_TRY(pen_name_ranges_format(&names.name, &names.name, i, expansion->arena, &name));
        PEN_TRY(cluster_add(expansion, index, name, &device));
        if (written->host == NULL) continue;
        PEN_TRY(
            pen_name_ranges_format(&names.host, &names.name, i, expansion->arena, &device->host));
        if (cluster_host_is_good(device->host)) continue;
        return cluster_refuse(expansion->spec, index, "host", &written->host,
                              pen_error(PEN_INVALID_INPUT,
                                        "found \"%.100s\", expected NAME or NAME:PORT like "
                                        "10.0.0.2:7070, a port from 1 to 65535",
                                        device->host));
    }
    return PEN_OK;
}

// Devices that all entries stand for.
static pen_status cluster_count(const pen_cluster_spec *spec, uint32_t *out_count) {
    uint64_t count = 0;
    const pen_cluster_device_spec *written = spec->written_devices.items;
    for (uint32_t i = 0; i < spec->written_devices.count; i++) {
        cluster_names names;
        PEN_TRY(cluster_parse_names(spec, i, &names));
        const bool is_per_task = written[i].per == PEN_CLUSTER_PER_TASK;
        count += is_per_task ? cluster_task_count(spec) : names.name.total;
        if (count <= PEN_CLUSTER_DEVICE_LIMIT) continue;
        return cluster_refuse(spec, i, "name", &written[i].name,
                              pen_error(PEN_INVALID_INPUT,
                                        "found \"%.100s\", with which there are %llu devices, "
                                        "expected at most %d",
                                        written[i].name, (unsigned long long)count,
                                        PEN_CLUSTER_DEVICE_LIMIT));
    }
    *out_count = (uint32_t)count;
    return PEN_OK;
}

// What a GPU may have must be said. Of tasks that are started elsewhere, several may be on one
// machine: nothing says which GPU is whose.
static pen_status cluster_check_gpu(const pen_cluster_spec *spec, uint32_t index) {
    const pen_cluster_device_spec *items = spec->written_devices.items;
    const pen_cluster_device_spec *device = &items[index];
    if (device->kind != PEN_CLUSTER_CUDA) {
        if (device->model != NULL) {
            return cluster_refuse(spec, index, "model", &device->model,
                                  pen_error(PEN_INVALID_INPUT,
                                            "found \"%.100s\" with kind %s, expected it with kind "
                                            "cuda",
                                            device->model, cluster_device_kinds[device->kind]));
        }
        if (!device->has_gpu) return PEN_OK;
        return cluster_refuse(
            spec, index, "gpu", &device->gpu,
            pen_error(PEN_INVALID_INPUT, "found %lld with kind %s, expected it with kind cuda",
                      (long long)device->gpu, cluster_device_kinds[device->kind]));
    }
    if (device->memory_bytes == 0) {
        return cluster_refuse(spec, index, "memory", &device->kind,
                              pen_error(PEN_INVALID_INPUT,
                                        "missing, expected with kind cuda how much of the GPU's "
                                        "memory may be used"));
    }
    if (device->per == PEN_CLUSTER_PER_JOB) return PEN_OK;
    return cluster_refuse(spec, index, "kind", &device->kind,
                          pen_error(PEN_INVALID_INPUT, "found cuda, expected it without per"));
}

pen_status pen_cluster_spec_complete(pen_cluster_spec *spec, const pen_option_source *source,
                                     pen_arena *arena) {
    static const pen_cluster_device_spec alone = {.name = "cpu"};
    spec->source = source;
    spec->devices = &alone;
    spec->device_count = 1;
    if (spec->written_devices.count == 0) return PEN_OK;
    cluster_expansion expansion = {.spec = spec, .arena = arena};
    PEN_TRY(cluster_count(spec, &spec->device_count));
    PEN_TRY(PEN_NEW(arena, spec->device_count, &expansion.devices));
    pen_name_map_init(&expansion.map, arena);
    for (uint32_t i = 0; i < spec->written_devices.count; i++) {
        PEN_TRY(cluster_check_gpu(spec, i));
        PEN_TRY(cluster_expand_entry(&expansion, i));
    }
    spec->devices = expansion.devices;
    return PEN_OK;
}

static pen_status cluster_from_root(const char *path, const pen_yaml_node *root,
                                    bool may_open_files, pen_arena *arena,
                                    const pen_cluster_spec **out_spec) {
    pen_cluster_spec *spec;
    const pen_option_source *source;
    const pen_option_settings settings = {.file = path, .may_open_files = may_open_files};
    PEN_TRY(PEN_NEW(arena, 1, &spec));
    PEN_TRY(pen_option_read(&pen_cluster_table, root, &settings, arena, spec, &source));
    PEN_TRY(pen_cluster_spec_complete(spec, source, arena));
    *out_spec = spec;
    return PEN_OK;
}

pen_status pen_cluster_spec_read(const char *path, pen_arena *arena,
                                 const pen_cluster_spec **out_spec) {
    const pen_yaml_node *root;
    PEN_TRY(pen_yaml_read(path, arena, &root));
    return cluster_from_root(path, root, true, arena, out_spec);
}

pen_status pen_cluster_spec_parse(const char *path, const char *bytes, size_t length,
                                  pen_arena *arena, const pen_cluster_spec **out_spec) {
    const pen_yaml_node *root;
    PEN_TRY(pen_yaml_parse(path, bytes, length, arena, &root));
    return cluster_from_root(path, root, false, arena, out_spec);
}
