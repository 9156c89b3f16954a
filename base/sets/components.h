// Circles in a graph whose nodes are numbers.
#ifndef PEN_BASE_SETS_COMPONENTS_H
#define PEN_BASE_SETS_COMPONENTS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

// Strongly connected components of the graph in which edges lead from i to each of
// ids[first[i]] … ids[first[i + 1] - 1] (`first` is [count + 1]): out_component[i] is a number
// below *out_component_count that is equal for i and j exactly when each reaches the other, and
// larger for what comes earlier. Scratch stays in the arena. OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_components_find(uint32_t count, const uint32_t *first,
                                             const uint32_t *ids, pen_arena *arena,
                                             uint32_t *out_component,
                                             uint32_t *out_component_count);

#endif // PEN_BASE_SETS_COMPONENTS_H
