#include "scheduler/data/decode_team.h"

#include <unistd.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/thread.h"

// A ninth of the share of a thread of usual priority: less, and on a machine with many such the
// picture that a thread is at would hold a batch up that is waited for.
#define DECODE_NICE 10

// Threads of one priority.
typedef struct decode_rank {
    uint32_t started;
    pen_thread *threads[PEN_DECODE_THREADS_LIMIT];
} decode_rank;

// What a thread is.
typedef struct decode_member {
    pen_decode_team *team;
    uint32_t index;
    bool hurries;
} decode_member;

struct pen_decode_team {
    uint32_t thread_count;
    // [2 * thread_count]: those that stand back, the caller of the run, and others that hurry
    decode_member members[2 * PEN_DECODE_THREADS_LIMIT];
    decode_rank ranks[2]; // of those that stand back, and that hurry

    pen_mutex lock; // guards all below
    pen_condition changed;
    pen_decode_fn decode;
    void *context;
    uint64_t next;
    uint64_t count;
    uint64_t running; // pieces begun and not done
    bool hurries;
    bool ended;
};

static bool decode_may_begin(const pen_decode_team *team, bool hurries) {
    return team->next < team->count && hurries == team->hurries;
}

// Does one piece. The lock is held before and after, not meanwhile.
static void decode_one(pen_decode_team *team, uint32_t member) {
    const uint64_t place = team->next++;
    team->running += 1;
    pen_mutex_unlock(&team->lock);
    const bool goes_on = team->decode(team->context, member, place);
    pen_mutex_lock(&team->lock);
    team->running -= 1;
    if (!goes_on) team->next = team->count;
    if (team->next >= team->count && team->running == 0) pen_condition_broadcast(&team->changed);
}

static void decode_serve(void *context) {
    const decode_member *member = context;
    pen_decode_team *team = member->team;
    // a thread's own, not the process's; without it, it decodes all the same
    if (!member->hurries) (void)nice(DECODE_NICE);
    pen_mutex_lock(&team->lock);
    while (!team->ended) {
        if (decode_may_begin(team, member->hurries)) {
            decode_one(team, member->index);
        } else {
            pen_condition_wait(&team->changed, &team->lock);
        }
    }
    pen_mutex_unlock(&team->lock);
}

// As many as have work, before there is any. Of those that hurry the caller of the run is one.
static void decode_start(pen_decode_team *team, uint64_t count) {
    const uint64_t most = pen_min_u64(team->thread_count, count);
    for (uint32_t hurries = 0; hurries < 2; hurries++) {
        decode_rank *rank = &team->ranks[hurries];
        while (rank->started + hurries < most) {
            decode_member *member =
                &team->members[hurries * (team->thread_count + 1) + rank->started];
            const pen_status status = pen_thread_create("penstock-decode", decode_serve, member,
                                                        &rank->threads[rank->started]);
            if (status != PEN_OK) {
                pen_status_ignore(status, "the others decode what it would have");
                break;
            }
            rank->started += 1;
        }
    }
}

pen_status pen_decode_team_create(uint32_t thread_count, pen_decode_team **out_team) {
    PEN_ASSERT(thread_count >= 1 && thread_count <= PEN_DECODE_THREADS_LIMIT);
    pen_decode_team *team = pen_memory_allocate(1, sizeof *team);
    if (team == NULL) return pen_error_out_of_memory();
    team->thread_count = thread_count;
    team->hurries = true;
    for (uint32_t i = 0; i < 2 * thread_count; i++)
        team->members[i] = (decode_member){team, i, i >= thread_count};
    pen_mutex_init(&team->lock);
    pen_condition_init(&team->changed);
    *out_team = team;
    return PEN_OK;
}

void pen_decode_team_destroy(pen_decode_team *team) {
    if (team == NULL) return;
    pen_mutex_lock(&team->lock);
    team->ended = true;
    pen_condition_broadcast(&team->changed);
    pen_mutex_unlock(&team->lock);
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < team->ranks[r].started; i++)
            pen_thread_join(team->ranks[r].threads[i]);
    }
    pen_condition_deinit(&team->changed);
    pen_mutex_deinit(&team->lock);
    pen_memory_free(team);
}

uint32_t pen_decode_team_member_count(const pen_decode_team *team) {
    return 2 * team->thread_count;
}

// The caller decodes too where it hurries, and where no thread could be had that stands back.
void pen_decode_team_run(pen_decode_team *team, uint64_t count, pen_decode_fn decode,
                         void *context) {
    decode_start(team, count);
    pen_mutex_lock(&team->lock);
    team->decode = decode;
    team->context = context;
    team->next = 0;
    team->count = count;
    pen_condition_broadcast(&team->changed);
    const bool is_alone = team->ranks[0].started == 0;
    while (team->next < team->count || team->running > 0) {
        if (decode_may_begin(team, true) || (is_alone && team->next < team->count)) {
            decode_one(team, team->thread_count);
        } else {
            pen_condition_wait(&team->changed, &team->lock);
        }
    }
    pen_mutex_unlock(&team->lock);
}

void pen_decode_team_hurry(pen_decode_team *team, bool hurries) {
    if (team == NULL) return;
    pen_mutex_lock(&team->lock);
    const bool is_news = team->hurries != hurries;
    team->hurries = hurries;
    if (is_news) pen_condition_broadcast(&team->changed);
    pen_mutex_unlock(&team->lock);
}
