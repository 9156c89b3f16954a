#include "partition/costs/cluster_build.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/name_map.h"
#include "base/text.h"
#include "partition/costs/cluster_links.h"
#include "partition/costs/gpu_models.h"
#include "partition/spec/name_match.h"

// Where a device is. Devices with equal numbers are in one process, or on one host; number 0 is
// this process, this host.
typedef struct cluster_seat {
    uint32_t process;
    uint32_t host;
    const char *host_name; // "": this one
} cluster_seat;

typedef struct cluster_builder {
    const pen_machine *machine;
    const pen_cluster_spec *spec;
    const pen_cost_table *costs; // or NULL
    pen_arena *arena;
    cluster_seat *seats;         // [device_count]
    pen_cluster_device *devices; // [device_count]
    uint64_t bytes_share;        // for a device of this host that states no memory
    uint32_t thread_share;       // for one that states no threads
    double core_share;           // cores to each thread of this host's devices, 1 at most
    bool has_core_left;          // this host's devices do not take all of its cores
} cluster_builder;

const char *pen_figure_source_name(pen_figure_source source) {
    static const char *const names[] = {
        [PEN_FIGURE_ASSUMED] = "assumed",
        [PEN_FIGURE_STATED] = "stated",
        [PEN_FIGURE_MEASURED] = "measured",
    };
    return names[source];
}

// ---- where devices are

// The host without its port; "" for this one.
static pen_status cluster_host_name(const char *host, pen_arena *arena, const char **out_name) {
    const char *name_end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(name_end != NULL ? name_end : host, ':');
    const size_t length = colon != NULL ? (size_t)(colon - host) : strlen(host);
    PEN_TRY(pen_arena_copy_text(arena, host, length, out_name));
    const bool is_here = strcmp(*out_name, "localhost") == 0 || strcmp(*out_name, "[::1]") == 0 ||
                         strncmp(*out_name, "127.", 4) == 0;
    if (is_here) *out_name = "";
    return PEN_OK;
}

// The number of a name: its place among those seen before, or the next.
static pen_status cluster_number(pen_name_map *map, const char *name, uint32_t *out_number) {
    *out_number = pen_name_map_find(map, name);
    if (*out_number != PEN_NAME_MAP_NONE) return PEN_OK;
    *out_number = map->count;
    return pen_name_map_add(map, name, map->count);
}

// Which devices share a process and which a host: default links and shares of memory follow from
// it. A started device is a process of its own.
static pen_status cluster_seat_devices(cluster_builder *builder) {
    pen_name_map processes;
    pen_name_map hosts;
    uint32_t zero;
    pen_name_map_init(&processes, builder->arena);
    pen_name_map_init(&hosts, builder->arena);
    PEN_TRY(cluster_number(&processes, "", &zero));
    PEN_TRY(cluster_number(&hosts, "", &zero));
    PEN_TRY(PEN_NEW(builder->arena, builder->spec->device_count, &builder->seats));
    for (uint32_t i = 0; i < builder->spec->device_count; i++) {
        const char *host = builder->spec->devices[i].host;
        const char *name = "";
        if (host == NULL) host = "";
        PEN_TRY(cluster_host_name(host, builder->arena, &name));
        if (pen_host_is_started(host)) { // a process of its own
            PEN_TRY(pen_arena_format(builder->arena, &host, "localhost of %u", i));
        }
        builder->seats[i].host_name = name;
        PEN_TRY(cluster_number(&processes, host, &builder->seats[i].process));
        PEN_TRY(cluster_number(&hosts, name, &builder->seats[i].host));
    }
    return PEN_OK;
}

// ---- memory and threads

