// penstock doctor: versions, and what was detected of this machine.

#include <stdio.h>

#include "base/format/json_reader.h"
#include "base/format/yaml_reader.h"
#include "base/system/machine.h"
#include "cli/command.h"
#include "device/device.h"
#include "graph/import/keras/hdf5_version.h"
#include "graph/import/zip_file.h"
#include "partition/strategies/metis_strategy.h"
#include "scheduler/data/gzip_reader.h"
#include "scheduler/data/image_decode.h"

typedef struct doctor_options {
    pen_cli_common common;
} doctor_options;

// A library, and the version that it gives itself when it runs.
typedef struct doctor_library {
    const char *name;
    const char *(*version)(void);
} doctor_library;

static const doctor_library doctor_libraries[] = {
    {"jansson", pen_jansson_version},     {"libhdf5", pen_hdf5_version},
    {"libpng", pen_png_version},          {"libyaml", pen_yaml_version},
    {"libzip", pen_zip_version},          {"METIS", pen_metis_version},
    {"turbojpeg", pen_turbojpeg_version}, {"zlib", pen_zlib_version},
};
#define DOCTOR_LIBRARY_COUNT (sizeof doctor_libraries / sizeof *doctor_libraries)

// What the cpu device says of itself: kernel level, OpenBLAS, oneDNN. Never fails for its own sake.
static pen_status doctor_describe_device(pen_arena *arena, const char **out_text) {
    const pen_device_kind *kind;
    pen_device *device = NULL;
    const pen_device_options options = {.name = "cpu"};
    pen_status status = pen_device_kind_find("cpu", &kind);
    if (status == PEN_OK) status = kind->open(&options, &device);
    if (status == PEN_OK) {
        status = kind->describe(device, arena, out_text);
        kind->close(device);
    }
    if (status == PEN_OK) return PEN_OK;
    const pen_status copied =
        pen_arena_format(arena, out_text, "cpu cannot be used: %s", pen_status_message(status));
    pen_status_ignore(status, "told with the rest");
    return copied;
}

// The libraries that are used, with the versions found at run time.
static pen_status doctor_print_json(const pen_machine *machine, const char *device) {
    pen_json_writer json;
    pen_command_begin_json(&json, "doctor");
    pen_json_key_text(&json, "version", PEN_VERSION);
    pen_json_key_text(&json, "compiler", __VERSION__);
    pen_json_key_text(&json, "system", machine->system);
    pen_json_key_text(&json, "processor", machine->processor);
    pen_json_key_text(&json, "instruction_sets", machine->instruction_sets);
    pen_json_key_unsigned(&json, "cores", machine->core_count);
    pen_json_key_unsigned(&json, "cores_allowed", machine->core_count_allowed);
    pen_json_key_unsigned(&json, "memory_bytes", machine->memory_bytes);
    pen_json_key_unsigned(&json, "memory_bytes_allowed", machine->memory_bytes_allowed);
    pen_json_key_unsigned(&json, "memory_bytes_free", machine->memory_bytes_free);
    pen_json_key_text(&json, "device", device);
    pen_json_key_object(&json, "libraries");
    for (size_t i = 0; i < DOCTOR_LIBRARY_COUNT; i++) {
        pen_json_key_text(&json, doctor_libraries[i].name, doctor_libraries[i].version());
    }
    pen_json_end_object(&json);
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

// What to send along with a question: versions, instruction sets, and what the system grants.
static pen_status doctor_print_text(const pen_machine *machine, const char *device) {
    char total[PEN_QUANTITY_TEXT_BYTES];
    char allowed[PEN_QUANTITY_TEXT_BYTES];
    char available[PEN_QUANTITY_TEXT_BYTES];
    printf("penstock      %s (compiled by %s)\n", PEN_VERSION, __VERSION__);
    printf("system        %s\n", machine->system);
    printf("processor     %s\n", machine->processor);
    printf("instructions  %s\n", machine->instruction_sets);
    printf("cores         %u, %u of them for this process\n", machine->core_count,
           machine->core_count_allowed);
    printf("memory        %s, %s of it for this process, %s free now\n",
           pen_bytes_format(machine->memory_bytes, total),
           pen_bytes_format(machine->memory_bytes_allowed, allowed),
           pen_bytes_format(machine->memory_bytes_free, available));
    printf("device        %s\n", device);
    for (size_t i = 0; i < DOCTOR_LIBRARY_COUNT; i++) {
        printf("%-13s %s\n", doctor_libraries[i].name, doctor_libraries[i].version());
    }
    if (fflush(stdout) != 0) return pen_error(PEN_IO, "cannot write to standard output");
    return PEN_OK;
}

static pen_status doctor_run(pen_command_context *context, const void *options_given) {
    const doctor_options *options = options_given;
    pen_machine machine;
    PEN_TRY(pen_machine_detect(context->arena, &machine));
    const char *device;
    PEN_TRY(doctor_describe_device(context->arena, &device));
    return options->common.json ? doctor_print_json(&machine, device)
                                : doctor_print_text(&machine, device);
}

const pen_command pen_command_doctor = {
    .name = "doctor",
    .summary = "say what is installed and what was detected",
    .table = {.operands = ""},
    .options_bytes = sizeof(doctor_options),
    .run = doctor_run,
};
