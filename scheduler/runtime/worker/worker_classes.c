// Of which class the devices of a run are, by what they said when they were opened, and what they
// could not take into use.
#include "scheduler/runtime/worker/worker_classes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "device/device.h"
#include "scheduler/protocol/message.h"
#include "scheduler/runtime/worker/worker_device.h"

// The device of the same kind that was identified before this one; NULL: there is none.
static const worker_device *run_find_alike(const pen_worker_run *run, uint32_t local) {
    const char *kind = run->spec->devices[run->devices[local].index].kind;
    for (uint32_t d = 0; d < local; d++) {
        if (strcmp(run->spec->devices[run->devices[d].index].kind, kind) == 0) {
            return &run->devices[d];
        }
    }
    return NULL;
}

// Adds what fits of a line to a text that ends at `at`; returns where it ends then.
PEN_PRINTF(4, 5)
static size_t classes_add(char *text, size_t size, size_t at, const char *format, ...) {
    va_list arguments;
    if (at > 0 && at < size - 1) text[at++] = '\n';
    va_start(arguments, format);
    const int length = vsnprintf(text + at, size - at, format, arguments);
    va_end(arguments);
    return length < 0 ? at : pen_min_u64(at + (size_t)length, size - 1);
}

void pen_worker_run_lacks(const pen_worker_run *run, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < run->device_count; d++) {
        pen_device *device = run->devices[d].device;
        const char *lacks = device == NULL ? NULL : pen_device_lacks(device);
        if (lacks != NULL) at = classes_add(text, size, at, "%s", lacks);
    }
}

// One of two may lack what the other has.
static pen_status run_add_lacks(const pen_worker_run *run, pen_status status) {
    char lacks[PEN_MESSAGE_TEXT_BYTES];
    pen_worker_run_lacks(run, lacks, sizeof lacks);
    return lacks[0] == '\0' ? status : pen_status_add_context(status, "%s", lacks);
}

// Devices of a kind are one class: a plan may move nodes between them without changing a bit.
pen_status pen_worker_run_check_classes(const pen_worker_run *run) {
    for (uint32_t d = 0; d < run->device_count; d++) {
        const worker_device *device = &run->devices[d], *before = run_find_alike(run, d);
        if (device->identity == NULL || before == NULL || before->identity == NULL) continue;
        if (strcmp(device->identity, before->identity) == 0) continue;
        const pen_status status = pen_error(
            PEN_INVALID_INPUT, "device '%s' is '%s', device '%s' is '%s': " PEN_DEVICE_UNLIKE,
            run->spec->devices[before->index].name, before->identity,
            run->spec->devices[device->index].name, device->identity);
        return run_add_lacks(run, status);
    }
    return PEN_OK;
}

void pen_worker_run_identify(const pen_worker_run *run, char *text, size_t size) {
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < run->device_count; d++) {
        const worker_device *device = &run->devices[d];
        if (device->identity == NULL || run_find_alike(run, d) != NULL) continue;
        at = classes_add(text, size, at, "%s: %s", run->spec->devices[device->index].kind,
                         device->identity);
    }
}
