#include <inttypes.h>

#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/name_map.h"
#include "base/planted.h"
#include "scheduler/checkpoint/checkpoint_read.h"
#include "scheduler/checkpoint/checkpoint_state.h"

#define LOAD_COMPLAINTS_LIMIT 20 // tensors that are named

typedef struct load_state {
    pen_shard_place place;
    const pen_tensor_store *tensors;
    pen_checkpoint_parts parts;
    uint32_t *tensor_of; // [parts.count] in `tensors`
    bool *is_joined;     // [parts.count] of a tensor that is not all ranges: read by tensors
    pen_status complaints;
    uint32_t complaint_count;
    bool is_of_others; // a name is there on one side alone
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
    pen_status more = PEN_OK;
    if (load->complaint_count > LOAD_COMPLAINTS_LIMIT) {
        more = pen_error(PEN_INVALID_INPUT, "and %u more tensors",
                         load->complaint_count - LOAD_COMPLAINTS_LIMIT);
    }
    if (load->is_of_others) { // the model is the same, or that would have been told
        more = pen_status_join(
            more, pen_error(PEN_INVALID_INPUT,
                            "another optimizer, average or adapt has other tensors: the one of "
                            "before goes on; or begin with the parameters alone, by `penstock "
                            "checkpoint export` and `penstock train --parameters`"));
    }
    return pen_status_join(complaints, more);
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
            if (part->slice.start != 0) continue;
            load->is_of_others = true;
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
        load->is_of_others = true;
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
        PEN_TRY(tensors->write(tensors->context, load->tensor_of[index], part->slice.start + done,
                               piece, bytes));
    }
    return PEN_OK;
}

// The end of the parts of a tensor, which begin at `first`, and whether all are ranges.
static uint32_t load_find_end(const load_state *load, uint32_t first, bool *out_are_ranges) {
    uint32_t end = first;
    *out_are_ranges = true;
    while (end < load->parts.count && load->tensor_of[end] == load->tensor_of[first]) {
        *out_are_ranges &= pen_checkpoint_part_is_range(&load->parts.parts[end]);
        end += 1;
    }
    return end;
}

static pen_status load_find_joined(load_state *load, pen_arena *scratch) {
    PEN_TRY(PEN_NEW(scratch, load->parts.count, &load->is_joined));
    for (uint32_t first = 0; first < load->parts.count;) {
        bool are_ranges;
        const uint32_t end = load_find_end(load, first, &are_ranges);
        for (; first < end; first++) {
            load->is_joined[first] = !are_ranges;
        }
    }
    return PEN_OK;
}

// Tensors that are there in slices, one after the other: a piece of each is put together from all
// its slices.
static pen_status load_joined(const load_state *load, pen_checkpoint_reader *reader, void *piece) {
    const pen_tensor_store *tensors = load->tensors;
    for (uint32_t first = 0; first < load->parts.count;) {
        bool are_ranges;
        const uint32_t end = load_find_end(load, first, &are_ranges),
                       index = load->tensor_of[first];
        const uint64_t all = are_ranges ? 0 : tensors->tensors[index].bytes;
        for (uint64_t done = 0; done < all; done += PEN_TENSOR_PIECE_BYTES) {
            const pen_tensor_range range = {done, pen_min_u64(PEN_TENSOR_PIECE_BYTES, all - done),
                                            1};
            PEN_TRY(pen_checkpoint_reader_read(reader, &load->parts.parts[first], end - first,
                                               &range, piece));
            PEN_TRY(tensors->write(tensors->context, index, done, piece, range.count));
        }
        first = end;
    }
    return PEN_OK;
}

// All parts that lie in one shard, in its order, but those of tensors that are in slices.
static pen_status load_shard(const load_state *load, const pen_shard_summary *shard,
                             uint32_t shard_index, pen_arena *scratch, void *piece) {
    pen_shard_reader reader;
    const uint32_t *order;
    uint32_t count = 0;
    PEN_TRY(pen_checkpoint_parts_of_shard(&load->parts, shard_index, scratch, &order, &count));
    pen_status status = pen_shard_reader_init(&reader, load->place.disk, load->place.folder, shard);
    for (uint32_t i = 0; i < count && status == PEN_OK; i++) {
        if (load->is_joined[order[i]]) continue;
        status = load_part(load, order[i], &reader, piece);
    }
    pen_shard_reader_deinit(&reader);
    return status;
}

// First what lies in ranges, shard by shard from front to end, then what lies in slices.
static pen_status load_all(load_state *load, const pen_commit_manifest *manifest,
                           pen_arena *scratch) {
    PEN_TRY(pen_checkpoint_parts_read(&load->place, manifest, scratch, &load->parts));
    PEN_TRY(load_match(load, scratch));
    PEN_TRY(load_find_joined(load, scratch));
    const uint64_t piece_bytes = pen_tensor_store_piece_bytes(load->tensors);
    void *piece = pen_memory_allocate(piece_bytes, 1);
    if (piece == NULL) return pen_error_out_of_memory();
    pen_status status = PEN_OK;
    for (uint32_t s = 0; s < manifest->shard_count && status == PEN_OK; s++) {
        status = load_shard(load, &manifest->shards[s], s, scratch, piece);
    }
    pen_checkpoint_reader reader;
    if (status == PEN_OK) {
        status = pen_checkpoint_reader_init(&reader, &load->place, manifest, piece_bytes);
        if (status == PEN_OK) status = load_joined(load, &reader, piece);
        pen_checkpoint_reader_deinit(&reader);
    }
    pen_memory_free(piece);
    return status;
}

static pen_status load_copy(pen_checkpoint_store *store, const pen_checkpoint_copy *copy,
                            const pen_commit_record *record, const pen_tensor_store *tensors) {
    load_state load = {.place = pen_checkpoint_copy_place(copy), .tensors = tensors};
    const pen_status status = load_all(&load, &record->manifest, store->scratch);
    pen_status_ignore(load.complaints, "memory ran out while they were gathered");
    pen_arena_reset(store->scratch);
    return pen_status_add_context(status, "while loading the checkpoint of step %" PRIu64 " in %s",
                                  record->manifest.step, copy->folder);
}

// What one folder has damaged, the other may have whole: all tensors are set again from there.
pen_status pen_checkpoint_store_load(pen_checkpoint_store *store, uint32_t index,
                                     const pen_tensor_store *tensors) {
    PEN_ASSERT(index < store->entry_count);
    const pen_checkpoint_entry entry = store->entries[index];
    pen_status damaged = PEN_OK;
    for (uint32_t c = 0; c < store->copy_count; c++) {
        const pen_checkpoint_copy *copy = &store->copies[c];
        if (entry.records[c] == NULL || (c > 0 && PEN_PLANTED(power_no_other_copy))) continue;
        const pen_status status = load_copy(store, copy, entry.records[c], tensors);
        const pen_status_code code = pen_status_get_code(status);
        if (code != PEN_CORRUPT && code != PEN_IO && code != PEN_NO_STORAGE) {
            if (damaged != PEN_OK && status == PEN_OK) {
                pen_log(PEN_LOG_WARNING, "the copy in %s is used: %s", copy->folder,
                        pen_status_message(damaged));
            }
            pen_status_ignore(damaged, "said; the other copy is whole, or something else is wrong");
            return status;
        }
        damaged = pen_status_join(damaged, status);
    }
    return damaged;
}