// What the devices of this host that state nothing get of what it has.
static void cluster_share(cluster_builder *builder) {
    uint64_t bytes_stated = 0;
    uint64_t threads_stated = 0;
    uint32_t bytes_open = 0;
    uint32_t threads_open = 0;
    for (uint32_t i = 0; i < builder->spec->device_count; i++) {
        const pen_cluster_device_spec *device = &builder->spec->devices[i];
        if (builder->seats[i].host != 0) continue;
        const bool is_of_host = device->kind != PEN_CLUSTER_CUDA; // a GPU has memory of its own
        bytes_open += is_of_host && device->memory_bytes == 0;
        threads_open += device->threads == 0;
        threads_stated += (uint64_t)device->threads;
        if (is_of_host && !pen_u64_add(bytes_stated, device->memory_bytes, &bytes_stated)) {
            bytes_stated = UINT64_MAX;
        }
    }
    const uint64_t bytes = builder->machine->memory_bytes_allowed;
    const uint64_t cores = builder->machine->core_count_allowed;
    const uint64_t bytes_left = bytes - pen_min_u64(bytes, bytes_stated);
    const uint64_t cores_left = cores - pen_min_u64(cores, threads_stated);
    builder->bytes_share = bytes_open > 0 ? bytes_left / bytes_open : 0;
    builder->thread_share =
        threads_open > 0 ? (uint32_t)pen_max_u64(1, cores_left / threads_open) : 1;
    const double threads =
        (double)threads_stated + (double)threads_open * (double)builder->thread_share;
    builder->core_share = threads > (double)cores ? (double)cores / threads : 1.0;
    builder->has_core_left = threads < (double)cores;
}

// Of another host nothing can be asked, so its memory must be stated; of this one it is shared out.
static pen_status cluster_refuse_memory(const cluster_builder *builder, uint32_t index) {
    const pen_cluster_device_spec *spec = &builder->spec->devices[index];
    const pen_cluster_device_spec *blamed = spec->written;
    char bytes[PEN_QUANTITY_TEXT_BYTES];
    if (builder->seats[index].host != 0) {
        return pen_cluster_spec_blame(
            builder->spec, blamed,
            pen_error(PEN_INVALID_INPUT,
                      "devices: 'memory' of '%.100s' is missing, expected "
                      "a size like 12GiB: what %.100s has cannot be asked "
                      "from here",
                      spec->name, spec->host));
    }
    return pen_cluster_spec_blame(
        builder->spec, blamed,
        pen_error(PEN_DOES_NOT_FIT,
                  "devices: no memory is left for '%.100s': this machine grants %s, and other "
                  "devices of it state as much",
                  spec->name, pen_bytes_format(builder->machine->memory_bytes_allowed, bytes)));
}

static pen_status cluster_set_memory(const cluster_builder *builder, uint32_t index) {
    const pen_cluster_device_spec *spec = &builder->spec->devices[index];
    pen_cluster_device *device = &builder->devices[index];
    uint64_t bytes = spec->memory_bytes;
    device->bytes_source = PEN_FIGURE_STATED;
    if (bytes == 0) {
        bytes = builder->seats[index].host == 0 ? builder->bytes_share : 0;
        device->bytes_source = PEN_FIGURE_MEASURED;
    }
    if (bytes == 0) return cluster_refuse_memory(builder, index);
    if (spec->reserve_bytes >= bytes) {
        return pen_cluster_spec_blame(builder->spec, &spec->written->reserve_bytes,
                                      pen_cluster_reserve_error(spec, bytes));
    }
    device->bytes_limit = bytes - spec->reserve_bytes;
    return PEN_OK;
}

static void cluster_set_threads(const cluster_builder *builder, uint32_t index) {
    const pen_cluster_device_spec *spec = &builder->spec->devices[index];
    pen_cluster_device *device = &builder->devices[index];
    if (spec->threads > 0) {
        device->threads = device->threads_stated = (uint32_t)spec->threads;
    } else if (builder->seats[index].host == 0) {
        device->threads = builder->thread_share;
    } else {
        device->threads = builder->machine->core_count_allowed;
    }
}

// ---- rates

// What is known of one rate; 0 for what is not.
typedef struct cluster_rate {
    double measured;
    double stated;
    double assumed;
} cluster_rate;

