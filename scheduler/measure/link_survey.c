#include "scheduler/measure/link_survey.h"

#include <math.h>

#define LINK_WARM_SECONDS 0.1
#define LINK_SEND_SECONDS 0.4
#define LINK_CALL_SECONDS 0.3
#define LINK_WORK_SECONDS 0.4
#define LINK_MESSAGES_OF_TENSOR 3.0     // it, its acknowledgement, and credit
#define LINK_MESSAGES_OF_ROUND_TRIP 6.0 // at either end
#define LINK_RATE_MOST 1e15
#define LINK_BUSY 0.8 // of an end's time: then it holds the line back, not the other way round

typedef struct link_survey {
    pen_survey_crew *crew;
    const uint32_t *seats;   // [2]
    const uint32_t *threads; // [2]
    double work_rate[2];     // of the load, while nothing is sent; 0: there is no load
} link_survey;

// What was sent, or called, with the time that it took from what computes at both ends.
typedef struct link_run {
    double seconds;
    double count;
    double lost[2]; // seconds, of the first that is named, and of the other; 0 without load
} link_run;

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

static pen_status link_ask(link_survey *survey, const pen_survey_order *order,
                           pen_survey_answer *out_answer) {
    pen_survey_crew_order(survey->crew, order);
    return link_await(survey, order, out_answer);
}

// Work of either end so far, and its clock, after so many seconds.
static pen_status link_read_work(link_survey *survey, double seconds, double out_work[2],
                                 double out_clock[2]) {
    pen_survey_order orders[2];
    for (uint32_t e = 0; e < 2; e++) {
        orders[e] = (pen_survey_order){
            .kind = PEN_SURVEY_WORK, .device = survey->seats[e], .seconds = seconds};
        pen_survey_crew_order(survey->crew, &orders[e]);
    }
    for (uint32_t e = 0; e < 2; e++) {
        pen_survey_answer answer;
        PEN_TRY(link_await(survey, &orders[e], &answer));
        out_work[e] = answer.figures[0];
        out_clock[e] = answer.figures[1];
    }
    return PEN_OK;
}

static pen_survey_order link_order(const link_survey *survey, pen_survey_kind kind, uint32_t from,
                                   double seconds) {
    return (pen_survey_order){.kind = kind,
                              .device = survey->seats[from],
                              .peer = pen_survey_crew_worker(survey->crew, survey->seats[1 - from]),
                              .seconds = seconds};
}

// Under load, what the load does less than alone is the time that was lost.
static pen_status link_run_order(link_survey *survey, pen_survey_kind kind, uint32_t from,
                                 double seconds, link_run *out_run) {
    const pen_survey_order order = link_order(survey, kind, from, seconds);
    double work[2], clock[2], work_then[2], clock_then[2];
    PEN_TRY(link_read_work(survey, 0, work, clock));
    pen_survey_crew_order(survey->crew, &order);
    PEN_TRY(link_await_run(survey, &order, out_run));
    PEN_TRY(link_read_work(survey, 0, work_then, clock_then));
    for (uint32_t e = 0; e < 2; e++) {
        const uint32_t end = e == 0 ? from : 1 - from;
        if (survey->work_rate[end] <= 0) continue;
        const double worked = (work_then[end] - work[end]) / survey->work_rate[end];
        out_run->lost[e] = fmax(clock_then[end] - clock[end] - worked, 0);
    }
    return PEN_OK;
}

static double link_bandwidth(const link_run *run) {
    return fmin(run->count * (double)PEN_SURVEY_TENSOR_BYTES / run->seconds, LINK_RATE_MOST);
}

// Both ends send for as long, and are told to at the same time.
static pen_status link_run_both(link_survey *survey, pen_link_figures figures[2]) {
    pen_survey_order orders[2];
    for (uint32_t e = 0; e < 2; e++) {
        orders[e] = link_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS);
        pen_survey_crew_order(survey->crew, &orders[e]);
    }
    for (uint32_t e = 0; e < 2; e++) {
        link_run sent;
        PEN_TRY(link_await_run(survey, &orders[e], &sent));
        figures[e].bandwidth = link_bandwidth(&sent);
    }
    return PEN_OK;
}

