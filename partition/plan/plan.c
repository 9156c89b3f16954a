#include "partition/plan/plan.h"

#include <string.h>

#include "base/hash.h"

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

// What the user stated, not what was measured: the same file means the same cluster on a busy day.
uint64_t pen_cluster_hash(const pen_cluster *cluster) {
    uint64_t hash = PEN_HASH_START;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        const pen_cluster_device *device = &cluster->devices[d];
        hash = hash_text(hash, device->name);
        hash = hash_text(hash, device->kind);
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