// What was measured here says less of another host than what its user states, and is a guess there.
static double cluster_choose_rate(const cluster_rate *rate, bool is_measured_there,
                                  pen_figure_source *out_source) {
    const bool is_measured = rate->measured > 0 && (is_measured_there || rate->stated == 0);
    *out_source = is_measured && is_measured_there ? PEN_FIGURE_MEASURED
                  : rate->stated > 0               ? PEN_FIGURE_STATED
                                                   : PEN_FIGURE_ASSUMED;
    return is_measured ? rate->measured : rate->stated > 0 ? rate->stated : rate->assumed;
}

// What is assumed of a device with so many cores of its own.
static pen_gpu_model cluster_assume_rates(const pen_cluster_device_spec *spec, double cores) {
    pen_gpu_model rates = {"", PEN_ASSUMED_FLOPS_PER_THREAD * cores, PEN_ASSUMED_MEMORY_BANDWIDTH};
    const pen_gpu_model *known = spec->model == NULL ? NULL : pen_gpu_model_find(spec->model);
    switch (spec->kind) {
    case PEN_CLUSTER_CPU:
        break;
    case PEN_CLUSTER_REFERENCE:
        rates.flops = PEN_ASSUMED_REFERENCE_FLOPS;
        break;
    case PEN_CLUSTER_CUDA:
        rates = (pen_gpu_model){"", PEN_ASSUMED_GPU_FLOPS, PEN_ASSUMED_GPU_BANDWIDTH};
        if (known != NULL) rates = *known;
        break;
    }
    return rates;
}

// Measured, stated or assumed, in an order that differs for this machine and others. More threads
// than cores share the cores.
static void cluster_set_rates(const cluster_builder *builder, uint32_t index) {
    const pen_cluster_device_spec *spec = &builder->spec->devices[index];
    pen_cluster_device *device = &builder->devices[index];
    const pen_cost_rates none = {0};
    const pen_cost_rates *measured = NULL;
    const bool is_here = builder->seats[index].host == 0;
    const char *kind = pen_cluster_cost_kind(device);
    const uint32_t threads = pen_cluster_cost_threads(device);
    if (builder->costs != NULL) {
        measured = pen_cost_table_find_rates_at(builder->costs, builder->seats[index].host_name,
                                                kind, threads);
    }
    const bool is_measured_there = measured != NULL;
    if (builder->costs != NULL && measured == NULL) { // a guess
        measured = pen_cost_table_find_rates(builder->costs, kind, threads);
    }
    if (measured == NULL) measured = &none;
    const double core_share = is_here ? builder->core_share : 1.0;
    const pen_gpu_model assumed = cluster_assume_rates(spec, device->threads * core_share);
    const cluster_rate flops = {measured->flops, spec->flops, assumed.flops};
    const cluster_rate bytes = {measured->memory_bandwidth, spec->memory_bandwidth,
                                assumed.memory_bandwidth};
    device->flops_stated = spec->flops;
    device->memory_bandwidth_stated = spec->memory_bandwidth;
    device->flops = cluster_choose_rate(&flops, is_measured_there, &device->flops_source);
    device->memory_bandwidth =
        cluster_choose_rate(&bytes, is_measured_there, &device->memory_bandwidth_source);
}

// ---- links

pen_assumed_link pen_cluster_assumed_link(pen_carrier carrier) {
    static const pen_assumed_link links[] = {
        [PEN_CARRIER_MEMORY] = {.bandwidth = 12e9, .latency = 15e-6, .latency_idle = 15e-6},
        [PEN_CARRIER_RING] = {8e9, 1.9e-3, 30e-6, 14e9, 14e9, 11e-6},
        [PEN_CARRIER_LOOPBACK] = {3.2e9, 1.9e-3, 43e-6, 4.2e9, 5.6e9, 16e-6},
        [PEN_CARRIER_LOOPBACK_TLS] = {1.4e9, 1.9e-3, 50e-6, 1.65e9, 1.9e9, 22e-6},
        [PEN_CARRIER_NETWORK] = {1e9 / 8, 2e-3, 2e-3, 5e9, 6.5e9, 16e-6},
        [PEN_CARRIER_NETWORK_TLS] = {1e9 / 8, 2e-3, 2e-3, 1.9e9, 2e9, 22e-6},
    };
    return links[carrier];
}

