#include "partition/costs/cost_table_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/yaml_reader.h"
#include "base/format/yaml_writer.h"
#include "base/system/file.h"
#include "base/text.h"

#define COST_FILE_BYTES_LIMIT ((size_t)64 << 20)
#define COST_FILE_NODES_LIMIT (1u << 20) // 15 for each operator

// As read, before it is checked as a whole.
typedef struct cost_file_operator {
    const char *op;
    const char *shape;
    const char *kind;
    int64_t threads;
    double seconds;
    uint64_t workspace;
    int64_t runs;
    const char *host;
} cost_file_operator;

typedef struct cost_file_rates {
    const char *kind;
    int64_t threads;
    double flops;
    double memory_bandwidth;
    const char *host;
} cost_file_rates;

typedef struct cost_file {
    int64_t version;
    pen_option_list rates;
    pen_option_list operators;
    pen_option_list links; // of pen_cost_link
} cost_file;

#define COST_HOST_FIELD(structure)                                                                 \
    PEN_OPTION(TEXT, structure, host, "where it was measured, without a port; else here")

#define COST_THREADS_FIELD(structure)                                                              \
    PEN_OPTION(INTEGER, structure, threads, "of its kernel team", .is_required = true,             \
               PEN_OPTION_RANGE(1, PEN_COST_THREADS_LIMIT))

static const pen_option_field cost_operator_fields[] = {
    PEN_OPTION(TEXT, cost_file_operator, op, "the operator, as inspect names it",
               .is_required = true),
    PEN_OPTION(TEXT, cost_file_operator, shape,
               "types of its operands and results, and its attributes", .is_required = true),
    PEN_OPTION(TEXT, cost_file_operator, kind, "of the device that was measured",
               .is_required = true),
    COST_THREADS_FIELD(cost_file_operator),
    PEN_OPTION(SECONDS, cost_file_operator, seconds, "median time of one run", .is_required = true,
               PEN_OPTION_RANGE(0, PEN_COST_SECONDS_LIMIT)),
    PEN_OPTION(BYTES, cost_file_operator, workspace, "memory it needs while it runs",
               .maximum = PEN_OPTION_TO(PEN_COST_BYTES_LIMIT), .default_text = "0B"),
    PEN_OPTION(INTEGER, cost_file_operator, runs, "that the median is of; 0: stated, not measured",
               PEN_OPTION_RANGE(0, PEN_COST_RUNS_LIMIT), .default_text = "0"),
    COST_HOST_FIELD(cost_file_operator),
};
static const pen_option_table cost_operator_table = {
    PEN_OPTION_FIELDS(cost_file_operator, cost_operator_fields)};

static const pen_option_field cost_rates_fields[] = {
    PEN_OPTION(TEXT, cost_file_rates, kind, "of the device that was measured", .is_required = true),
    COST_THREADS_FIELD(cost_file_rates),
    PEN_OPTION(RATE, cost_file_rates, flops, "floating-point operations a second",
               .is_required = true, PEN_OPTION_RANGE(PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT)),
    PEN_OPTION(BANDWIDTH, cost_file_rates, memory_bandwidth, "bytes read and written a second",
               .is_required = true, PEN_OPTION_RANGE(PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT)),
    COST_HOST_FIELD(cost_file_rates),
};
static const pen_option_table cost_rates_table = {
    PEN_OPTION_FIELDS(cost_file_rates, cost_rates_fields)};

static const pen_option_field cost_link_fields[] = {
    PEN_OPTION(TEXT, pen_cost_link, from, "name of a device", .is_required = true),
    PEN_OPTION(TEXT, pen_cost_link, to, "name of another", .is_required = true),
    PEN_OPTION(BANDWIDTH, pen_cost_link, bandwidth, "in this direction", .is_required = true,
               PEN_OPTION_RANGE(PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT)),
    PEN_OPTION(SECONDS, pen_cost_link, latency, "of a message without content", .is_required = true,
               PEN_OPTION_RANGE(0, PEN_COST_SECONDS_LIMIT)),
    PEN_OPTION(BANDWIDTH, pen_cost_link, send,
               "bytes for each second of computing that sending takes from the device",
               PEN_OPTION_RANGE(PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT)),
    PEN_OPTION(BANDWIDTH, pen_cost_link, receive, "likewise, that receiving takes",
               PEN_OPTION_RANGE(PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT)),
    PEN_OPTION(SECONDS, pen_cost_link, message,
               "of computing that each message takes from either device",
               PEN_OPTION_RANGE(0, PEN_COST_SECONDS_LIMIT),
               .present_offset = offsetof(pen_cost_link, has_message)),
};

