#include "scheduler/measure/link_survey.h"

#include <math.h>

#define LINK_WARM_SECONDS 0.1
#define LINK_SEND_SECONDS 0.5
#define LINK_CALL_SECONDS 0.3
#define LINK_MESSAGES_OF_TENSOR 3.0     // it, its acknowledgement, and credit
#define LINK_MESSAGES_OF_ROUND_TRIP 6.0 // at either end
#define LINK_RATE_MOST 1e15

typedef struct link_survey {
    pen_survey_crew *crew;
    const uint32_t *seats;   // [2]
    const uint32_t *threads; // [2]
} link_survey;

// What was sent, or called, with the processor time of both ends.
typedef struct link_run {
    double seconds;
    double count;
    double cpu[2]; // of the first that is named, and of the other
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

static pen_status link_read_cpu(link_survey *survey, uint32_t from, double out_cpu[2]) {
    for (uint32_t e = 0; e < 2; e++) {
        const pen_survey_order order = {.kind = PEN_SURVEY_CPU,
                                        .device = survey->seats[e == 0 ? from : 1 - from]};
        pen_survey_answer answer;
        PEN_TRY(link_ask(survey, &order, &answer));
        out_cpu[e] = answer.figures[0];
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

static pen_status link_run_order(link_survey *survey, pen_survey_kind kind, uint32_t from,
                                 double seconds, link_run *out_run) {
    const pen_survey_order order = link_order(survey, kind, from, seconds);
    double before[2], after[2];
    PEN_TRY(link_read_cpu(survey, from, before));
    pen_survey_crew_order(survey->crew, &order);
    PEN_TRY(link_await_run(survey, &order, out_run));
    PEN_TRY(link_read_cpu(survey, from, after));
    for (uint32_t e = 0; e < 2; e++) {
        out_run->cpu[e] = after[e] - before[e];
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

// What computing is left for the bytes, as a rate; 0: less than the messages took.
static double link_rate(double cpu, double count, double message) {
    const double left = cpu - count * LINK_MESSAGES_OF_TENSOR * message;
    if (left <= 0) return 0;
    return fmin(count * (double)PEN_SURVEY_TENSOR_BYTES / left, LINK_RATE_MOST);
}

static pen_status link_load(link_survey *survey, bool is_on) {
    for (uint32_t e = 0; e < 2; e++) {
        const pen_survey_order order = {.kind = PEN_SURVEY_LOAD,
                                        .device = survey->seats[e],
                                        .count = is_on ? survey->threads[e] : 0};
        pen_survey_answer answer;
        PEN_TRY(link_ask(survey, &order, &answer));
    }
    return PEN_OK;
}

// A round trip crosses both directions, which share its time. The first tensors wake threads and
// touch memory, and do not count.
static pen_status link_measure(link_survey *survey, pen_link_figures figures[2]) {
    link_run calls, loaded, unused, sent;
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_WARM_SECONDS, &unused));
    }
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS, &calls));
    const double message =
        (calls.cpu[0] + calls.cpu[1]) / 2 / calls.count / LINK_MESSAGES_OF_ROUND_TRIP;
    for (uint32_t e = 0; e < 2; e++) {
        PEN_TRY(link_run_order(survey, PEN_SURVEY_SEND, e, LINK_SEND_SECONDS, &sent));
        figures[e].bandwidth_alone = link_bandwidth(&sent);
        figures[e].send = link_rate(sent.cpu[0], sent.count, message);
        figures[e].receive = link_rate(sent.cpu[1], sent.count, message);
        figures[e].message = message;
        figures[e].latency_idle = calls.seconds / 2;
    }
    PEN_TRY(link_run_both(survey, figures));
    PEN_TRY(link_load(survey, true));
    PEN_TRY(link_run_order(survey, PEN_SURVEY_CALL, 0, LINK_CALL_SECONDS, &loaded));
    figures[0].latency = figures[1].latency = loaded.seconds / 2;
    return link_load(survey, false);
}

pen_status pen_link_survey(pen_survey_crew *crew, const uint32_t seats[2],
                           const uint32_t threads[2], pen_link_figures out_figures[2]) {
    link_survey survey = {.crew = crew, .seats = seats, .threads = threads};
    out_figures[0] = out_figures[1] = (pen_link_figures){0};
    PEN_ASSERT(pen_survey_crew_worker(crew, seats[0]) != pen_survey_crew_worker(crew, seats[1]));
    return link_measure(&survey, out_figures);
}
