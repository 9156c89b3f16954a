#include "partition/costs/cost_table.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

#define COST_INDEX_CAPACITY_FIRST 64

typedef enum cost_kind {
    COST_OPERATOR,
    COST_RATES,
    COST_LINK,
} cost_kind;

// What an item of the table is found by. Parts that its kind does not have are "" or 0.
typedef struct cost_key {
    cost_kind kind;
    const char *first;
    const char *second;
    const char *third;
    const char *host;
    uint32_t threads;
} cost_key;

typedef struct cost_slot {
    bool is_used;
    cost_key key;
    uint32_t index; // in the array of its kind
} cost_slot;

struct pen_cost_table {
    pen_arena *arena;
    uint32_t item_count; // of all kinds
    uint32_t slot_count; // a power of two, or 0
    cost_slot *slots;
    bool has_hosts;
    uint32_t counts[3]; // of each cost_kind
    uint32_t capacities[3];
    void *items[3]; // likewise: pen_cost_entry, pen_cost_rates, pen_cost_link
};

pen_status pen_cost_table_new(pen_arena *arena, pen_cost_table **out_table) {
    PEN_TRY(PEN_NEW(arena, 1, out_table));
    (*out_table)->arena = arena;
    return PEN_OK;
}

// ---- the index: open addressing over keys