static pen_status cost_check_link(const void *object, const pen_option_source *source) {
    const pen_cost_link *link = object;
    if (strcmp(link->from, link->to) != 0) return PEN_OK;
    return pen_option_blame(source, &link->to,
                            pen_error(PEN_INVALID_INPUT,
                                      "to: found \"%.100s\", which the link comes from, expected "
                                      "another device",
                                      link->to));
}

static const pen_option_table cost_link_table = {
    PEN_OPTION_FIELDS(pen_cost_link, cost_link_fields),
    .check = cost_check_link,
};

static const pen_option_field cost_operator_item = {.kind = PEN_OPTION_MAPPING,
                                                    .table = &cost_operator_table};
static const pen_option_field cost_rates_item = {.kind = PEN_OPTION_MAPPING,
                                                 .table = &cost_rates_table};
static const pen_option_field cost_link_item = {.kind = PEN_OPTION_MAPPING,
                                                .table = &cost_link_table};

static const pen_option_field cost_file_fields[] = {
    PEN_OPTION(INTEGER, cost_file, version, "of this format", .is_required = true,
               PEN_OPTION_RANGE(1, 1)),
    PEN_OPTION(LIST, cost_file, rates, "of devices, by kind and threads", .item = &cost_rates_item),
    PEN_OPTION(LIST, cost_file, operators, "measured times", .item = &cost_operator_item),
    PEN_OPTION(LIST, cost_file, links, "between devices, by their names", .item = &cost_link_item),
};

const pen_option_table pen_cost_table_keys = {
    .help = "Measured costs: rates of devices, operators, links.",
    PEN_OPTION_FIELDS(cost_file, cost_file_fields)};

// ---- reading

// An operator that is given twice is refused: which of the times holds would be chance.
static pen_status cost_file_take_operators(const cost_file *file, const pen_option_source *source,
                                           pen_cost_table *table) {
    const cost_file_operator *items = file->operators.items;
    for (uint32_t i = 0; i < file->operators.count; i++) {
        const cost_file_operator *item = &items[i];
        const pen_cost_entry entry = {.op = item->op,
                                      .shape = item->shape,
                                      .kind = item->kind,
                                      .threads = (uint32_t)item->threads,
                                      .seconds = item->seconds,
                                      .workspace_bytes = item->workspace,
                                      .runs = (uint32_t)item->runs,
                                      .host = item->host == NULL ? "" : item->host};
        if (pen_cost_table_find_at(table, entry.host, entry.op, entry.shape, entry.kind,
                                   entry.threads) != NULL) {
            return pen_option_blame(
                source, &item->op,
                pen_error(PEN_INVALID_INPUT,
                          "the cost of %.100s on %.100s with %u threads is given twice for shape "
                          "\"%.200s\"",
                          entry.op, entry.kind, entry.threads, entry.shape));
        }
        PEN_TRY(pen_option_blame(source, &item->op, pen_cost_table_set(table, &entry)));
    }
    return PEN_OK;
}

// Likewise of rates.
static pen_status cost_file_take_rates(const cost_file *file, const pen_option_source *source,
                                       pen_cost_table *table) {
    const cost_file_rates *items = file->rates.items;
    for (uint32_t i = 0; i < file->rates.count; i++) {
        const cost_file_rates *item = &items[i];
        const pen_cost_rates rates = {.kind = item->kind,
                                      .threads = (uint32_t)item->threads,
                                      .flops = item->flops,
                                      .memory_bandwidth = item->memory_bandwidth,
                                      .host = item->host == NULL ? "" : item->host};
        if (pen_cost_table_find_rates_at(table, rates.host, rates.kind, rates.threads) != NULL) {
            return pen_option_blame(source, &item->kind,
                                    pen_error(PEN_INVALID_INPUT,
                                              "rates of %.100s with %u threads are given twice",
                                              rates.kind, rates.threads));
        }
        PEN_TRY(pen_option_blame(source, &item->kind, pen_cost_table_set_rates(table, &rates)));
    }
    return PEN_OK;
}

