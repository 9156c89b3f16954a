#include "scheduler/data/sql/sql_source.h"

#include "base/memory.h"

static const pen_sql_driver *const source_drivers[] = {
    [PEN_SQL_POSTGRES] = &pen_sql_driver_postgres,
    [PEN_SQL_SQLITE] = &pen_sql_driver_sqlite,
};

pen_status pen_sql_source_open(const pen_sql_target *target, pen_sql_source **out_source) {
    const pen_sql_driver *driver = source_drivers[target->kind];
    pen_sql_source *source = pen_memory_allocate(1, driver->state_bytes);
    if (source == NULL) return pen_error_out_of_memory();
    source->driver = driver;
    source->target = target;
    const pen_status status = driver->open(source);
    if (status != PEN_OK) {
        pen_sql_source_close(source);
        return status;
    }
    *out_source = source;
    return PEN_OK;
}

void pen_sql_source_close(pen_sql_source *source) {
    if (source == NULL) return;
    source->driver->close(source);
    pen_memory_free(source);
}
