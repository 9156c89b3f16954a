#include "partition/spec/cluster_spec.h"

#include <string.h>

#include "base/format/quantity.h"
#include "base/format/yaml_reader.h"
#include "base/name_map.h"
#include "base/text.h"
#include "partition/costs/cluster.h"
#include "partition/spec/name_range.h"

#define CLUSTER_PORT_LIMIT 65535

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

static pen_status cluster_parse_names(const pen_cluster_spec *spec, uint32_t index,
                                      cluster_names *out_names) {
    const pen_cluster_device_spec *written = spec->written_devices.items;
    const pen_cluster_device_spec *device = &written[index];
    const char *host = device->host != NULL ? device->host : "";
    PEN_TRY(cluster_refuse(spec, index, "name", &device->name,
                           pen_name_ranges_parse(device->name, &out_names->name)));
    PEN_TRY(cluster_refuse(spec, index, "host", &device->host,
                           pen_name_ranges_parse(host, &out_names->host)));
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

static pen_status cluster_expand_entry(cluster_expansion *expansion, uint32_t index) {
    const pen_cluster_device_spec *items = expansion->spec->written_devices.items;
    const pen_cluster_device_spec *written = &items[index];
    cluster_names names;
    PEN_TRY(cluster_parse_names(expansion->spec, index, &names));
    for (uint32_t i = 0; i < names.name.total; i++) {
        pen_cluster_device_spec *device = &expansion->devices[expansion->count];
        *device = *written;
        device->written = written;
        PEN_TRY(
            pen_name_ranges_format(&names.name, &names.name, i, expansion->arena, &device->name));
        const uint32_t other = pen_name_map_find(&expansion->map, device->name);
        if (other != PEN_NAME_MAP_NONE) {
            return cluster_refuse_name(expansion, index, device->name, other);
        }
        PEN_TRY(pen_name_map_add(&expansion->map, device->name, expansion->count));
        expansion->count += 1;
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
        count += names.name.total;
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