static pen_status cost_file_take_links(const cost_file *file, const pen_option_source *source,
                                       pen_cost_table *table) {
    const pen_cost_link *items = file->links.items;
    for (uint32_t i = 0; i < file->links.count; i++) {
        const pen_cost_link *link = &items[i];
        if (pen_cost_table_find_link(table, link->from, link->to) != NULL) {
            return pen_option_blame(source, &link->from,
                                    pen_error(PEN_INVALID_INPUT,
                                              "the link from '%.100s' to '%.100s' is given twice",
                                              link->from, link->to));
        }
        PEN_TRY(pen_option_blame(source, &link->from, pen_cost_table_set_link(table, link)));
    }
    return PEN_OK;
}

pen_status pen_cost_table_parse(const char *path, const char *bytes, size_t length,
                                pen_arena *arena, pen_cost_table **out_table) {
    const pen_yaml_limits limits = {.bytes = COST_FILE_BYTES_LIMIT, .nodes = COST_FILE_NODES_LIMIT};
    const pen_option_settings settings = {.file = path};
    const pen_yaml_node *root;
    const pen_option_source *source;
    cost_file file = {0};
    pen_cost_table *table;
    PEN_TRY(pen_yaml_parse_within(path, bytes, length, limits, arena, &root));
    PEN_TRY(pen_option_read(&pen_cost_table_keys, root, &settings, arena, &file, &source));
    PEN_TRY(pen_cost_table_new(arena, &table));
    PEN_TRY(cost_file_take_rates(&file, source, table));
    PEN_TRY(cost_file_take_operators(&file, source, table));
    PEN_TRY(cost_file_take_links(&file, source, table));
    *out_table = table;
    return PEN_OK;
}

pen_status pen_cost_table_read(const char *path, pen_arena *arena, pen_cost_table **out_table) {
    const char *bytes;
    size_t length;
    PEN_TRY(pen_file_read(path, COST_FILE_BYTES_LIMIT, arena, &bytes, &length));
    return pen_cost_table_parse(path, bytes, length, arena, out_table);
}

// ---- writing

static void cost_write_text(pen_text *text, const char *key, const char *value) {
    pen_text_print(text, "%s: ", key);
    pen_yaml_add_text(text, value);
}

// What was measured here comes first.
static int cost_compare_entries(const void *a, const void *b) {
    const pen_cost_entry *left = a, *right = b;
    int order = strcmp(left->host, right->host);
    if (order == 0) order = strcmp(left->kind, right->kind);
    if (order == 0) order = (left->threads > right->threads) - (left->threads < right->threads);
    if (order == 0) order = strcmp(left->op, right->op);
    return order != 0 ? order : strcmp(left->shape, right->shape);
}

static int cost_compare_rates(const void *a, const void *b) {
    const pen_cost_rates *left = a, *right = b;
    int order = strcmp(left->host, right->host);
    if (order == 0) order = strcmp(left->kind, right->kind);
    if (order != 0) return order;
    return (left->threads > right->threads) - (left->threads < right->threads);
}

static int cost_compare_links(const void *a, const void *b) {
    const pen_cost_link *left = a, *right = b;
    const int order = strcmp(left->from, right->from);
    return order != 0 ? order : strcmp(left->to, right->to);
}

// A copy, sorted: equal tables are equal files, and a new measurement shows as a small diff.
static pen_status cost_sort(const void *items, uint32_t count, size_t item_bytes,
                            int (*compare)(const void *, const void *), pen_arena *arena,
                            void **out_sorted) {
    *out_sorted = pen_arena_allocate(arena, count, item_bytes, alignof(max_align_t));
    if (*out_sorted == NULL) return pen_error_out_of_memory();
    memcpy(*out_sorted, items, count * item_bytes);
    qsort(*out_sorted, count, item_bytes, compare);
    return PEN_OK;
}

static void cost_write_host(pen_text *text, const char *host) {
    if (host[0] != '\0') cost_write_text(text, ", host", host);
}

static pen_status cost_write_rates(const pen_cost_table *table, pen_arena *arena, pen_text *text) {
    const uint32_t count = pen_cost_table_rates_count(table);
    if (count == 0) return PEN_OK;
    void *sorted;
    PEN_TRY(cost_sort(pen_cost_table_rates_at(table, 0), count, sizeof(pen_cost_rates),
                      cost_compare_rates, arena, &sorted));
    const pen_cost_rates *items = sorted;
    pen_text_add(text, "rates:\n");
    for (uint32_t i = 0; i < count; i++) {
        cost_write_text(text, "  - {kind", items[i].kind);
        pen_text_print(text, ", threads: %u, flops: ", items[i].threads);
        pen_yaml_add_quantity(text, items[i].flops, PEN_UNIT_RATE);
        pen_text_add(text, ", memory_bandwidth: ");
        pen_yaml_add_quantity(text, items[i].memory_bandwidth, PEN_UNIT_BANDWIDTH);
        cost_write_host(text, items[i].host);
        pen_text_add(text, "}\n");
    }
    return PEN_OK;
}

