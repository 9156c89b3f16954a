#include "scheduler/plan/plan_seen.h"

#include <math.h>
#include <string.h>

#include "partition/costs/cluster_links.h"
#include "scheduler/trace/trace_file.h"

#define SEEN_NONE UINT32_MAX

// The cluster's number of each device of the trace.
static pen_status seen_match(const pen_cluster *cluster, const pen_trace *trace, const char *path,
                             pen_arena *arena, uint32_t **out_number) {
    uint32_t *number;
    uint32_t matched = 0;
    PEN_TRY(PEN_NEW(arena, trace->device_count, &number));
    for (uint32_t d = 0; d < trace->device_count; d++) {
        number[d] = SEEN_NONE;
        for (uint32_t e = 0; e < cluster->device_count && number[d] == SEEN_NONE; e++) {
            if (strcmp(cluster->devices[e].name, trace->device_names[d]) == 0) number[d] = e;
        }
        matched += number[d] != SEEN_NONE;
    }
    if (matched == 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: a run on '%.100s' and %u others, none of which is a device of the "
                         "job",
                         path, trace->device_count > 0 ? trace->device_names[0] : "",
                         trace->device_count > 0 ? trace->device_count - 1 : 0);
    }
    *out_number = number;
    return PEN_OK;
}

// A link's latency, with what the run says of how late values came over it: links[at] and those
// behind it that are of the same two devices.
static double seen_latency(const pen_trace_seen *seen, uint32_t at) {
    double latency = 0, later = 0, count = 0;
    for (uint32_t i = at; i < seen->link_count; i++) {
        const pen_seen_link *link = &seen->links[i];
        if (link->source != seen->links[at].source || link->target != seen->links[at].target) break;
        latency = fmax(latency, link->latency_seconds);
        later += (double)link->count * (link->seconds - link->planned_seconds);
        count += (double)link->count;
    }
    return fmax(0.0, latency + later / count);
}

// Figures that the run did not see are copied as they are.
pen_status pen_cluster_see(const pen_cluster *cluster, const char *path, pen_arena *arena,
                           const pen_cluster **out_cluster) {
    const uint32_t count = cluster->device_count;
    const pen_trace *trace;
    pen_trace_seen seen;
    pen_cluster *made;
    pen_cluster_device *devices;
    pen_link_set links;
    uint32_t *number, *every;
    PEN_TRY(pen_trace_file_read(path, arena, &trace));
    PEN_TRY(pen_status_add_context(pen_trace_see(trace, arena, &seen), "in %s", path));
    PEN_TRY(seen_match(cluster, trace, path, arena, &number));
    PEN_TRY(PEN_NEW(arena, 1, &made));
    PEN_TRY(PEN_NEW(arena, count, &devices));
    PEN_TRY(PEN_NEW(arena, count, &every));
    memcpy(devices, cluster->devices, count * sizeof *devices);
    for (uint32_t d = 0; d < count; d++)
        every[d] = d;
    PEN_TRY(pen_link_set_cut(cluster, every, count, arena, &links));
    for (uint32_t d = 0; d < seen.device_count; d++) {
        if (number[d] == SEEN_NONE || !(seen.slowness[d] > 0)) continue;
        devices[number[d]].slowness = seen.slowness[d];
    }
    for (uint32_t i = 0; i < seen.link_count; i++) {
        const pen_seen_link *link = &seen.links[i];
        const uint32_t from = number[link->source], to = number[link->target];
        if (from == SEEN_NONE || to == SEEN_NONE) continue;
        if (i > 0 && link[-1].source == link->source && link[-1].target == link->target) continue;
        uint32_t *at = &links.link_of_pair[(size_t)from * count + to];
        pen_cluster_link changed = links.links[*at];
        changed.latency = seen_latency(&seen, i);
        changed.latency_source = PEN_FIGURE_MEASURED;
        PEN_TRY(pen_link_set_add(&links, &changed, at));
    }
    *made = (pen_cluster){.device_count = count, .devices = devices};
    PEN_TRY(pen_cluster_link_up(made, &links));
    *out_cluster = made;
    return PEN_OK;
}

pen_status pen_cluster_slow(const pen_cluster *cluster, const pen_plan *plan, pen_arena *arena,
                            const pen_cluster **out_cluster) {
    pen_cluster *made;
    pen_cluster_device *devices;
    PEN_TRY(PEN_NEW(arena, 1, &made));
    PEN_TRY(PEN_NEW(arena, cluster->device_count, &devices));
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        devices[d] = cluster->devices[d];
        for (uint32_t i = 0; i < plan->device_count; i++) {
            if (strcmp(plan->devices[i].name, devices[d].name) != 0) continue;
            devices[d].slowness = plan->devices[i].slowness;
        }
    }
    *made = *cluster;
    made->devices = devices;
    *out_cluster = made;
    return PEN_OK;
}