static pen_carrier cluster_carrier(const pen_cluster_spec *spec, const cluster_seat *source,
                                   const cluster_seat *target) {
    if (source->process == target->process) return PEN_CARRIER_MEMORY;
    if (source->host != target->host) {
        return spec->uses_tls ? PEN_CARRIER_NETWORK_TLS : PEN_CARRIER_NETWORK;
    }
    if (!spec->uses_grpc_alone) return PEN_CARRIER_RING;
    return spec->uses_tls ? PEN_CARRIER_LOOPBACK_TLS : PEN_CARRIER_LOOPBACK;
}

// What links cost that nobody measured or stated. On this host, a core that is left takes what
// comes at once.
static pen_cluster_link cluster_assume_link(pen_carrier carrier, bool is_idle) {
    const pen_assumed_link assumed = pen_cluster_assumed_link(carrier);
    return (pen_cluster_link){.bandwidth = assumed.bandwidth,
                              .latency = is_idle ? assumed.latency_idle : assumed.latency,
                              .send = assumed.send > 0 ? 1 / assumed.send : 0,
                              .receive = assumed.receive > 0 ? 1 / assumed.receive : 0,
                              .message = assumed.message};
}

// The first links: one from a device to itself, which costs nothing, then two for each carrier.
static pen_status cluster_assume_links(const cluster_builder *builder, pen_link_set *set) {
    const uint32_t count = builder->spec->device_count;
    PEN_TRY(pen_link_set_init(set, count, builder->arena));
    uint32_t number[PEN_CARRIER_NETWORK_TLS + 1][2];
    uint32_t own;
    PEN_TRY(pen_link_set_add(set,
                             &(pen_cluster_link){.bandwidth = INFINITY,
                                                 .source = PEN_FIGURE_STATED,
                                                 .latency_source = PEN_FIGURE_STATED},
                             &own));
    for (uint32_t c = 0; c <= PEN_CARRIER_NETWORK_TLS; c++) {
        for (uint32_t is_idle = 0; is_idle < 2; is_idle++) {
            const pen_cluster_link link = cluster_assume_link((pen_carrier)c, is_idle != 0);
            PEN_TRY(pen_link_set_add(set, &link, &number[c][is_idle]));
        }
    }
    for (uint32_t from = 0; from < count; from++) {
        const cluster_seat *source = &builder->seats[from];
        for (uint32_t to = 0; to < count; to++) {
            const cluster_seat *target = &builder->seats[to];
            const bool is_here = source->host == 0 && target->host == 0;
            set->link_of_pair[(uint64_t)from * count + to] =
                from == to ? own
                           : number[cluster_carrier(builder->spec, source, target)]
                                   [is_here && builder->has_core_left];
        }
    }
    return PEN_OK;
}

// The devices that one end of a link means. `field` is what the user wrote.
static pen_status cluster_match_end(const cluster_builder *builder, const pen_name_set *names,
                                    const char *const *field, pen_name_matches *out_matches) {
    const pen_status status = pen_match_devices(names, *field, builder->arena, out_matches);
    if (builder->spec->is_reduced && pen_status_get_code(status) == PEN_NOT_FOUND) {
        pen_status_ignore(status, "the device was taken away");
        *out_matches = (pen_name_matches){0};
        return PEN_OK;
    }
    return pen_cluster_spec_blame(builder->spec, field,
                                  pen_status_add_context(status, "while reading 'links'"));
}

// What is said of the devices' time that a link takes; the rest stays as it was.
static void cluster_state_handling(const pen_cluster_link_spec *spec, pen_cluster_link *link) {
    if (spec->send > 0) link->send = link->send_stated = 1 / spec->send;
    if (spec->receive > 0) link->receive = link->receive_stated = 1 / spec->receive;
    if (spec->has_message) link->message = link->message_stated = spec->message;
}

static void cluster_state_link(const pen_cluster_link_spec *spec, pen_cluster_link *link) {
    link->bandwidth = spec->bandwidth;
    link->bandwidth_stated = spec->bandwidth;
    link->source = PEN_FIGURE_STATED;
    cluster_state_handling(spec, link);
    if (!spec->has_latency) return;
    link->latency = spec->latency;
    link->latency_stated = spec->latency;
    link->latency_source = PEN_FIGURE_STATED;
}

