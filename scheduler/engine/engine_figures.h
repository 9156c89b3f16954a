// Of the contract of this folder (engine.h): what engines tell in figures, beside what they do.
//
// Texts and arrays live as long as the arena that is given to whoever tells them, or the engine.
#ifndef PEN_SCHEDULER_ENGINE_ENGINE_FIGURES_H
#define PEN_SCHEDULER_ENGINE_ENGINE_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

// Bytes that were planned, of all forms so far.
typedef struct pen_engine_memory {
    uint64_t device_bytes;        // buffers, over all devices
    uint64_t persistent_bytes;    // of those: parameters, states, accumulated gradients, inputs
    uint64_t arena_bytes;         // of those: activations, gradients, workspace of the largest form
    uint64_t live_bytes_peak;     // the least that any plan of the arena could take
    uint64_t resident_bytes_peak; // of this process, with the devices in it
} pen_engine_memory;

// What a device was predicted to do and did, over the steps since the start but the first. Figures
// that are not known are negative.
typedef struct pen_engine_device_report {
    const char *name;
    const char *worker;            // where: "this process", "127.0.0.1:40123"
    double busy_seconds_predicted; // of a step
    double busy_seconds;
    double wait_seconds;
    double bytes_predicted; // of memory: buffers
    double bytes;
    double process_bytes_predicted; // resident peak of its process
    double process_bytes;
    double sent_bytes_predicted; // of a step
    double sent_bytes;
} pen_engine_device_report;

typedef struct pen_engine_report {
    uint32_t device_count; // 0: nothing was predicted
    const pen_engine_device_report *devices;
    double step_seconds_predicted;
    double step_seconds; // median
    double bubble_predicted;
    double bubble; // share of the devices' time between a step's first task and its last in which
                   // they do not compute, mean over steps
} pen_engine_report;

// How the steps so far went, for progress: what is known here without asking anybody.
typedef struct pen_engine_pulse {
    double bubble; // mean over the steps but the first; negative: not known
    bool has_slowest;
    uint32_t slowest_stage;     // which takes longest in a step,
    const char *slowest_device; // and where it is
} pen_engine_pulse;

#endif // PEN_SCHEDULER_ENGINE_ENGINE_FIGURES_H
