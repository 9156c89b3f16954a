#include "graph/verify.h"
#include "graph/wire/part_check.h"
#include "graph/wire/part_decoder.h"

#define DECODE_FIELDS 10u // of a part, and the unused 0

static pen_status decode_list(const pen_protobuf_reader *reader, const pen_protobuf_field *given,
                              pen_part_list *list) {
    pen_protobuf_reader message;
    uint32_t numbers[6] = {0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) break;
        if (field.number > 5) continue;
        PEN_TRY(
            pen_part_decode_uint(&message, &field, UINT32_MAX, "a list", &numbers[field.number]));
    }
    if (numbers[1] > PEN_TASK_UPDATE) {
        return pen_protobuf_error(&message, "a list of kind %u, expected at most %d", numbers[1],
                                  PEN_TASK_UPDATE);
    }
    *list = (pen_part_list){.kind = (pen_task_kind)numbers[1],
                            .stage = numbers[2],
                            .phase = numbers[3],
                            .first = numbers[4],
                            .end = numbers[5]};
    return PEN_OK;
}

static pen_status decode_fed(const pen_protobuf_reader *reader, const pen_protobuf_field *given,
                             pen_part_end *end) {
    pen_protobuf_reader message;
    *end = (pen_part_end){0};
    PEN_TRY(pen_protobuf_open(reader, given, &message));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&message, &field));
        if (field.number == 0) return PEN_OK;
        if (field.number == 1) {
            PEN_TRY(
                pen_part_decode_uint(&message, &field, UINT32_MAX - 1, "a channel", &end->channel));
        } else if (field.number == 2) {
            PEN_TRY(pen_part_decode_uint(&message, &field, UINT32_MAX - 1, "a value",
                                         &end->value.index));
        }
    }
}

// `counts`: of the part's fields.
static pen_status decode_start(part_decoder *d, const pen_protobuf_reader *start,
                               const uint32_t *counts) {
    const char *name = "";
    pen_protobuf_reader reader = *start;
    for (uint32_t n = 0; n < DECODE_FIELDS; n++) {
        const bool is_small = n == 2 || n == 5 || n == 8; // files, lists, fed
        if (!is_small || counts[n] <= PEN_PART_LISTS_LIMIT) continue;
        return pen_protobuf_error(start, "field %u is there %u times, expected at most %u", n,
                                  counts[n], PEN_PART_LISTS_LIMIT);
    }
    PEN_TRY(PEN_NEW(d->arena, counts[2], &d->files));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        if (field.number == 1) PEN_TRY(pen_protobuf_name(&reader, &field, d->arena, &name));
        if (field.number != 2) continue;
        PEN_TRY(pen_protobuf_name(&reader, &field, d->arena, &d->files[d->file_count++]));
    }
    d->values = *start;
    PEN_TRY(pen_graph_create(d->arena, name, &d->graph));
    PEN_TRY(pen_arena_create_within(d->scratch, &d->node_scratch));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->inputs));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->outputs));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->output_names));
    PEN_TRY(PEN_NEW(d->scratch, PEN_NODE_ARITY_LIMIT, &d->numbers));
    return PEN_NEW(d->scratch, PART_ATTRIBUTES_LIMIT, &d->attributes);
}

static pen_status decode_next_node(part_decoder *d, const pen_protobuf_reader *reader,
                                   const pen_protobuf_field *field) {
    pen_arena *scratch = d->scratch;
    d->scratch = d->node_scratch;
    const pen_status status = pen_part_decode_node(d, reader, field);
    d->scratch = scratch;
    pen_arena_reset(d->node_scratch);
    return status;
}

// Everything but what is inside values and nodes, which have been made: lists, order, kept, fed.
typedef struct decoded_rest {
    pen_part_list *lists;
    uint32_t *order;
    uint32_t *kept;
    pen_part_end *fed;
    uint32_t list_count, order_count, order_limit, kept_count, kept_limit, fed_count;
    uint32_t value_count;
} decoded_rest;