// Sets the links from each of `from` to each of `to`; adds to `count` how many. All pairs that had
// one link before have one after.
static pen_status cluster_set_links(const pen_cluster_link_spec *spec, const pen_name_matches *from,
                                    const pen_name_matches *to, pen_link_set *set,
                                    uint64_t *count) {
    const uint32_t before = set->count;
    uint32_t *number; // of each link of before; 0: none yet, since 0 is that of a device to itself
    PEN_TRY(PEN_NEW(set->arena, before, &number));
    for (uint32_t i = 0; i < from->count; i++) {
        for (uint32_t j = 0; j < to->count; j++) {
            const uint32_t source = from->indices[i];
            const uint32_t target = to->indices[j];
            if (source == target) continue;
            uint32_t *at = &set->link_of_pair[(uint64_t)source * set->device_count + target];
            *count += 1;
            if (*at >= before) continue; // set by an earlier name of the same end
            if (number[*at] == 0) {
                pen_cluster_link link = set->links[*at];
                cluster_state_link(spec, &link);
                PEN_TRY(pen_link_set_add(set, &link, &number[*at]));
            }
            *at = number[*at];
        }
    }
    return PEN_OK;
}

// Later entries win, so a general pattern can come first. An entry that names one device at both
// ends means nothing and is refused.
static pen_status cluster_state_links(const cluster_builder *builder, const pen_name_set *names,
                                      pen_link_set *set) {
    const pen_cluster_link_spec *specs = builder->spec->written_links.items;
    for (uint32_t i = 0; i < builder->spec->written_links.count; i++) {
        const pen_cluster_link_spec *spec = &specs[i];
        const bool is_symmetric = spec->between.count > 0;
        const char *const *ends = spec->between.items;
        const char *const *from_field = is_symmetric ? &ends[0] : &spec->from;
        const char *const *to_field = is_symmetric ? &ends[1] : &spec->to;
        pen_name_matches from;
        pen_name_matches to;
        PEN_TRY(cluster_match_end(builder, names, from_field, &from));
        PEN_TRY(cluster_match_end(builder, names, to_field, &to));
        uint64_t count = 0;
        PEN_TRY(cluster_set_links(spec, &from, &to, set, &count));
        if (is_symmetric) PEN_TRY(cluster_set_links(spec, &to, &from, set, &count));
        if (count > 0 || builder->spec->is_reduced) continue;
        return pen_cluster_spec_blame(builder->spec, to_field,
                                      pen_error(PEN_INVALID_INPUT,
                                                "links[%u]: found '%.100s' at both ends, expected "
                                                "two devices",
                                                i, names->names[from.indices[0]]));
    }
    return PEN_OK;
}

static void cluster_measure_handling(const pen_cost_link *measured, bool is_here,
                                     pen_cluster_link *link) {
    if (measured->send > 0 && (is_here || link->send_stated == 0)) link->send = 1 / measured->send;
    if (measured->receive > 0 && (is_here || link->receive_stated == 0)) {
        link->receive = 1 / measured->receive;
    }
    if (measured->has_message && (is_here || link->message_stated == 0)) {
        link->message = measured->message;
    }
}

// What was measured of one pair. What is stated of a link to another host is not overridden.
static void cluster_measure_link(const pen_cost_link *measured, bool is_here,
                                 pen_cluster_link *link) {
    if (is_here || link->source != PEN_FIGURE_STATED) {
        link->bandwidth = measured->bandwidth;
        link->source = PEN_FIGURE_MEASURED;
    }
    if (is_here || link->latency_source != PEN_FIGURE_STATED) {
        link->latency = measured->latency;
        link->latency_source = PEN_FIGURE_MEASURED;
    }
    cluster_measure_handling(measured, is_here, link);
}

