#include "scheduler/store/joined_store.h"

#include <string.h>

#include "base/integer.h"
#include "base/name_map.h"

#define JOINED_ALIGNMENT ((uint64_t)8) // of what stores are asked for
// Of a whole tensor at once: its slices' ranges, made longer up to the alignment, are short enough.
#define JOINED_PIECE_BYTES (PEN_TENSOR_PIECE_BYTES / 2)

typedef struct joined_tensor {
    uint32_t first; // in `members`
    uint32_t count;
} joined_tensor;

typedef struct joined_store {
    pen_tensor_store store; // of whole tensors
    const pen_tensor_store *slices;
    joined_tensor *tensors; // [store.count]
    uint32_t *members;      // [slices->count] of `slices`, those of a tensor behind each other
    char *scratch;          // what a slice has of a piece
} joined_store;

// ---- pieces

// What a slice has of a piece of its tensor, in the bytes of the slice: from `first` up to `end`,
// and, as stores want to be asked, from `low` up to `high`.
typedef struct joined_span {
    uint64_t first, end;
    uint64_t low, high;
} joined_span;

static joined_span joined_span_of(const pen_stored_tensor *slice, const pen_tensor_range *range) {
    joined_span span = {
        pen_tensor_slice_before(slice->slice, range->first) * range->size,
        pen_tensor_slice_before(slice->slice, range->first + range->count) * range->size, 0, 0};
    const uint64_t over = span.end % JOINED_ALIGNMENT;
    span.low = span.first - span.first % JOINED_ALIGNMENT;
    span.high =
        pen_min_u64(over == 0 ? span.end : span.end - over + JOINED_ALIGNMENT, slice->bytes);
    return span;
}

// What a call moves: bytes of a whole tensor, into the caller's memory or out of it.
typedef struct joined_host {
    bool writes;
    char *into;       // of a read
    const char *from; // of a write
} joined_host;

static joined_host joined_host_at(joined_host host, uint64_t offset) {
    if (host.writes) return (joined_host){.writes = true, .from = host.from + offset};
    return (joined_host){.into = host.into + offset};
}

// A write keeps what lies in the same 8 bytes and is not of the piece: that is read first.
static pen_status joined_move_slice(joined_store *joined, uint32_t member,
                                    const pen_tensor_range *range, joined_host host) {
    const pen_tensor_store *slices = joined->slices;
    const pen_stored_tensor *slice = &slices->tensors[member];
    const joined_span span = joined_span_of(slice, range);
    const uint64_t bytes = span.high - span.low;
    char *own = joined->scratch + (span.first - span.low);
    if (span.first == span.end) return PEN_OK;
    if (!host.writes || span.low < span.first || span.high > span.end) {
        PEN_TRY(slices->read(slices->context, member, span.low, joined->scratch, bytes));
    }
    if (!host.writes) {
        pen_tensor_slice_scatter(slice->slice, range, own, host.into);
        return PEN_OK;
    }
    pen_tensor_slice_gather(slice->slice, range, host.from, own);
    return slices->write(slices->context, member, span.low, joined->scratch, bytes);
}

static pen_tensor_range joined_range(const joined_store *joined, uint32_t index, uint64_t first,
                                     uint64_t bytes) {
    const size_t size = pen_element_bytes(joined->store.tensors[index].type.element);
    return (pen_tensor_range){first / size, bytes / size, size};
}

// Piece by piece, and of each piece what each slice has.
static pen_status joined_move(joined_store *joined, uint32_t index, uint64_t first,
                              joined_host host, uint64_t bytes) {
    const joined_tensor *tensor = &joined->tensors[index];
    const uint32_t *members = &joined->members[tensor->first];
    const pen_tensor_store *slices = joined->slices;
    if (slices->tensors[members[0]].slice == NULL) {
        return host.writes ? slices->write(slices->context, members[0], first, host.from, bytes)
                           : slices->read(slices->context, members[0], first, host.into, bytes);
    }
    for (uint64_t done = 0; done < bytes; done += JOINED_PIECE_BYTES) {
        const pen_tensor_range range = joined_range(joined, index, first + done,
                                                    pen_min_u64(JOINED_PIECE_BYTES, bytes - done));
        for (uint32_t i = 0; i < tensor->count; i++) {
            PEN_TRY(joined_move_slice(joined, members[i], &range, joined_host_at(host, done)));
        }
    }
    return PEN_OK;
}

static pen_status joined_read(void *context, uint32_t index, uint64_t first, void *host,
                              uint64_t bytes) {
    return joined_move(context, index, first, (joined_host){.into = host}, bytes);
}

