#include "scheduler/measure/link_survey.h"

#include <math.h>

#define LINK_WARM_SECONDS 0.1
#define LINK_SEND_SECONDS 0.4
#define LINK_CALL_SECONDS 0.3
#define LINK_WORK_SECONDS 0.4
#define LINK_MESSAGES_OF_TENSOR 3.0     // it, its acknowledgement, and credit
#define LINK_MESSAGES_OF_ROUND_TRIP 6.0 // at either end
#define LINK_BUSY 0.8 // of an end's time: then it holds the line back, not the other way round

// What was sent, or called, with the time that it took from what computes at both ends.
typedef struct link_run {
    double seconds;
    double count;
    double lost[2]; // seconds, of the first that is named, and of the other; 0 without load
} link_run;

// What the load of an end has done so far, by the clock of its worker.
typedef struct link_work {
    double turns[2];
    double clock[2];
} link_work;

typedef struct link_state {
    pen_link_pair *pair;
    double work_rate[2]; // of the load, while nothing is sent; 0: there is no load
    link_work before;
    link_run run; // the last
} link_state;

// All pairs do the same at the same time: each is given its order, and then awaited.
typedef struct link_survey {
    pen_survey_crew *crew;
    link_state *states; // [count]
    uint32_t count;
} link_survey;

// A failure of an order is one of the survey: figures would be missing.
static pen_status link_await(link_survey *survey, const pen_survey_order *order,
                             pen_survey_answer *out_answer) {
    pen_status failure = PEN_OK;
    PEN_TRY(pen_survey_crew_await(survey->crew, order, out_answer, &failure));
    return pen_status_add_context(failure, "while %s measures its links",
                                  pen_survey_crew_name(survey->crew, order->device));
}

// What was sent or called: seconds and count, which are both above 0.
static pen_status link_await_run(link_survey *survey, const pen_survey_order *order,
                                 link_run *out_run) {
    pen_survey_answer answer;
    PEN_TRY(link_await(survey, order, &answer));
    *out_run = (link_run){.seconds = answer.figures[0], .count = answer.figures[1]};
    if (out_run->seconds > 0 && out_run->count > 0) return PEN_OK;
    return pen_error(PEN_CORRUPT, "%s measured nothing",
                     pen_survey_crew_name(survey->crew, order->device));
}

static pen_survey_order link_order(const link_survey *survey, const pen_link_pair *pair,
                                   pen_survey_kind kind, uint32_t from, double seconds) {
    return (pen_survey_order){.kind = kind,
                              .device = pair->seats[from],
                              .peer = pen_survey_crew_worker(survey->crew, pair->seats[1 - from]),
                              .seconds = seconds};
}

// ---- load

// Threads at one end of each pair.
static pen_status link_set_load(link_survey *survey, uint32_t end, bool is_on) {
    for (int is_asked = 0; is_asked <= 1; is_asked++) {
        for (uint32_t p = 0; p < survey->count; p++) {
            const pen_link_pair *pair = survey->states[p].pair;
            const pen_survey_order order = {.kind = PEN_SURVEY_LOAD,
                                            .device = pair->seats[end],
                                            .count = is_on ? pair->threads[end] : 0};
            pen_survey_answer answer;
            survey->states[p].work_rate[end] = 0;
            if (is_asked == 0) {
                pen_survey_crew_order(survey->crew, &order);
            } else {
                PEN_TRY(link_await(survey, &order, &answer));
            }
        }
    }
    return PEN_OK;
}

static pen_status link_await_work(link_survey *survey, const pen_link_pair *pair, double seconds,
                                  link_work *out_work) {
    for (uint32_t e = 0; e < 2; e++) {
        const pen_survey_order order = {
            .kind = PEN_SURVEY_WORK, .device = pair->seats[e], .seconds = seconds};
        pen_survey_answer answer;
        PEN_TRY(link_await(survey, &order, &answer));
        out_work->turns[e] = answer.figures[0];
        out_work->clock[e] = answer.figures[1];
    }
    return PEN_OK;
}