// Two lines for each operator, as people read them.
static pen_status cost_write_operators(const pen_cost_table *table, pen_arena *arena,
                                       pen_text *text) {
    const uint32_t count = pen_cost_table_count(table);
    if (count == 0) return PEN_OK;
    void *sorted;
    PEN_TRY(cost_sort(pen_cost_table_at(table, 0), count, sizeof(pen_cost_entry),
                      cost_compare_entries, arena, &sorted));
    const pen_cost_entry *items = sorted;
    pen_text_add(text, "operators:\n");
    for (uint32_t i = 0; i < count; i++) {
        cost_write_text(text, "  - {op", items[i].op);
        cost_write_text(text, ", shape", items[i].shape);
        cost_write_text(text, ",\n     kind", items[i].kind);
        pen_text_print(text, ", threads: %u, seconds: ", items[i].threads);
        pen_yaml_add_quantity(text, items[i].seconds, PEN_UNIT_SECONDS);
        pen_text_print(text, ", workspace: %" PRIu64 "B, runs: %u", items[i].workspace_bytes,
                       items[i].runs);
        cost_write_host(text, items[i].host);
        pen_text_add(text, "}\n");
    }
    return PEN_OK;
}

// What the ends of a link compute is written where it is known.
static pen_status cost_write_links(const pen_cost_table *table, pen_arena *arena, pen_text *text) {
    const uint32_t count = pen_cost_table_link_count(table);
    if (count == 0) return PEN_OK;
    void *sorted;
    PEN_TRY(cost_sort(pen_cost_table_link_at(table, 0), count, sizeof(pen_cost_link),
                      cost_compare_links, arena, &sorted));
    const pen_cost_link *items = sorted;
    pen_text_add(text, "links:\n");
    for (uint32_t i = 0; i < count; i++) {
        cost_write_text(text, "  - {from", items[i].from);
        cost_write_text(text, ", to", items[i].to);
        pen_text_add(text, ", bandwidth: ");
        pen_yaml_add_quantity(text, items[i].bandwidth, PEN_UNIT_BANDWIDTH);
        pen_text_add(text, ", latency: ");
        pen_yaml_add_quantity(text, items[i].latency, PEN_UNIT_SECONDS);
        if (items[i].send > 0) {
            pen_text_add(text, ",\n     send: ");
            pen_yaml_add_quantity(text, items[i].send, PEN_UNIT_BANDWIDTH);
        }
        if (items[i].receive > 0) {
            pen_text_add(text, ", receive: ");
            pen_yaml_add_quantity(text, items[i].receive, PEN_UNIT_BANDWIDTH);
        }
        if (items[i].has_message) {
            pen_text_add(text, ", message: ");
            pen_yaml_add_quantity(text, items[i].message, PEN_UNIT_SECONDS);
        }
        pen_text_add(text, "}\n");
    }
    return PEN_OK;
}

pen_status pen_cost_table_format(const pen_cost_table *table, pen_arena *arena,
                                 const char **out_text) {
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add(&text, "version: 1\n");
    PEN_TRY(cost_write_rates(table, arena, &text));
    PEN_TRY(cost_write_operators(table, arena, &text));
    PEN_TRY(cost_write_links(table, arena, &text));
    return pen_text_finish(&text, out_text);
}

pen_status pen_cost_table_write(const pen_cost_table *table, const char *path) {
    pen_arena *arena = NULL;
    const char *text = NULL;
    pen_status status = pen_arena_create(&arena);
    if (status == PEN_OK) status = pen_cost_table_format(table, arena, &text);
    if (status == PEN_OK && strlen(text) > COST_FILE_BYTES_LIMIT) {
        status = pen_error(PEN_DOES_NOT_FIT, "the cost table takes %zu bytes, a file may have %zu",
                           strlen(text), COST_FILE_BYTES_LIMIT);
    }
    if (status == PEN_OK) status = pen_file_write_text(path, text);
    pen_arena_destroy(arena);
    return status;
}
