#include "scheduler/engine/pipeline_kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "scheduler/protocol/message.h"

bool pen_pipeline_has_own_memory(const pipeline_engine *p, uint64_t device) {
    return device < p->plan->device_count &&
           pen_device_kind_has_own_memory(p->devices[device].kind);
}

static const char *kinds_of_stage(const pipeline_engine *p, uint32_t stage) {
    return p->request->cluster->devices[p->plan->stages.stages[stage].device].kind;
}

// Of several replicas, which lanes a kind computes decides the bits, too: these are not kept apart.
pen_status pen_pipeline_note_kinds(pipeline_engine *p) {
    const pen_plan *plan = p->plan;
    pen_constraint_keep *kept;
    pipeline_kept *noted;
    if (p->kept != NULL || plan->replica_count > 0) return PEN_OK;
    if (pen_cluster_spec_other_kind(&p->options.job->cluster) == NULL) return PEN_OK;
    PEN_TRY(PEN_NEW(p->arena, plan->node_count, &kept));
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const char *name = plan->nodes[i].name, *kind = kinds_of_stage(p, plan->nodes[i].stage);
        PEN_TRY(pen_arena_copy_text(p->arena, name, strlen(name), &kept[i].node));
        PEN_TRY(pen_arena_copy_text(p->arena, kind, strlen(kind), &kept[i].kind));
    }
    PEN_TRY(PEN_NEW(p->arena, 1, &noted));
    *noted = (pipeline_kept){.entries = kept, .count = plan->node_count};
    p->kept = noted;
    return PEN_OK;
}

static bool kinds_have_member(const pipeline_engine *p, const char *kind) {
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    for (uint32_t d = 0; d < cluster->device_count; d++) {
        if (p->members[d].is_lost) continue;
        if (strcmp(pen_cluster_device_kind_name(cluster->devices[d].kind), kind) == 0) return true;
    }
    return false;
}

const char *pen_pipeline_find_gone_kind(const pipeline_engine *p) {
    const char *there = "";
    for (uint32_t i = 0; p->kept != NULL && i < p->kept->count; i++) {
        const char *kind = p->kept->entries[i].kind;
        if (strcmp(kind, there) == 0) continue;
        if (!kinds_have_member(p, kind)) return kind;
        there = kind;
    }
    return NULL;
}

// Why nodes would have to go to another kind: none of theirs is left, or those do not suffice.
static pen_status kinds_refuse(const pipeline_engine *p, const pipeline_crossing *crossing,
                               const char *kinds) {
    const char *between = crossing->why[0] == '\0' ? "" : "; ";
    if (crossing->gone != NULL) {
        return pen_error(PEN_UNAVAILABLE,
                         "%s%sno device of kind %s is left for what was computed there, and %s "
                         "differ in their last bits; `recovery: {across_kinds: true}` allows it",
                         crossing->why, between, crossing->gone, kinds);
    }
    if (p->kept == NULL) {
        return pen_error(PEN_UNAVAILABLE,
                         "%s%sreplicas have no other devices of the same kinds, and %s differ in "
                         "their last bits; `recovery: {across_kinds: true}` allows it",
                         crossing->why, between, kinds);
    }
    return pen_error(PEN_UNAVAILABLE,
                     "%s%sthe devices of the same kinds that are left do not suffice (%s), and %s "
                     "differ in their last bits; `recovery: {across_kinds: true}` allows it",
                     crossing->why, between, pen_status_message(crossing->failure), kinds);
}

pen_status pen_pipeline_cross_kinds(const pipeline_engine *p, const pipeline_crossing *crossing) {
    const pen_cluster_spec *cluster = &p->options.job->cluster;
    const pen_cluster_device_spec *other = pen_cluster_spec_other_kind(cluster);
    char kinds[64];
    snprintf(kinds, sizeof kinds, "kinds %s and %s",
             pen_cluster_device_kind_name(cluster->devices[0].kind),
             other == NULL ? "none" : pen_cluster_device_kind_name(other->kind));
    if (!p->options.job->recovery.across_kinds) return kinds_refuse(p, crossing, kinds);
    pen_log(PEN_LOG_WARNING,
            "placed anew on devices of the %s (recovery.across_kinds): from here on, the last bits "
            "are not those that there would have been",
            kinds);
    return PEN_OK;
}

