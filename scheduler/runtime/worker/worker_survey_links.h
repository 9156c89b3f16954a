// The contract of worker_survey_life.c and worker_survey_links.c between themselves: the inside of
// a survey, and what is measured over links.
#ifndef PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_LINKS_H
#define PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_LINKS_H

#include <stdatomic.h>

#include "base/thread.h"
#include "device/measure_op.h"
#include "scheduler/runtime/worker/worker_survey.h"

#define SURVEY_WINDOW 8 // tensors that are sent and not consumed, on one link
#define SURVEY_PLACES 16

// Of the run; those of other workers stay closed.
typedef struct survey_device {
    pen_device *device; // NULL: not open
    const pen_measure_step *step;
    double cores; // that the process gets while it computes; 0: as many as it uses
} survey_device;

typedef enum survey_place_state {
    SURVEY_PLACE_FREE,
    SURVEY_PLACE_ARRIVING,
    SURVEY_PLACE_THERE,
} survey_place_state;

// Where a tensor from another worker lies. Guarded by the lock.
typedef struct survey_place {
    survey_place_state state;
    char *memory; // [PEN_SURVEY_TENSOR_BYTES]
    uint32_t peer;
    uint32_t checksum;
    bool is_compared; // by the transport
    pen_frame frame;
} survey_place;

// What goes to a worker and comes from it, by the numbers of the next frames. Guarded by the lock.
typedef struct survey_peer {
    uint64_t sent;
    uint64_t credited; // all below are consumed there
    uint64_t received; // begun
    uint64_t replied;  // calls that were answered
} survey_peer;

struct pen_worker_survey {
    pen_worker_survey_options options;
    const pen_run_spec *spec;
    uint32_t worker;
    pen_arena *arena;
    survey_device *devices; // [device_count]

    // of links
    char *sent; // [SURVEY_PLACES][PEN_SURVEY_TENSOR_BYTES], lent with
    uint32_t checksums[SURVEY_PLACES];
    pen_thread *taker; // compares what came, and answers
    pen_thread *loads[PEN_SURVEY_THREADS_LIMIT];
    uint32_t load_count;
    atomic_bool computes;      // the loads
    atomic_uint_fast64_t work; // of all loads, in turns of SURVEY_TURN additions

    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    survey_place places[SURVEY_PLACES];
    uint32_t queue[SURVEY_PLACES]; // places that are to be taken, oldest first
    uint32_t queue_count;
    survey_peer *peers;          // [worker_count + 1]
    bool is_lent[SURVEY_PLACES]; // to the transport
    uint32_t lent_count;
    bool is_closed;
};

PEN_NODISCARD pen_status pen_survey_links_start(pen_worker_survey *survey);
PEN_NODISCARD pen_status pen_survey_links_load(pen_worker_survey *survey, uint32_t count);
PEN_NODISCARD pen_status pen_survey_links_work(pen_worker_survey *survey, double seconds,
                                               pen_survey_answer *out_answer);
PEN_NODISCARD pen_status pen_survey_links_send(pen_worker_survey *survey,
                                               const pen_survey_order *order,
                                               pen_survey_answer *out_answer);
PEN_NODISCARD pen_status pen_survey_links_call(pen_worker_survey *survey,
                                               const pen_survey_order *order,
                                               pen_survey_answer *out_answer);

#endif // PEN_SCHEDULER_RUNTIME_WORKER_WORKER_SURVEY_LINKS_H
