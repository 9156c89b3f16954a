#include "partition/costs/cluster_links.h"

#include <math.h>
#include <string.h>

#include "base/format/yaml_writer.h"
#include "base/hash.h"

#define LINK_SET_FIRST 32 // links that there is room for at first

pen_status pen_link_set_init(pen_link_set *set, uint32_t device_count, pen_arena *arena) {
    *set = (pen_link_set){.arena = arena, .device_count = device_count};
    return PEN_NEW(arena, (size_t)device_count * device_count, &set->link_of_pair);
}

pen_status pen_link_set_cut(const pen_cluster *cluster, const uint32_t *devices, uint32_t count,
                            pen_arena *arena, pen_link_set *out_set) {
    PEN_TRY(pen_link_set_init(out_set, count, arena));
    out_set->links = cluster->links;
    out_set->count = out_set->capacity = cluster->link_count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *row = &cluster->link_of_pair[(size_t)devices[i] * cluster->device_count];
        for (uint32_t j = 0; j < count; j++)
            out_set->link_of_pair[(size_t)i * count + j] = row[devices[j]];
    }
    return PEN_OK;
}

pen_status pen_link_set_add(pen_link_set *set, const pen_cluster_link *link, uint32_t *out_number) {
    if (set->count == set->capacity) {
        const uint32_t capacity = set->capacity == 0 ? LINK_SET_FIRST : 2 * set->capacity;
        PEN_TRY(PEN_NEW(set->arena, capacity, &set->room));
        if (set->count > 0) memcpy(set->room, set->links, set->count * sizeof *set->room);
        set->links = set->room;
        set->capacity = capacity;
    }
    set->room[set->count] = *link;
    *out_number = set->count++;
    return PEN_OK;
}

// ---- tables

// As a plan's file has it: rounded, so that the schedule of a plan that was read is the same. Rates
// that were rounded before stay as they are.
static double links_rate(double rate) {
    return rate > 0 && rate < INFINITY ? pen_yaml_round(rate, PEN_UNIT_BANDWIDTH) : INFINITY;
}

// Where devices are: hosts and processes are called by their first device. A host's line out is as
// fast as the fastest link out of it to any other host; likewise its line in.
static pen_status links_seat(const pen_cluster *cluster, pen_arena *arena,
                             const pen_device_seat **out_seats) {
    const uint32_t count = cluster->device_count;
    const pen_cluster_device *devices = cluster->devices;
    pen_device_seat *seats;
    PEN_TRY(PEN_NEW(arena, count, &seats));
    for (uint32_t d = 0; d < count; d++) {
        while (devices[seats[d].host].host_index != devices[d].host_index)
            seats[d].host += 1;
        while (devices[seats[d].process].process != devices[d].process)
            seats[d].process += 1;
    }
    for (uint32_t d = 0; d < count; d++) {
        for (uint32_t e = 0; e < count; e++) {
            if (seats[e].host == seats[d].host) continue;
            const double rate = pen_cluster_link_at(cluster, d, e)->bandwidth;
            pen_device_seat *from = &seats[seats[d].host], *to = &seats[seats[e].host];
            if (rate > from->out_rate) from->out_rate = rate;
            if (rate > to->in_rate) to->in_rate = rate;
        }
    }
    for (uint32_t d = 0; d < count; d++) {
        const pen_device_seat *first = &seats[seats[d].host];
        seats[d].out_rate = links_rate(first->out_rate);
        seats[d].in_rate = links_rate(first->in_rate);
    }
    *out_seats = seats;
    return PEN_OK;
}

// Tables are dense, for searches read them in their innermost loops; figures that only stages need
// stay with the links.
pen_status pen_cluster_link_up(pen_cluster *cluster, const pen_link_set *set) {
    const uint32_t count = cluster->device_count;
    const size_t pairs = (size_t)count * count;
    double *byte_seconds, *latency, *message_load;
    pen_link_handling *ends;
    PEN_ASSERT(set->device_count == count);
    cluster->links = set->links;
    cluster->link_count = set->count;
    cluster->link_of_pair = set->link_of_pair;
    PEN_TRY(PEN_NEW(set->arena, pairs, &byte_seconds));
    PEN_TRY(PEN_NEW(set->arena, pairs, &latency));
    PEN_TRY(PEN_NEW(set->arena, pairs, &message_load));
    PEN_TRY(PEN_NEW(set->arena, set->count, &ends));
    for (uint32_t i = 0; i < set->count; i++) {
        ends[i] = pen_link_ends(&set->links[i]);
    }
    for (size_t i = 0; i < pairs; i++) {
        if (i % (count + 1u) == 0) continue; // from a device to itself
        const uint32_t number = set->link_of_pair[i];
        byte_seconds[i] = 1.0 / set->links[number].bandwidth;
        latency[i] = set->links[number].latency;
        message_load[i] = pen_link_handling_load(&ends[number]);
    }
    cluster->tables = (pen_cluster_tables){.byte_seconds = byte_seconds,
                                           .latency = latency,
                                           .message_load = message_load,
                                           .ends = ends};
    PEN_TRY(links_seat(cluster, set->arena, &cluster->tables.seats));
    cluster->tables.hash = pen_cluster_hash(cluster);
    return PEN_OK;
}

// ---- hash

static uint64_t hash_text(uint64_t hash, const char *text) {
    if (text == NULL) text = "";
    return pen_hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_number(uint64_t hash, double number) {
    return pen_hash_bytes(hash, &number, sizeof number);
}

// Where nothing is said of it, the hash is what it was before anything could be.
static uint64_t hash_handling(uint64_t hash, const pen_cluster_link *link) {
    if (link->send_stated + link->receive_stated + link->message_stated == 0.0) return hash;
    hash = hash_number(hash, link->send_stated);
    hash = hash_number(hash, link->receive_stated);
    return hash_number(hash, link->message_stated);
}

// Pairs in order, each with what is stated of its link.
uint64_t pen_cluster_hash(const pen_cluster *cluster) {
    uint64_t hash = PEN_HASH_START;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device *device = &cluster->devices[d];
        hash = hash_text(hash, device->name);
        hash = hash_text(hash, pen_cluster_cost_kind(device));
        hash = hash_text(hash, device->host);
        hash = hash_number(hash, (double)device->threads_stated);
        hash = hash_number(
            hash, device->bytes_source == PEN_FIGURE_STATED ? (double)device->bytes_limit : 0.0);
        hash = hash_number(hash, device->flops_stated);
        hash = hash_number(hash, device->memory_bandwidth_stated);
        for (uint32_t e = 0; e < cluster->device_count; e++) {
            if (e == d) continue;
            const pen_cluster_link *link = pen_cluster_link_at(cluster, d, e);
            hash = hash_number(hash, link->bandwidth_stated);
            hash = hash_number(hash, link->latency_stated);
            hash = hash_handling(hash, link);
        }
    }
    return hash;
}
