// Measured costs: operators, rates of devices, links (partition/costs/cost_table_file.h).
//
// An operator's entry is found by op, the text of its shape (element types, sizes, layouts and
// attributes; see pen_cost_key), kind of device and threads, and the host where it was measured, if
// that is another one than where plans are made.
//
// Limits: PEN_COST_TABLE_ENTRY_LIMIT operators, rates and links together.
//
// Lifetime: a table lives in the arena it was made with.
// Threads:  one thread changes it; once it is no longer changed, any may read.
#ifndef PEN_PARTITION_COSTS_COST_TABLE_H
#define PEN_PARTITION_COSTS_COST_TABLE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"

#define PEN_COST_TABLE_ENTRY_LIMIT (1u << 16)
#define PEN_COST_THREADS_LIMIT 4096
#define PEN_COST_SECONDS_LIMIT 1e9  // of one run
#define PEN_COST_BYTES_LIMIT 0x1p50 // of workspace
#define PEN_COST_RATE_MINIMUM 1.0   // a second: operations or bytes
#define PEN_COST_RATE_LIMIT 1e21
#define PEN_COST_RUNS_LIMIT 1000000000

typedef struct pen_cost_table pen_cost_table;

typedef struct pen_cost_entry {
    const char *op;
    const char *shape; // pen_cost_key
    const char *kind;  // of device
    uint32_t threads;
    double seconds; // median of `runs`
    uint64_t workspace_bytes;
    uint32_t runs;
    const char *host; // "n1", a host's name without a port; "" or NULL: this machine
} pen_cost_entry;

typedef struct pen_cost_rates {
    const char *kind;
    uint32_t threads;
    double flops;            // a second
    double memory_bandwidth; // bytes a second
    const char *host;        // as of entries
} pen_cost_rates;

typedef struct pen_cost_link {
    const char *from; // names of devices
    const char *to;
    double bandwidth; // bytes a second
    double latency;   // seconds
    double send;      // bytes a second of the sending device's time; 0: was not measured
    double receive;   // likewise, of the receiving one's
    double message;   // seconds of either for each message
    bool has_message; // it was measured
} pen_cost_link;

PEN_NODISCARD pen_status pen_cost_table_new(pen_arena *arena, pen_cost_table **out_table);

// Adds, or replaces the entry of the same key. Texts are copied.
//   INVALID_INPUT  a figure that is not finite or out of range, an empty text
//   DOES_NOT_FIT   the table is full; OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_cost_table_set(pen_cost_table *table, const pen_cost_entry *entry);
PEN_NODISCARD pen_status pen_cost_table_set_rates(pen_cost_table *table,
                                                  const pen_cost_rates *rates);
PEN_NODISCARD pen_status pen_cost_table_set_link(pen_cost_table *table, const pen_cost_link *link);

// In the order added. Pointers stay valid until the next call that changes the table.
uint32_t pen_cost_table_count(const pen_cost_table *table);
const pen_cost_entry *pen_cost_table_at(const pen_cost_table *table, uint32_t index);
uint32_t pen_cost_table_rates_count(const pen_cost_table *table);
const pen_cost_rates *pen_cost_table_rates_at(const pen_cost_table *table, uint32_t index);
// Whether some was measured on another host.
bool pen_cost_table_has_hosts(const pen_cost_table *table);
uint32_t pen_cost_table_link_count(const pen_cost_table *table);
const pen_cost_link *pen_cost_table_link_at(const pen_cost_table *table, uint32_t index);

// NULL when there is none. What is found stays valid until the table is changed. Those without a
// host look for what was measured on this machine.
const pen_cost_entry *pen_cost_table_find(const pen_cost_table *table, const char *op,
                                          const char *shape, const char *kind, uint32_t threads);
const pen_cost_rates *pen_cost_table_find_rates(const pen_cost_table *table, const char *kind,
                                                uint32_t threads);
const pen_cost_entry *pen_cost_table_find_at(const pen_cost_table *table, const char *host,
                                             const char *op, const char *shape, const char *kind,
                                             uint32_t threads);
const pen_cost_rates *pen_cost_table_find_rates_at(const pen_cost_table *table, const char *host,
                                                   const char *kind, uint32_t threads);
const pen_cost_link *pen_cost_table_find_link(const pen_cost_table *table, const char *from,
                                              const char *to);

#endif // PEN_PARTITION_COSTS_COST_TABLE_H