static void link_ask_work(link_survey *survey, double seconds) {
    for (uint32_t p = 0; p < survey->count; p++) {
        for (uint32_t e = 0; e < 2; e++) {
            const pen_survey_order order = {.kind = PEN_SURVEY_WORK,
                                            .device = survey->states[p].pair->seats[e],
                                            .seconds = seconds};
            pen_survey_crew_order(survey->crew, &order);
        }
    }
}

// Work of all ends so far, after so many seconds, into `before`.
static pen_status link_begin_work(link_survey *survey, double seconds) {
    link_ask_work(survey, seconds);
    for (uint32_t p = 0; p < survey->count; p++) {
        link_state *state = &survey->states[p];
        PEN_TRY(link_await_work(survey, state->pair, seconds, &state->before));
    }
    return PEN_OK;
}

// Loads both ends, and finds out how fast they compute while nothing is sent.
static pen_status link_begin_load(link_survey *survey) {
    PEN_TRY(link_set_load(survey, 0, true));
    PEN_TRY(link_set_load(survey, 1, true));
    PEN_TRY(link_begin_work(survey, LINK_WARM_SECONDS));
    link_ask_work(survey, LINK_WORK_SECONDS);
    for (uint32_t p = 0; p < survey->count; p++) {
        link_state *state = &survey->states[p];
        link_work then;
        PEN_TRY(link_await_work(survey, state->pair, LINK_WORK_SECONDS, &then));
        for (uint32_t e = 0; e < 2; e++) {
            state->work_rate[e] =
                (then.turns[e] - state->before.turns[e]) / (then.clock[e] - state->before.clock[e]);
            if (state->work_rate[e] > 0) continue;
            return pen_error(PEN_DEADLINE, "%s computed nothing in %.1f s",
                             pen_survey_crew_name(survey->crew, state->pair->seats[e]),
                             LINK_WORK_SECONDS);
        }
    }
    return PEN_OK;
}

// ---- runs

// Under load, what the load does less than alone is the time that was lost.
static pen_status link_end_work(link_survey *survey, link_state *state, uint32_t from) {
    link_work then;
    PEN_TRY(link_await_work(survey, state->pair, 0, &then));
    for (uint32_t e = 0; e < 2; e++) {
        const uint32_t end = e == 0 ? from : 1 - from;
        if (state->work_rate[end] <= 0) continue;
        const double worked = (then.turns[end] - state->before.turns[end]) / state->work_rate[end];
        state->run.lost[e] = fmax(then.clock[end] - state->before.clock[end] - worked, 0);
    }
    return PEN_OK;
}

static pen_status link_run_order(link_survey *survey, pen_survey_kind kind, uint32_t from,
                                 double seconds) {
    PEN_TRY(link_begin_work(survey, 0));
    for (uint32_t p = 0; p < survey->count; p++) {
        const pen_survey_order order =
            link_order(survey, survey->states[p].pair, kind, from, seconds);
        pen_survey_crew_order(survey->crew, &order);
    }
    for (uint32_t p = 0; p < survey->count; p++) {
        link_state *state = &survey->states[p];
        const pen_survey_order order = link_order(survey, state->pair, kind, from, seconds);
        PEN_TRY(link_await_run(survey, &order, &state->run));
    }
    link_ask_work(survey, 0);
    for (uint32_t p = 0; p < survey->count; p++) {
        PEN_TRY(link_end_work(survey, &survey->states[p], from));
    }
    return PEN_OK;
}

static double link_bandwidth(const link_run *run) {
    return fmin(run->count * (double)PEN_SURVEY_TENSOR_BYTES / run->seconds, PEN_LINK_FREE);
}

// Both ends send for as long, and are told to at the same time.
static pen_status link_run_both(link_survey *survey) {
    for (int is_asked = 0; is_asked <= 1; is_asked++) {
        for (uint32_t i = 0; i < 2 * survey->count; i++) {
            pen_link_pair *pair = survey->states[i / 2].pair;
            const pen_survey_order order =
                link_order(survey, pair, PEN_SURVEY_SEND, i % 2, LINK_SEND_SECONDS);
            link_run sent;
            if (is_asked == 0) {
                pen_survey_crew_order(survey->crew, &order);
                continue;
            }
            PEN_TRY(link_await_run(survey, &order, &sent));
            pair->figures[i % 2].bandwidth = link_bandwidth(&sent);
        }
    }
    return PEN_OK;
}

