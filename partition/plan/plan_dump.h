// A plan as people read it: tables of devices, stages and transfers, and what is predicted.
#ifndef PEN_PARTITION_PLAN_PLAN_DUMP_H
#define PEN_PARTITION_PLAN_PLAN_DUMP_H

#include "base/format/json_writer.h"
#include "base/text.h"
#include "partition/plan/plan.h"

// Adds the tables. With `nodes`, every node too.
void pen_plan_dump(const pen_plan *plan, bool nodes, pen_text *text);

// Writes the keys of an object that the caller began and ends.
void pen_plan_write_json(const pen_plan *plan, pen_json_writer *json);

// Writes what all tell of a transfer, as keys of an object likewise.
void pen_plan_write_transfer(const pen_plan_transfer *transfer, pen_json_writer *json);

// Columns that the names of devices take in tables.
size_t pen_plan_device_columns(const pen_plan *plan);

#endif // PEN_PARTITION_PLAN_PLAN_DUMP_H
