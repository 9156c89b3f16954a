// One training whose messages go through a middleman, and the judgement of how it ended.
//
// A seed says what the middleman does, and over which transport:
//
// - late: delays, each lane in its order, shorter than the lease; connections break. Must end well.
//
// - again: repeats what is said. Must end well; over the wire as careless.
//
// - careless: drops, delays, repeats, reorders, cuts links. The same numbers, or an error.
//
// - liar: all of that, and changes what is said and who says it. Ends.
//
// - one lie: the same, but once or a few times in a training. Ends.
//
// "Must end well": with the numbers of a training that nothing is done to. "Ends": within the
// deadlines, with an error whose code is one that is documented, or well.
#ifndef PEN_TESTS_HOSTILE_HOSTILE_TRAINING_H
#define PEN_TESTS_HOSTILE_HOSTILE_TRAINING_H

#include "tests/hostile/middleman.h"
#include "tests/support/generation_case.h"

typedef enum hostile_profile {
    HOSTILE_LATE,
    HOSTILE_AGAIN,
    HOSTILE_CARELESS,
    HOSTILE_LIAR,
    HOSTILE_ONE_LIE,
} hostile_profile;
#define HOSTILE_PROFILE_COUNT (HOSTILE_ONE_LIE + 1)

extern const char *const hostile_profile_names[HOSTILE_PROFILE_COUNT];

// Where the middleman is: between a process and its transport of that kind, or, of the last,
// between the processes' connections.
typedef enum hostile_way { HOSTILE_LOCAL, HOSTILE_GRPC, HOSTILE_WIRE } hostile_way;
#define HOSTILE_WAY_COUNT (HOSTILE_WIRE + 1)

extern const char *const hostile_way_names[HOSTILE_WAY_COUNT];

typedef struct hostile_numbers {
    double losses[GENERATION_ROUNDS];
    uint32_t checksum;
} hostile_numbers;

typedef struct hostile_outcome {
    hostile_profile profile;
    hostile_way way;
    pen_status_code code;
    double seconds;
    uint64_t deeds;
    bool is_of_time; // what is wrong may come of a machine that has too much else to do
    char wrong[512]; // what does not hold; "": nothing
    char said[512];  // the error
} hostile_outcome;

typedef struct hostile_world {
    generation_case g;        // first
    struct wire_proxy *proxy; // NULL: not yet
    hostile_way way;
    bool has_liars;  // of the workers that there are
    double patience; // by which all deadlines are longer
    uint64_t generation;
    hostile_numbers expected;
} hostile_world;

// Trains undisturbed first, for the numbers. Fails on error.
void hostile_world_init(hostile_world *world, double patience);
void hostile_world_deinit(hostile_world *world);

void hostile_train(hostile_world *world, uint64_t seed, hostile_outcome *out_outcome);

// The longest that a training may take: each of its waits as long as it is allowed to.
double hostile_seconds_limit(double patience);

#endif // PEN_TESTS_HOSTILE_HOSTILE_TRAINING_H