static pen_status decode_field(part_decoder *d, const pen_protobuf_reader *reader,
                               const pen_protobuf_field *field, decoded_rest *rest) {
    switch (field->number) {
    case 4:
        return decode_next_node(d, reader, field);
    case 5:
        return decode_list(reader, field, &rest->lists[rest->list_count++]);
    case 6:
        return pen_part_decode_uints(reader, field, "nodes in order", rest->order_limit,
                                     rest->order, &rest->order_count);
    case 7:
        return pen_part_decode_uints(reader, field, "values to keep", rest->kept_limit, rest->kept,
                                     &rest->kept_count);
    case 8:
        return decode_fed(reader, field, &rest->fed[rest->fed_count++]);
    case 9:
        return pen_part_decode_uint(reader, field, PEN_VALUE_COUNT_LIMIT, "value_count",
                                    &rest->value_count);
    default:
        return PEN_OK;
    }
}

static pen_status decode_part(part_decoder *d, const void *bytes, size_t length,
                              pen_wired_part *part) {
    pen_protobuf_reader reader;
    uint32_t counts[DECODE_FIELDS];
    decoded_rest rest = {.value_count = UINT32_MAX};
    pen_protobuf_init(&reader, bytes, length);
    const pen_protobuf_reader start = reader;
    PEN_TRY(pen_protobuf_count(&start, DECODE_FIELDS, counts));
    PEN_TRY(decode_start(d, &start, counts));
    PEN_TRY(pen_part_count_scalars(&start, 6, PEN_PROTOBUF_VARINT, &rest.order_limit));
    PEN_TRY(pen_part_count_scalars(&start, 7, PEN_PROTOBUF_VARINT, &rest.kept_limit));
    PEN_TRY(PEN_NEW(d->arena, counts[5], &rest.lists));
    PEN_TRY(PEN_NEW(d->arena, rest.order_limit, &rest.order));
    PEN_TRY(PEN_NEW(d->arena, rest.kept_limit, &rest.kept));
    PEN_TRY(PEN_NEW(d->arena, counts[8], &rest.fed));
    for (;;) {
        pen_protobuf_field field;
        PEN_TRY(pen_protobuf_next(&reader, &field));
        if (field.number == 0) break;
        PEN_TRY(decode_field(d, &reader, &field, &rest));
    }
    if (rest.value_count != counts[3]) {
        return pen_protobuf_error(&reader, "the part says that it has %u values, and has %u",
                                  rest.value_count, counts[3]);
    }
    PEN_TRY(pen_part_decode_values_until(d, rest.value_count));
    PEN_TRY(pen_graph_verify(d->graph, &(pen_verify_options){.types = true}));
    const part_claims claims = {.graph = d->graph,
                                .lists = rest.lists,
                                .list_count = rest.list_count,
                                .order = rest.order,
                                .order_count = rest.order_count,
                                .kept = rest.kept,
                                .kept_count = rest.kept_count,
                                .fed = rest.fed,
                                .fed_count = rest.fed_count};
    return pen_part_check(&claims, d->arena, d->scratch, part);
}

// Whatever the graph says against the bytes, they are at fault.
static pen_status decode_blame(pen_status status) {
    const pen_status_code code = pen_status_get_code(status);
    if (status == PEN_OK || code == PEN_CORRUPT || code == PEN_OUT_OF_MEMORY) return status;
    const pen_status blamed = pen_error(PEN_CORRUPT, "%s", pen_status_message(status));
    pen_status_ignore(status, "its message is passed on");
    return blamed;
}

pen_status pen_part_decode(const void *bytes, uint64_t byte_count, pen_arena *arena,
                           const pen_wired_part **out_part) {
    if (byte_count > PEN_PART_BYTES_LIMIT) {
        return pen_error(PEN_CORRUPT, "a part of %llu bytes, expected at most %u",
                         (unsigned long long)byte_count, PEN_PART_BYTES_LIMIT);
    }
    part_decoder d = {.arena = arena};
    pen_wired_part *part;
    PEN_TRY(PEN_NEW(arena, 1, &part));
    PEN_TRY(pen_arena_create(&d.scratch));
    const pen_status status = decode_blame(decode_part(&d, bytes, (size_t)byte_count, part));
    pen_arena_destroy(d.scratch);
    PEN_TRY(pen_status_add_context(status, "while reading a part"));
    *out_part = part;
    return PEN_OK;
}