static pen_status joined_write(void *context, uint32_t index, uint64_t first, const void *host,
                               uint64_t bytes) {
    return joined_move(context, index, first, (joined_host){.writes = true, .from = host}, bytes);
}

// ---- which slices are of which tensor

static const char *joined_name(const pen_stored_tensor *tensor) {
    return tensor->slice == NULL ? tensor->name : tensor->slice->whole;
}

static pen_stored_tensor joined_whole(const pen_stored_tensor *tensor) {
    if (tensor->slice == NULL) return *tensor;
    const pen_tensor_type type = {tensor->type.element, tensor->slice->shape};
    return (pen_stored_tensor){.name = tensor->slice->whole,
                               .type = type,
                               .bytes = pen_tensor_type_bytes(&type),
                               .is_model = tensor->is_model};
}

// A tensor for each name, and how many slices it has.
static pen_status joined_count(joined_store *joined, pen_stored_tensor *wholes, uint32_t *tensor_of,
                               pen_arena *arena) {
    pen_name_map names;
    pen_name_map_init(&names, arena);
    for (uint32_t s = 0; s < joined->slices->count; s++) {
        const pen_stored_tensor *slice = &joined->slices->tensors[s];
        uint32_t index = pen_name_map_find(&names, joined_name(slice));
        if (index == PEN_NAME_MAP_NONE) {
            index = joined->store.count++;
            PEN_TRY(pen_name_map_add(&names, joined_name(slice), index));
            wholes[index] = joined_whole(slice);
        }
        tensor_of[s] = index;
        joined->tensors[index].count += 1;
    }
    return PEN_OK;
}

// Slices follow each other in a tensor, as they do in the graph.
static pen_status joined_check(const joined_store *joined, uint32_t index) {
    const joined_tensor *tensor = &joined->tensors[index];
    uint64_t at = 0, stride = 0;
    bool fits = true;
    for (uint32_t i = 0; i < tensor->count; i++) {
        const pen_tensor_slice *slice =
            joined->slices->tensors[joined->members[tensor->first + i]].slice;
        if (slice == NULL) return PEN_OK;
        fits &= slice->start == at && (i == 0 || slice->stride == stride);
        at += slice->run;
        stride = slice->stride;
    }
    if (fits && at == stride) return PEN_OK;
    return pen_error(PEN_INTERNAL, "the slices of '%s' are not all of it",
                     joined->store.tensors[index].name);
}

static pen_status joined_fill(joined_store *joined, const uint32_t *tensor_of, pen_arena *arena) {
    uint32_t first = 0;
    uint32_t *filled;
    PEN_TRY(PEN_NEW(arena, joined->store.count, &filled));
    for (uint32_t t = 0; t < joined->store.count; t++) {
        joined->tensors[t].first = first;
        first += joined->tensors[t].count;
    }
    for (uint32_t s = 0; s < joined->slices->count; s++) {
        const uint32_t t = tensor_of[s];
        joined->members[joined->tensors[t].first + filled[t]++] = s;
    }
    for (uint32_t t = 0; t < joined->store.count; t++) {
        PEN_TRY(joined_check(joined, t));
    }
    return PEN_OK;
}

// What is by itself is a tensor of one member.
pen_status pen_joined_store_create(const pen_tensor_store *slices, pen_arena *arena,
                                   const pen_tensor_store **out_store) {
    bool has_slices = false;
    for (uint32_t s = 0; s < slices->count; s++) {
        has_slices |= slices->tensors[s].slice != NULL;
    }
    *out_store = slices;
    if (!has_slices) return PEN_OK;
    joined_store *joined;
    pen_stored_tensor *wholes;
    uint32_t *tensor_of;
    PEN_TRY(PEN_NEW(arena, 1, &joined));
    PEN_TRY(PEN_NEW(arena, slices->count, &wholes));
    PEN_TRY(PEN_NEW(arena, slices->count, &tensor_of));
    PEN_TRY(PEN_NEW(arena, slices->count, &joined->tensors));
    PEN_TRY(PEN_NEW(arena, slices->count, &joined->members));
    joined->slices = slices;
    joined->store = (pen_tensor_store){
        .tensors = wholes, .context = joined, .read = joined_read, .write = joined_write};
    PEN_TRY(joined_count(joined, wholes, tensor_of, arena));
    PEN_TRY(joined_fill(joined, tensor_of, arena));
    PEN_TRY(PEN_NEW(arena, pen_tensor_store_piece_bytes(&joined->store), &joined->scratch));
    *out_store = &joined->store;
    return PEN_OK;
}
