#include "scheduler/runtime/run/run_spec.h"

#include <string.h>

#include "device/device.h"

pen_status pen_run_spec_open(const pen_run_spec_device *spec, pen_device **out_device) {
    const pen_device_options options = {.name = spec->name,
                                        .thread_count = spec->thread_count,
                                        .memory_bytes = spec->memory_bytes,
                                        .gpu = spec->gpu,
                                        .precision = (pen_precision)spec->precision,
                                        .libraries = (pen_libraries)spec->libraries};
    const pen_device_kind *kind;
    PEN_TRY(pen_device_kind_find(spec->kind, &kind));
    if (!pen_device_kind_can(kind, options.precision)) {
        return pen_error(PEN_CORRUPT, "device '%s' is of kind %s, which has no products of %s",
                         spec->name, spec->kind, pen_precision_names[options.precision]);
    }
    return kind->open(&options, out_device);
}

// For admission and dumps, which know numbers alone but speak to people.
pen_status pen_run_spec_name(const pen_run_spec *spec, pen_arena *arena,
                             const char *const **out_workers,
                             const char *const *const **out_channels) {
    const pen_run_table *table = spec->table;
    const char **workers, ***channels;
    PEN_TRY(PEN_NEW(arena, (size_t)table->worker_count + 1, &workers));
    PEN_TRY(PEN_NEW(arena, table->form_count, &channels));
    for (uint32_t w = 0; w <= table->worker_count; w++) {
        workers[w] = spec->workers[w].name;
    }
    for (uint32_t f = 0; f < table->form_count; f++) {
        PEN_TRY(PEN_NEW(arena, table->forms[f].channel_count, &channels[f]));
        for (uint32_t c = 0; c < table->forms[f].channel_count; c++) {
            channels[f][c] = spec->forms[f].channels[c].value;
        }
    }
    *out_workers = workers;
    memcpy(out_channels, &channels, sizeof *out_channels); // C does not add const that deep
    return PEN_OK;
}