// A cost table names pairs; those of other clusters are passed over.
static pen_status cluster_measure_links(const cluster_builder *builder, pen_link_set *set) {
    const uint32_t count = builder->costs == NULL ? 0 : pen_cost_table_link_count(builder->costs);
    if (count == 0) return PEN_OK;
    pen_name_map devices;
    pen_name_map_init(&devices, builder->arena);
    for (uint32_t d = 0; d < set->device_count; d++) {
        PEN_TRY(pen_name_map_add(&devices, builder->devices[d].name, d));
    }
    for (uint32_t i = 0; i < count; i++) {
        const pen_cost_link *measured = pen_cost_table_link_at(builder->costs, i);
        const uint32_t from = pen_name_map_find(&devices, measured->from);
        const uint32_t to = pen_name_map_find(&devices, measured->to);
        if (from == PEN_NAME_MAP_NONE || to == PEN_NAME_MAP_NONE || from == to) continue;
        uint32_t *at = &set->link_of_pair[(uint64_t)from * set->device_count + to];
        pen_cluster_link link = set->links[*at];
        const bool is_here = builder->seats[from].host == 0 && builder->seats[to].host == 0;
        cluster_measure_link(measured, is_here, &link);
        PEN_TRY(pen_link_set_add(set, &link, at));
    }
    return PEN_OK;
}

static pen_status cluster_build_links(const cluster_builder *builder, pen_cluster *cluster) {
    const uint32_t count = builder->spec->device_count;
    const char **names;
    pen_link_set set;
    PEN_TRY(PEN_NEW(builder->arena, count, &names));
    for (uint32_t i = 0; i < count; i++) {
        names[i] = builder->devices[i].name;
    }
    const pen_name_set name_set = {.names = names, .count = count, .what = "device"};
    PEN_TRY(cluster_assume_links(builder, &set));
    PEN_TRY(cluster_state_links(builder, &name_set, &set));
    PEN_TRY(cluster_measure_links(builder, &set));
    return pen_cluster_link_up(cluster, &set);
}

// From what was written, the machine and a cost table to figures for every device and link, each
// with where it comes from.
pen_status pen_cluster_build_on(const pen_machine *machine, const pen_cluster_spec *spec,
                                const pen_cost_table *costs, pen_arena *arena,
                                const pen_cluster **out_cluster) {
    cluster_builder builder = {.machine = machine, .spec = spec, .costs = costs, .arena = arena};
    pen_cluster *cluster;
    PEN_TRY(PEN_NEW(arena, 1, &cluster));
    PEN_TRY(PEN_NEW(arena, spec->device_count, &builder.devices));
    PEN_TRY(cluster_seat_devices(&builder));
    cluster_share(&builder);
    for (uint32_t i = 0; i < spec->device_count; i++) {
        builder.devices[i].name = spec->devices[i].name;
        builder.devices[i].kind = pen_cluster_device_kind_name(spec->devices[i].kind);
        builder.devices[i].gpu = (uint32_t)spec->devices[i].gpu;
        if (spec->devices[i].model != NULL) {
            builder.devices[i].model = spec->devices[i].model;
            PEN_TRY(pen_arena_format(arena, &builder.devices[i].cost_kind, "%s %s",
                                     builder.devices[i].kind, spec->devices[i].model));
        }
        builder.devices[i].host = spec->devices[i].host;
        builder.devices[i].host_name = builder.seats[i].host_name;
        builder.devices[i].is_remote = builder.seats[i].host != 0;
        builder.devices[i].process = builder.seats[i].process;
        builder.devices[i].host_index = builder.seats[i].host;
        PEN_TRY(cluster_set_memory(&builder, i));
        cluster_set_threads(&builder, i);
        cluster_set_rates(&builder, i);
    }
    cluster->device_count = spec->device_count;
    cluster->devices = builder.devices;
    PEN_TRY(cluster_build_links(&builder, cluster));
    *out_cluster = cluster;
    return PEN_OK;
}

pen_status pen_cluster_build(const pen_cluster_spec *spec, const pen_cost_table *costs,
                             pen_arena *arena, const pen_cluster **out_cluster) {
    pen_machine machine;
    PEN_TRY(pen_machine_detect(arena, &machine));
    return pen_cluster_build_on(&machine, spec, costs, arena, out_cluster);
}