static uint64_t cost_hash_text(uint64_t hash, const char *text) {
    return pen_hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t cost_hash(const cost_key *key) {
    uint64_t hash = PEN_HASH_START ^ (uint64_t)key->kind;
    hash = cost_hash_text(hash, key->first);
    hash = cost_hash_text(hash, key->second);
    hash = cost_hash_text(hash, key->third);
    hash = cost_hash_text(hash, key->host);
    hash = (hash ^ key->threads) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

static bool cost_key_equal(const cost_key *a, const cost_key *b) {
    return a->kind == b->kind && a->threads == b->threads && strcmp(a->second, b->second) == 0 &&
           strcmp(a->first, b->first) == 0 && strcmp(a->third, b->third) == 0 &&
           strcmp(a->host, b->host) == 0;
}

// The slot that holds `key`, or the free one where it belongs.
static cost_slot *cost_slot_of(cost_slot *slots, uint32_t slot_count, const cost_key *key) {
    uint32_t slot = (uint32_t)(cost_hash(key) & (slot_count - 1));
    while (slots[slot].is_used && !cost_key_equal(&slots[slot].key, key)) {
        slot = (slot + 1) & (slot_count - 1);
    }
    return &slots[slot];
}

// Its index among those of its kind, or UINT32_MAX.
static uint32_t cost_find(const pen_cost_table *table, const cost_key *key) {
    if (table->slot_count == 0) return UINT32_MAX;
    const cost_slot *slot = cost_slot_of(table->slots, table->slot_count, key);
    return slot->is_used ? slot->index : UINT32_MAX;
}

static pen_status cost_grow_index(pen_cost_table *table) {
    const uint32_t slot_count =
        table->slot_count == 0 ? COST_INDEX_CAPACITY_FIRST : 2 * table->slot_count;
    cost_slot *slots;
    PEN_TRY(PEN_NEW(table->arena, slot_count, &slots));
    for (uint32_t i = 0; i < table->slot_count; i++) {
        if (!table->slots[i].is_used) continue;
        *cost_slot_of(slots, slot_count, &table->slots[i].key) = table->slots[i];
    }
    table->slots = slots;
    table->slot_count = slot_count;
    return PEN_OK;
}

// Room for one more of the kind.
static pen_status cost_grow_items(pen_cost_table *table, cost_kind kind) {
    static const size_t item_bytes[] = {[COST_OPERATOR] = sizeof(pen_cost_entry),
                                        [COST_RATES] = sizeof(pen_cost_rates),
                                        [COST_LINK] = sizeof(pen_cost_link)};
    const uint32_t count = table->counts[kind];
    if (count < table->capacities[kind]) return PEN_OK;
    const uint32_t capacity = count == 0 ? 16 : 2 * count;
    void *grown =
        pen_arena_allocate(table->arena, capacity, item_bytes[kind], alignof(max_align_t));
    if (grown == NULL) return pen_error_out_of_memory();
    if (count > 0) memcpy(grown, table->items[kind], count * item_bytes[kind]);
    table->items[kind] = grown;
    table->capacities[kind] = capacity;
    return PEN_OK;
}

static pen_status cost_copy_text(pen_cost_table *table, const char **text) {
    return pen_arena_copy_text(table->arena, *text, strlen(*text), text);
}

// The index of `key`, added if it is new; its texts become the table's.
static pen_status cost_claim(pen_cost_table *table, cost_key *key, uint32_t *out_index) {
    *out_index = cost_find(table, key);
    if (*out_index != UINT32_MAX) {
        *key = cost_slot_of(table->slots, table->slot_count, key)->key;
        return PEN_OK;
    }
    if (table->item_count == PEN_COST_TABLE_ENTRY_LIMIT) {
        return pen_error(PEN_DOES_NOT_FIT, "the cost table has %u entries, the most allowed",
                         table->item_count);
    }
    PEN_TRY(cost_grow_items(table, key->kind));
    if (table->item_count >= table->slot_count / 2) PEN_TRY(cost_grow_index(table));
    PEN_TRY(cost_copy_text(table, &key->first));
    PEN_TRY(cost_copy_text(table, &key->second));
    PEN_TRY(cost_copy_text(table, &key->third));
    PEN_TRY(cost_copy_text(table, &key->host));
    if (key->host[0] != '\0') table->has_hosts = true;
    *out_index = table->counts[key->kind];
    *cost_slot_of(table->slots, table->slot_count, key) = (cost_slot){true, *key, *out_index};
    table->counts[key->kind] += 1;
    table->item_count += 1;
    return PEN_OK;
}

// ---- what may be in it

static pen_status cost_check_text(const char *what, const char *text) {
    if (text != NULL && text[0] != '\0') return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a cost has no %s", what);
}

static pen_status cost_check_number(const char *what, double number, double minimum,
                                    double maximum) {
    if (number >= minimum && number <= maximum) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "a cost: %s is %g, expected %g to %g", what, number,
                     minimum, maximum);
}

static const char *cost_host(const char *host) {
    return host == NULL ? "" : host;
}

// Checks before it stores: a table may come from a file, and its figures go into sums that must
// stay finite.
pen_status pen_cost_table_set(pen_cost_table *table, const pen_cost_entry *entry) {
    PEN_TRY(cost_check_text("op", entry->op));
    PEN_TRY(cost_check_text("shape", entry->shape));
    PEN_TRY(cost_check_text("kind", entry->kind));
    PEN_TRY(cost_check_number("threads", entry->threads, 1, PEN_COST_THREADS_LIMIT));
    PEN_TRY(cost_check_number("seconds", entry->seconds, 0, PEN_COST_SECONDS_LIMIT));
    PEN_TRY(
        cost_check_number("workspace", (double)entry->workspace_bytes, 0, PEN_COST_BYTES_LIMIT));
    cost_key key = {COST_OPERATOR,          entry->op,     entry->shape, entry->kind,
                    cost_host(entry->host), entry->threads};
    uint32_t index;
    PEN_TRY(cost_claim(table, &key, &index));
    pen_cost_entry *item = (pen_cost_entry *)table->items[COST_OPERATOR] + index;
    *item = *entry;
    item->op = key.first;
    item->shape = key.second;
    item->kind = key.third;
    item->host = key.host;
    return PEN_OK;
}

pen_status pen_cost_table_set_rates(pen_cost_table *table, const pen_cost_rates *rates) {
    PEN_TRY(cost_check_text("kind", rates->kind));
    PEN_TRY(cost_check_number("threads", rates->threads, 1, PEN_COST_THREADS_LIMIT));
    PEN_TRY(cost_check_number("flops", rates->flops, PEN_COST_RATE_MINIMUM, PEN_COST_RATE_LIMIT));
    PEN_TRY(cost_check_number("memory_bandwidth", rates->memory_bandwidth, PEN_COST_RATE_MINIMUM,
                              PEN_COST_RATE_LIMIT));
    cost_key key = {COST_RATES, rates->kind, "", "", cost_host(rates->host), rates->threads};
    uint32_t index;
    PEN_TRY(cost_claim(table, &key, &index));
    pen_cost_rates *item = (pen_cost_rates *)table->items[COST_RATES] + index;
    *item = *rates;
    item->kind = key.first;
    item->host = key.host;
    return PEN_OK;
}

// Directed: both directions of a link are entries of their own.
pen_status pen_cost_table_set_link(pen_cost_table *table, const pen_cost_link *link) {
    PEN_TRY(cost_check_text("from", link->from));
    PEN_TRY(cost_check_text("to", link->to));
    PEN_TRY(cost_check_number("bandwidth", link->bandwidth, PEN_COST_RATE_MINIMUM,
                              PEN_COST_RATE_LIMIT));
    PEN_TRY(cost_check_number("latency", link->latency, 0, PEN_COST_SECONDS_LIMIT));
    PEN_TRY(cost_check_number("send", link->send, 0, PEN_COST_RATE_LIMIT));
    PEN_TRY(cost_check_number("receive", link->receive, 0, PEN_COST_RATE_LIMIT));
    PEN_TRY(cost_check_number("message", link->message, 0, PEN_COST_SECONDS_LIMIT));
    if (strcmp(link->from, link->to) == 0) {
        return pen_error(PEN_INVALID_INPUT, "a link leads from '%.100s' to itself", link->from);
    }
    cost_key key = {COST_LINK, link->from, link->to, "", "", 0};
    uint32_t index;
    PEN_TRY(cost_claim(table, &key, &index));
    pen_cost_link *item = (pen_cost_link *)table->items[COST_LINK] + index;
    *item = *link;
    item->from = key.first;
    item->to = key.second;
    return PEN_OK;
}

// ---- reading

const pen_cost_entry *pen_cost_table_find_at(const pen_cost_table *table, const char *host,
                                             const char *op, const char *shape, const char *kind,
                                             uint32_t threads) {
    const cost_key key = {COST_OPERATOR, op, shape, kind, host, threads};
    const uint32_t index = cost_find(table, &key);
    return index == UINT32_MAX ? NULL : (const pen_cost_entry *)table->items[COST_OPERATOR] + index;
}

const pen_cost_rates *pen_cost_table_find_rates_at(const pen_cost_table *table, const char *host,
                                                   const char *kind, uint32_t threads) {
    const cost_key key = {COST_RATES, kind, "", "", host, threads};
    const uint32_t index = cost_find(table, &key);
    return index == UINT32_MAX ? NULL : (const pen_cost_rates *)table->items[COST_RATES] + index;
}

const pen_cost_entry *pen_cost_table_find(const pen_cost_table *table, const char *op,
                                          const char *shape, const char *kind, uint32_t threads) {
    return pen_cost_table_find_at(table, "", op, shape, kind, threads);
}

const pen_cost_rates *pen_cost_table_find_rates(const pen_cost_table *table, const char *kind,
                                                uint32_t threads) {
    return pen_cost_table_find_rates_at(table, "", kind, threads);
}

const pen_cost_link *pen_cost_table_find_link(const pen_cost_table *table, const char *from,
                                              const char *to) {
    const cost_key key = {COST_LINK, from, to, "", "", 0};
    const uint32_t index = cost_find(table, &key);
    return index == UINT32_MAX ? NULL : (const pen_cost_link *)table->items[COST_LINK] + index;
}

uint32_t pen_cost_table_count(const pen_cost_table *table) {
    return table->counts[COST_OPERATOR];
}

const pen_cost_entry *pen_cost_table_at(const pen_cost_table *table, uint32_t index) {
    PEN_ASSERT(index < table->counts[COST_OPERATOR]);
    return (const pen_cost_entry *)table->items[COST_OPERATOR] + index;
}

uint32_t pen_cost_table_rates_count(const pen_cost_table *table) {
    return table->counts[COST_RATES];
}

const pen_cost_rates *pen_cost_table_rates_at(const pen_cost_table *table, uint32_t index) {
    PEN_ASSERT(index < table->counts[COST_RATES]);
    return (const pen_cost_rates *)table->items[COST_RATES] + index;
}

bool pen_cost_table_has_hosts(const pen_cost_table *table) {
    return table->has_hosts;
}

uint32_t pen_cost_table_link_count(const pen_cost_table *table) {
    return table->counts[COST_LINK];
}

const pen_cost_link *pen_cost_table_link_at(const pen_cost_table *table, uint32_t index) {
    PEN_ASSERT(index < table->counts[COST_LINK]);
    return (const pen_cost_link *)table->items[COST_LINK] + index;
}
