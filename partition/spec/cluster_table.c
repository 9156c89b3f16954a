// The keys of `devices` and `links`: kinds, ranges, defaults, help.

#include "partition/spec/cluster_spec.h"

#include "partition/costs/cluster.h"

#define CLUSTER_THREAD_COUNT_LIMIT 1024
#define CLUSTER_RATE_LIMIT 1e21 // operations or bytes a second
#define CLUSTER_LATENCY_LIMIT 3600

static const char *const cluster_device_kinds[] = {
    [PEN_CLUSTER_CPU] = "cpu",
    [PEN_CLUSTER_REFERENCE] = "reference",
    NULL,
};

const char *pen_cluster_device_kind_name(pen_cluster_device_kind kind) {
    return cluster_device_kinds[kind];
}

static const pen_option_field cluster_device_fields[] = {
    {.key = "name",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_cluster_device_spec, name),
     .is_required = true,
     .help = "unlike any other device's; n[01-16]/cpu0 stands for 16 devices"},
    {.key = "kind",
     .kind = PEN_OPTION_CHOICE,
     .offset = offsetof(pen_cluster_device_spec, kind),
     .choices = cluster_device_kinds,
     .default_text = "cpu",
     .help = "reference is slow and exact, to compare with"},
    {.key = "host",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_cluster_device_spec, host),
     .help = "address of the process that it is in, NAME:PORT, with the ranges of the name; this "
             "process when not given"},
    {.key = "memory",
     .kind = PEN_OPTION_BYTES,
     .offset = offsetof(pen_cluster_device_spec, memory_bytes),
     .minimum = PEN_OPTION_FROM(1),
     .help = "most that may be used; what the machine has when not given"},
    {.key = "reserve",
     .kind = PEN_OPTION_BYTES,
     .offset = offsetof(pen_cluster_device_spec, reserve_bytes),
     .help = "of the memory, kept for others"},
    {.key = "threads",
     .kind = PEN_OPTION_INTEGER,
     .offset = offsetof(pen_cluster_device_spec, threads),
     .minimum = PEN_OPTION_FROM(1),
     .maximum = PEN_OPTION_TO(CLUSTER_THREAD_COUNT_LIMIT),
     .help = "threads that compute; all cores when not given"},
    {.key = "flops",
     .kind = PEN_OPTION_RATE,
     .offset = offsetof(pen_cluster_device_spec, flops),
     .minimum = PEN_OPTION_ABOVE(0),
     .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT),
     .help = "operations a second, for plans"},
    {.key = "memory_bandwidth",
     .kind = PEN_OPTION_BANDWIDTH,
     .offset = offsetof(pen_cluster_device_spec, memory_bandwidth),
     .minimum = PEN_OPTION_ABOVE(0),
     .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT),
     .help = "bytes a second from and to its memory, for plans"},
};
static const pen_option_table cluster_device_table = {
    .size = sizeof(pen_cluster_device_spec),
    PEN_OPTION_FIELDS(cluster_device_fields),
};
const pen_option_field pen_cluster_device_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &cluster_device_table,
};

static const pen_option_field cluster_end_item = {.kind = PEN_OPTION_TEXT};
static const pen_option_field cluster_link_fields[] = {
    {.key = "between",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_cluster_link_spec, between),
     .item = &cluster_end_item,
     .count_minimum = 2,
     .count_maximum = 2,
     .help = "two devices by name, n[01-16]/cpu0, or pattern; both directions"},
    {.key = "from",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_cluster_link_spec, from),
     .help = "in place of between, one direction: from these devices"},
    {.key = "to",
     .kind = PEN_OPTION_TEXT,
     .offset = offsetof(pen_cluster_link_spec, to),
     .help = "to these"},
    {.key = "bandwidth",
     .kind = PEN_OPTION_BANDWIDTH,
     .offset = offsetof(pen_cluster_link_spec, bandwidth),
     .is_required = true,
     .minimum = PEN_OPTION_ABOVE(0),
     .maximum = PEN_OPTION_TO(CLUSTER_RATE_LIMIT),
     .help = "of each pair of devices"},
    {.key = "latency",
     .kind = PEN_OPTION_SECONDS,
     .offset = offsetof(pen_cluster_link_spec, latency),
     .present_offset = offsetof(pen_cluster_link_spec, has_latency),
     .maximum = PEN_OPTION_TO(CLUSTER_LATENCY_LIMIT),
     .help = "before the first byte arrives"},
};

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
    .size = sizeof(pen_cluster_link_spec),
    PEN_OPTION_FIELDS(cluster_link_fields),
    .check = cluster_check_link,
};
const pen_option_field pen_cluster_link_item = {
    .kind = PEN_OPTION_MAPPING,
    .table = &cluster_link_table,
};

static const pen_option_field cluster_fields[] = {
    {.key = "devices",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_cluster_spec, written_devices),
     .item = &pen_cluster_device_item,
     .is_required = true,
     .count_minimum = 1,
     .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
     .may_be_file = true,
     .help = "where it runs"},
    {.key = "links",
     .kind = PEN_OPTION_LIST,
     .offset = offsetof(pen_cluster_spec, written_links),
     .item = &pen_cluster_link_item,
     .count_maximum = PEN_CLUSTER_DEVICE_LIMIT,
     .may_be_file = true,
     .help = "how fast devices reach each other; later ones win"},
};
const pen_option_table pen_cluster_table = {
    .help = "A cluster: devices, and the links between them.",
    .size = sizeof(pen_cluster_spec),
    PEN_OPTION_FIELDS(cluster_fields),
};