// What is lost to the bytes, as a rate: without what the messages take.
static double link_rate(double lost, double count, double message) {
    const double left = lost - count * LINK_MESSAGES_OF_TENSOR * message;
    if (left <= 0) return LINK_RATE_MOST;
    return fmin(count * (double)PEN_SURVEY_TENSOR_BYTES / left, LINK_RATE_MOST);
}

static pen_status link_set_load(link_survey *survey, uint32_t end, bool is_on) {
    const pen_survey_order order = {.kind = PEN_SURVEY_LOAD,
                                    .device = survey->seats[end],
                                    .count = is_on ? survey->threads[end] : 0};
    pen_survey_answer answer;
    survey->work_rate[end] = 0;
    return link_ask(survey, &order, &answer);
}

// And how fast it computes while nothing is sent.
static pen_status link_begin_load(link_survey *survey) {
    double work[2], clock[2], work_then[2], clock_then[2];
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_set_load(survey, e, true));
    }
    PEN_TRY(link_read_work(survey, LINK_WARM_SECONDS, work, clock));
    PEN_TRY(link_read_work(survey, LINK_WORK_SECONDS, work_then, clock_then));
    for (uint32_t e = 0; e < 2; e++) {
        survey->work_rate[e] = (work_then[e] - work[e]) / (clock_then[e] - clock[e]);
        if (survey->work_rate[e] > 0) continue;
        return pen_error(PEN_DEADLINE, "%s computed nothing in %.1f s",
                         pen_survey_crew_name(survey->crew, survey->seats[e]), LINK_WORK_SECONDS);
    }
    return PEN_OK;
}

// A round trip crosses both directions, which share its time. The first tensors wake threads and
// touch memory, and do not count.
static pen_status link_measure_idle(link_survey *survey, pen_link_figures figures[2]) {
    link_run calls, unused, sent;
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_WARM_SECONDS, &unused));
    }
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS, &calls));
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS, &sent));
        figures[e].bandwidth_alone = link_bandwidth(&sent);
        figures[e].latency_idle = calls.seconds / 2;
    }
    return link_run_both(survey, figures);
}

static pen_status link_measure_loaded(link_survey *survey, pen_link_figures figures[2]) {
    link_run calls, sent;
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS, &calls));
    const double message =
        (calls.lost[0] + calls.lost[1]) / 2 / calls.count / LINK_MESSAGES_OF_ROUND_TRIP;
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS, &sent));
        figures[e].send = link_rate(sent.lost[0], sent.count, message);
        figures[e].receive = link_rate(sent.lost[1], sent.count, message);
        figures[e].message = message;
    }
    return PEN_OK;
}

// While one end computes and the other does not, in turn: a device that waits for values is free,
// and to one that computes they are not urgent. Loads are on before and off then.
static pen_status link_measure_latency(link_survey *survey, pen_link_figures figures[2]) {
    double seconds = 0;
    for (uint32_t e = 0; e < 2; e++) {
        link_run calls;
        PEN_TRY(link_set_load(survey, 1 - e, false));
        PEN_TRY(link_set_load(survey, e, true));
        PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS, &calls));
        seconds += calls.seconds;
    }
    figures[0].latency = figures[1].latency = seconds / 4;
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

pen_status pen_link_survey(pen_survey_crew *crew, const uint32_t seats[2],
                           const uint32_t threads[2], pen_link_figures out_figures[2]) {
    link_survey survey = {.crew = crew, .seats = seats, .threads = threads};
    out_figures[0] = out_figures[1] = (pen_link_figures){0};
    PEN_ASSERT(pen_survey_crew_worker(crew, seats[0]) != pen_survey_crew_worker(crew, seats[1]));
    PEN_TRY(link_measure_idle(&survey, out_figures));
    PEN_TRY(link_begin_load(&survey));
    PEN_TRY(link_measure_loaded(&survey, out_figures));
    link_correct_bandwidth(out_figures);
    return link_measure_latency(&survey, out_figures);
}
