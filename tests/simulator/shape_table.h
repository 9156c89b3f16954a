// Run tables of a shape: its stages spread over devices and workers, in the order of one of the
// schedules, with random places of channels.
#ifndef PEN_TESTS_SIMULATOR_SHAPE_TABLE_H
#define PEN_TESTS_SIMULATOR_SHAPE_TABLE_H

#include "tests/simulator/shape.h"

const shape_table *shape_table_make(const shape *s, uint32_t worker_count, uint32_t variant,
                                    pen_arena *arena);

#endif // PEN_TESTS_SIMULATOR_SHAPE_TABLE_H
