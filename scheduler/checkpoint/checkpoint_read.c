#include "scheduler/checkpoint/checkpoint_read.h"

#include "base/memory.h"

pen_status pen_checkpoint_reader_init(pen_checkpoint_reader *reader, const pen_shard_place *place,
                                      const pen_commit_manifest *manifest, uint64_t limit) {
    *reader = (pen_checkpoint_reader){.place = place, .manifest = manifest, .limit = limit};
    reader->scratch = pen_memory_allocate(limit, 1);
    return reader->scratch == NULL ? pen_error_out_of_memory() : PEN_OK;
}

void pen_checkpoint_reader_deinit(pen_checkpoint_reader *reader) {
    if (reader->is_open) pen_shard_reader_deinit(&reader->reader);
    pen_memory_free(reader->scratch);
}

static pen_status reader_open(pen_checkpoint_reader *reader, uint32_t shard) {
    if (reader->is_open && reader->shard == shard) return PEN_OK;
    if (reader->is_open) pen_shard_reader_deinit(&reader->reader);
    reader->is_open = true;
    reader->shard = shard;
    return pen_shard_reader_init(&reader->reader, reader->place->disk, reader->place->folder,
                                 &reader->manifest->shards[shard]);
}

// A part that is a range lands where it belongs; one in runs goes by way of the scratch.
static pen_status reader_read_part(pen_checkpoint_reader *reader, const pen_checkpoint_part *part,
                                   const pen_tensor_range *range, char *out) {
    const uint64_t at = pen_tensor_slice_before(&part->slice, range->first);
    const uint64_t end = pen_tensor_slice_before(&part->slice, range->first + range->count);
    if (at == end) return PEN_OK;
    PEN_TRY(reader_open(reader, part->shard));
    if (part->slice.stride == pen_tensor_type_bytes(&part->type)) {
        const uint64_t place = pen_tensor_slice_place(&part->slice, at) - range->first;
        return pen_shard_reader_read(&reader->reader, part->offset + at, out + place, end - at);
    }
    PEN_TRY(pen_shard_reader_read(&reader->reader, part->offset + at, reader->scratch, end - at));
    pen_tensor_slice_scatter(&part->slice, range, reader->scratch, out);
    return PEN_OK;
}

pen_status pen_checkpoint_reader_read(pen_checkpoint_reader *reader,
                                      const pen_checkpoint_part *parts, uint32_t count,
                                      const pen_tensor_range *range, void *out) {
    PEN_ASSERT(range->size == 1 && range->count <= reader->limit);
    for (uint32_t p = 0; p < count; p++) {
        PEN_TRY(reader_read_part(reader, &parts[p], range, out));
    }
    return PEN_OK;
}
