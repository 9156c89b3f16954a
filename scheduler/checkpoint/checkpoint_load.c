#include <inttypes.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/name_map.h"
#include "scheduler/checkpoint/checkpoint_parts.h"
#include "scheduler/checkpoint/checkpoint_state.h"

#define LOAD_COMPLAINTS_LIMIT 20 // tensors that are named

typedef struct load_state {
    const pen_checkpoint_store *store;
    const pen_tensor_store *tensors;
    pen_checkpoint_parts parts;
    uint32_t *tensor_of; // [parts.count] in `tensors`
    pen_status complaints;
    uint32_t complaint_count;
} load_state;

// Complaints are listed, and more than can be read are counted.
static void load_complain(load_state *load, pen_status complaint) {
    load->complaint_count += 1;
    if (load->complaint_count <= LOAD_COMPLAINTS_LIMIT) {
        load->complaints = pen_status_join(load->complaints, complaint);
    } else {
        pen_status_ignore(complaint, "counted");
    }
}

static pen_status load_finish_complaints(load_state *load) {
    const pen_status complaints = load->complaints;
    load->complaints = PEN_OK;
    if (load->complaint_count <= LOAD_COMPLAINTS_LIMIT) return complaints;
    return pen_status_join(complaints, pen_error(PEN_INVALID_INPUT, "and %u more tensors",
                                                 load->complaint_count - LOAD_COMPLAINTS_LIMIT));
}

// Compares a part with the tensor that it is of.
static void load_check_part(load_state *load, const pen_checkpoint_part *part,
                            const pen_stored_tensor *tensor) {
    char texts[2][PEN_SHAPE_TEXT_BYTES];
    if (pen_tensor_type_equal(&part->type, &tensor->type)) return;
    load_complain(load, pen_error(PEN_INVALID_INPUT, "the checkpoint has '%s' as %s, expected %s",
                                  part->name, pen_tensor_type_format(&part->type, texts[0]),
                                  pen_tensor_type_format(&tensor->type, texts[1])));
}

// Which tensor of the program each part of the checkpoint goes to. All that does not fit is
// collected, so that one message has it.
static pen_status load_match(load_state *load, pen_arena *scratch) {
    const pen_tensor_store *tensors = load->tensors;
    pen_name_map names;
    bool *is_found;
    pen_name_map_init(&names, scratch);
    PEN_TRY(PEN_NEW(scratch, tensors->count, &is_found));
    PEN_TRY(PEN_NEW(scratch, load->parts.count, &load->tensor_of));
    for (uint32_t i = 0; i < tensors->count; i++) {
        PEN_TRY(pen_name_map_add(&names, tensors->tensors[i].name, i));
    }
    for (uint32_t p = 0; p < load->parts.count; p++) { // parts of a tensor follow each other
        const pen_checkpoint_part *part = &load->parts.parts[p];
        const uint32_t index = pen_name_map_find(&names, part->name);
        load->tensor_of[p] = index;
        if (index == PEN_NAME_MAP_NONE) {
            if (part->first != 0) continue;
            load_complain(load, pen_error(PEN_INVALID_INPUT,
                                          "the checkpoint has '%s', which the model has not",
                                          part->name));
        } else if (!is_found[index]) {
            is_found[index] = true;
            load_check_part(load, part, &tensors->tensors[index]);
        }
    }
    for (uint32_t i = 0; i < tensors->count; i++) {
        if (is_found[i]) continue;
        load_complain(load, pen_error(PEN_INVALID_INPUT, "the checkpoint lacks '%s'",
                                      tensors->tensors[i].name));
    }
    return load_finish_complaints(load);
}

// `piece` has pen_tensor_store_piece_bytes of the tensors: no part is larger than its tensor.
static pen_status load_part(const load_state *load, uint32_t index, pen_shard_reader *reader,
                            void *piece) {
    const pen_checkpoint_part *part = &load->parts.parts[index];
    const pen_tensor_store *tensors = load->tensors;
    for (uint64_t done = 0; done < part->bytes; done += PEN_TENSOR_PIECE_BYTES) {
        const uint64_t bytes = pen_min_u64(PEN_TENSOR_PIECE_BYTES, part->bytes - done);
        PEN_TRY(pen_shard_reader_read(reader, part->offset + done, piece, bytes));
        PEN_TRY(tensors->write(tensors->context, load->tensor_of[index], part->first + done, piece,
                               bytes));
    }
    return PEN_OK;
}

// All parts that lie in one shard, in its order.
static pen_status load_shard(const load_state *load, const pen_shard_summary *shard,
                             uint32_t shard_index, pen_arena *scratch, void *piece) {
    pen_shard_reader reader;
    const uint32_t *order;
    uint32_t count = 0;
    PEN_TRY(pen_checkpoint_parts_of_shard(&load->parts, shard_index, scratch, &order, &count));
    pen_status status =
        pen_shard_reader_init(&reader, load->store->disk, load->store->shard_folder, shard);
    for (uint32_t i = 0; i < count && status == PEN_OK; i++) {
        status = load_part(load, order[i], &reader, piece);
    }
    pen_shard_reader_deinit(&reader);
    return status;
}

static pen_status load_all(load_state *load, const pen_commit_manifest *manifest,
                           pen_arena *scratch) {
    const pen_shard_place place = {.disk = load->store->disk, .folder = load->store->shard_folder};
    PEN_TRY(pen_checkpoint_parts_read(&place, manifest, scratch, &load->parts));
    PEN_TRY(load_match(load, scratch));
    void *piece = pen_memory_allocate(pen_tensor_store_piece_bytes(load->tensors), 1);
    if (piece == NULL) return pen_error_out_of_memory();
    pen_status status = PEN_OK;
    for (uint32_t s = 0; s < manifest->shard_count && status == PEN_OK; s++) {
        status = load_shard(load, &manifest->shards[s], s, scratch, piece);
    }
    pen_memory_free(piece);
    return status;
}

pen_status pen_checkpoint_store_load(pen_checkpoint_store *store, uint32_t index,
                                     const pen_tensor_store *tensors) {
    const pen_commit_record *record = pen_checkpoint_store_record(store, index);
    PEN_ASSERT(record != NULL);
    load_state load = {.store = store, .tensors = tensors};
    const pen_status status = load_all(&load, &record->manifest, store->scratch);
    pen_status_ignore(load.complaints, "memory ran out while they were gathered");
    pen_arena_reset(store->scratch);
    return pen_status_add_context(status, "while loading the checkpoint of step %" PRIu64 " in %s",
                                  record->manifest.step, store->folder);
}