// ---- what bits depend on

// "cuda: emulated GPU, …" of the lines that workers said; the kind's name where none did.
static void kinds_add_one(const char *kind, const char *identity, pen_text *text) {
    const size_t length = strlen(kind);
    for (const char *line = identity; *line != '\0';) {
        const size_t count = strcspn(line, "\n");
        if (strncmp(line, kind, length) == 0 && line[length] == ':') {
            pen_text_print(text, "%.*s", (int)count, line);
            return;
        }
        line += count + (line[count] == '\n');
    }
    pen_text_add(text, kind);
}

// Whether the device computes anything: nodes, or updates alone.
static bool kinds_is_used(const pen_plan *plan, uint32_t device) {
    for (uint32_t i = 0; i < plan->owner_count; i++) {
        if (plan->owners[i] == device) return true;
    }
    return plan->devices[device].node_count > 0;
}

static bool kinds_is_first(const pipeline_engine *p, uint32_t device) {
    const pen_cluster_device *devices = p->request->cluster->devices;
    for (uint32_t d = 0; d < device; d++) {
        const bool is_alike = strcmp(devices[d].kind, devices[device].kind) == 0;
        if (is_alike && kinds_is_used(p->plan, d)) return false;
    }
    return kinds_is_used(p->plan, device);
}

// A node's kinds by the lanes that they compute, whichever replicas these are divided into, and the
// kind that updates what it has. Plans list nodes replica by replica, in the order of lanes.
static uint64_t kinds_hash_node(const pipeline_engine *p, uint32_t node, uint64_t hash) {
    const pen_plan *plan = p->plan;
    const uint32_t replicas = plan->replica_count > 0 ? plan->replica_count : 1;
    const uint32_t each = plan->node_count / replicas;
    const char *name = plan->nodes[node].name, *before = "";
    const char *updater = kinds_of_stage(p, plan->nodes[node].update_stage);
    hash = pen_hash_bytes(hash, name, strlen(name) + 1);
    for (uint32_t r = 0; r < replicas; r++) {
        const char *kind = kinds_of_stage(p, plan->nodes[r * each + node].stage);
        if (strcmp(kind, before) == 0) continue;
        if (r > 0) {
            const uint32_t lane = plan->replicas[r].first_lane;
            hash = pen_hash_bytes(hash, &lane, sizeof lane);
        }
        hash = pen_hash_bytes(hash, kind, strlen(kind) + 1);
        before = kind;
    }
    return pen_hash_bytes(hash, updater, strlen(updater) + 1);
}

// Kinds in the order of the devices that have nodes; of several, also which nodes and lanes each
// has.
pen_status pen_pipeline_arithmetic(pen_engine *engine, pen_arena *arena, const char **out_text) {
    const pipeline_engine *p = pipeline_of(engine);
    const pen_plan *plan = p->plan;
    char identity[PEN_MESSAGE_TEXT_BYTES] = "";
    uint64_t hash = PEN_HASH_START;
    uint32_t count = 0;
    pen_text text;
    if (p->coordinator != NULL) pen_coordinator_get_identity(p->coordinator, identity);
    pen_text_init(&text, arena);
    for (uint32_t d = 0; d < plan->device_count; d++) {
        if (!kinds_is_first(p, d)) continue;
        if (count++ > 0) pen_text_add(&text, "; ");
        kinds_add_one(p->request->cluster->devices[d].kind, identity, &text);
    }
    const uint32_t replicas = plan->replica_count > 0 ? plan->replica_count : 1;
    for (uint32_t i = 0; i < plan->node_count / replicas && count > 1; i++)
        hash = kinds_hash_node(p, i, hash);
    if (count > 1) pen_text_print(&text, "; nodes %08x", (unsigned)(hash ^ hash >> 32));
    return pen_text_finish(&text, out_text);
}