// What is lost to the bytes, as a rate: without what the messages take.
static double link_rate(double lost, double count, double message) {
    const double left = lost - count * LINK_MESSAGES_OF_TENSOR * message;
    if (left <= 0) return PEN_LINK_FREE;
    return fmin(count * (double)PEN_SURVEY_TENSOR_BYTES / left, PEN_LINK_FREE);
}

// A round trip crosses both directions, which share its time. The first tensors wake threads and
// touch memory, and do not count.
static pen_status link_measure_idle(link_survey *survey) {
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_WARM_SECONDS));
    }
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS));
    for (uint32_t p = 0; p < survey->count; p++) {
        pen_link_figures *figures = survey->states[p].pair->figures;
        figures[0].latency_idle = figures[1].latency_idle = survey->states[p].run.seconds / 2;
    }
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS));
        for (uint32_t p = 0; p < survey->count; p++) {
            const link_state *state = &survey->states[p];
            state->pair->figures[e].bandwidth_alone = link_bandwidth(&state->run);
        }
    }
    return link_run_both(survey);
}

static pen_status link_measure_loaded(link_survey *survey) {
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS));
    for (uint32_t p = 0; p < survey->count; p++) {
        const link_run *calls = &survey->states[p].run;
        pen_link_figures *figures = survey->states[p].pair->figures;
        figures[0].message = figures[1].message =
            (calls->lost[0] + calls->lost[1]) / 2 / calls->count / LINK_MESSAGES_OF_ROUND_TRIP;
    }
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS));
        for (uint32_t p = 0; p < survey->count; p++) {
            const link_run *sent = &survey->states[p].run;
            pen_link_figures *figures = &survey->states[p].pair->figures[e];
            figures->send = link_rate(sent->lost[0], sent->count, figures->message);
            figures->receive = link_rate(sent->lost[1], sent->count, figures->message);
        }
    }
    return PEN_OK;
}

// While one end computes and the other does not, in turn: a device that waits for values is free,
// and to one that computes they are not urgent. Loads are on before and off then.
static pen_status link_measure_latency(link_survey *survey) {
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_set_load(survey, 1 - e, false));
        PEN_TRY(link_set_load(survey, e, true));
        PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS));
        for (uint32_t p = 0; p < survey->count; p++) {
            pen_link_figures *figures = survey->states[p].pair->figures;
            figures[0].latency += survey->states[p].run.seconds / 4;
            figures[1].latency = figures[0].latency;
        }
    }
    return link_set_load(survey, 1, false);
}

// Where the ends had no time for more, both ways at once say nothing of the line: what they
// compute is counted beside it.
static void link_correct_bandwidth(pen_link_figures figures[2]) {
    double busy = 0;
    for (uint32_t e = 0; e < 2; e++) {
        busy = fmax(busy, figures[e].bandwidth / figures[e].send +
                              figures[1 - e].bandwidth / figures[1 - e].receive);
    }
    for (uint32_t e = 0; e < 2 && busy > LINK_BUSY; e++) {
        figures[e].bandwidth = fmax(figures[e].bandwidth, figures[e].bandwidth_alone);
    }
}

pen_status pen_link_survey(pen_survey_crew *crew, pen_arena *arena, pen_link_pair *pairs,
                           uint32_t count) {
    link_survey survey = {.crew = crew, .count = count};
    PEN_TRY(PEN_NEW(arena, count, &survey.states));
    for (uint32_t p = 0; p < count; p++) {
        pairs[p].figures[0] = pairs[p].figures[1] = (pen_link_figures){0};
        survey.states[p].pair = &pairs[p];
    }
    PEN_TRY(link_measure_idle(&survey));
    PEN_TRY(link_begin_load(&survey));
    PEN_TRY(link_measure_loaded(&survey));
    for (uint32_t p = 0; p < count; p++) {
        link_correct_bandwidth(pairs[p].figures);
    }
    return link_measure_latency(&survey);
}
