// The schedule generators there are. A new one is a file and a line here.

#include "base/text.h"
#include "scheduler/schedule/schedule.h"

// Each is pen_schedule_<name>, in a file of its own.
#define SCHEDULE_LIST(SCHEDULE)                                                                    \
    SCHEDULE(one_f_one_b)                                                                          \
    SCHEDULE(gpipe)                                                                                \
    SCHEDULE(interleaved)                                                                          \
    SCHEDULE(zero_bubble)                                                                          \
    SCHEDULE(auto)

#define SCHEDULE_DECLARE(name) extern const pen_schedule_generator pen_schedule_##name;
#define SCHEDULE_ENTRY(name) &pen_schedule_##name,

SCHEDULE_LIST(SCHEDULE_DECLARE)

const pen_schedule_generator *const pen_schedule_generators[] = {SCHEDULE_LIST(SCHEDULE_ENTRY)
                                                                     NULL};

#define SCHEDULE_COUNT (sizeof pen_schedule_generators / sizeof *pen_schedule_generators - 1)

static const char *schedule_name(size_t index) {
    return pen_schedule_generators[index]->name;
}

pen_status pen_schedule_generator_find(const char *name, pen_arena *arena,
                                       const pen_schedule_generator **out_generator) {
    size_t index;
    PEN_TRY(pen_text_find_name("schedule", name, schedule_name, SCHEDULE_COUNT, arena, &index));
    *out_generator = pen_schedule_generators[index];
    return PEN_OK;
}
