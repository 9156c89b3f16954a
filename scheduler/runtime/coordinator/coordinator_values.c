// Values of a forward pass that the coordinator sees: pieces that workers send before the losses.

#include <string.h>

#include "base/integer.h"
#include "graph/graph.h"
#include "scheduler/runtime/coordinator/coordinator_link.h"

// A value has the same bytes in whichever part it is.
static void seen_measure(const pen_run_spec_part *part, uint64_t bytes[PEN_RUN_SEEN_LIMIT]) {
    if (part->part == NULL) return;
    for (uint32_t i = 0; i < part->seen_count; i++) {
        if (!pen_value_is(part->seen[i])) continue;
        bytes[i] = pen_tensor_type_bytes(pen_value_type(part->part->graph, part->seen[i]));
    }
}

// Forms share the places: each value has room for the largest of them.
static pen_status seen_place(pen_coordinator *c, uint64_t *out_total) {
    const pen_run_table *table = c->table;
    uint64_t most[PEN_RUN_SEEN_LIMIT] = {0}, total = 0;
    PEN_TRY(PEN_NEW(c->arena, table->form_count, &c->seen_bytes));
    for (uint32_t f = 0; f < table->form_count; f++) {
        for (uint32_t d = 0; d < table->device_count && c->spec->forms[f].parts != NULL; d++) {
            seen_measure(&c->spec->forms[f].parts[d], c->seen_bytes[f]);
        }
        for (uint32_t i = 0; i < PEN_RUN_SEEN_LIMIT; i++) {
            most[i] = pen_max_u64(most[i], c->seen_bytes[f][i]);
        }
    }
    for (uint32_t i = 0; i < PEN_RUN_SEEN_LIMIT; i++) {
        c->seen_first[i] = total;
        total += most[i];
    }
    *out_total = total;
    if (total <= PEN_RUN_SEEN_BYTES_LIMIT) return PEN_OK;
    return pen_error(PEN_DOES_NOT_FIT,
                     "metrics see %llu bytes of outputs for a batch of an evaluation, at most %llu "
                     "are sent: a smaller train.batch takes less",
                     (unsigned long long)total, (unsigned long long)PEN_RUN_SEEN_BYTES_LIMIT);
}

pen_status pen_coordinator_prepare_values(pen_coordinator *c) {
    uint64_t total;
    PEN_TRY(seen_place(c, &total));
    for (uint32_t r = 0; r < COORDINATOR_ROUNDS && total > 0; r++) {
        PEN_TRY(PEN_NEW(c->arena, total, &c->announced[r].seen));
    }
    return PEN_OK;
}

// Pieces come in order; one that came before, or that is of nothing, is passed over.
void pen_coordinator_take_value(pen_coordinator *c, const pen_message *message) {
    coordinator_announced *announced = &c->announced[message->round % COORDINATOR_ROUNDS];
    pen_mutex_lock(&c->lock);
    const bool is_known = announced->number == message->round && announced->seen != NULL &&
                          message->microbatch == 0 && message->number < PEN_RUN_SEEN_LIMIT;
    if (is_known) {
        const uint64_t bytes = c->seen_bytes[announced->round.form][message->number];
        uint64_t *count = &announced->seen_count[message->number];
        if (message->offset == *count && message->bytes_length <= bytes - *count &&
            message->bytes_length > 0) {
            memcpy(announced->seen + c->seen_first[message->number] + *count, message->bytes,
                   message->bytes_length);
            *count += message->bytes_length;
        }
    }
    pen_mutex_unlock(&c->lock);
}

pen_status pen_coordinator_get_values(pen_coordinator *coordinator, uint64_t round,
                                      const void *out_values[PEN_RUN_SEEN_LIMIT]) {
    pen_coordinator *c = coordinator;
    const coordinator_announced *announced = &c->announced[round % COORDINATOR_ROUNDS];
    pen_status status = PEN_OK;
    pen_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < PEN_RUN_SEEN_LIMIT; i++) {
        const uint64_t bytes = c->seen_bytes[announced->round.form][i];
        out_values[i] = bytes > 0 ? announced->seen + c->seen_first[i] : NULL;
        if (status != PEN_OK || announced->seen_count[i] == bytes) continue;
        status = pen_error(PEN_UNAVAILABLE,
                           "outputs that metrics see did not come whole: %llu of %llu bytes",
                           (unsigned long long)announced->seen_count[i], (unsigned long long)bytes);
    }
    pen_mutex_unlock(&c->lock);
    return status;
}
