// The keys of `train.learning_rate`: how the optimizer's rate changes.

#include "scheduler/job/job_table.h"
#include "scheduler/job/job_words.h"

static const pen_option_table rate_constant_table = {.size = 0};

static const pen_option_field rate_step_fields[] = {
    PEN_OPTION(INTERVAL, pen_job_step_rate, every, "how long a rate is kept", .is_required = true,
               .minimum = PEN_OPTION_FROM(1)),
    PEN_OPTION(NUMBER, pen_job_step_rate, factor, "by which it is multiplied then",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "0.1"),
};
static const pen_option_table rate_step_table = {
    PEN_OPTION_FIELDS(pen_job_step_rate, rate_step_fields), .words = pen_job_rate_words};

static const pen_option_field rate_final_fields[] = {
    PEN_OPTION(NUMBER, pen_job_final_rate, final, "learning rate at the end",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
};
static const pen_option_table rate_final_table = {
    PEN_OPTION_FIELDS(pen_job_final_rate, rate_final_fields), .words = pen_job_rate_words};

static const pen_option_field rate_polynomial_fields[] = {
    PEN_OPTION(NUMBER, pen_job_polynomial_rate, power, "of what is left of the steps",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "1"),
};
static const pen_option_table rate_polynomial_table = {
    PEN_OPTION_FIELDS(pen_job_polynomial_rate, rate_polynomial_fields),
    .words = pen_job_rate_words};

static const char *const rate_anneal_names[] = {
    [PEN_LEARNING_RATE_ANNEAL_COS] = "cos",
    [PEN_LEARNING_RATE_ANNEAL_LINEAR] = "linear",
    NULL,
};
static const pen_option_field rate_cycle_fields[] = {
    PEN_OPTION(NUMBER, pen_learning_rate_cycle, pct_start, "share of the steps in which it rises",
               PEN_OPTION_RANGE(0, 1), .default_text = "0.3"),
    PEN_OPTION(CHOICE, pen_learning_rate_cycle, anneal_strategy, "along half cosines or lines",
               .choices = rate_anneal_names, .default_text = "cos"),
    PEN_OPTION(NUMBER, pen_learning_rate_cycle, div_factor, "the first rate is lr divided by this",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "25"),
    PEN_OPTION(NUMBER, pen_learning_rate_cycle, final_div_factor,
               "the last rate is the first divided by this", .minimum = PEN_OPTION_ABOVE(0),
               .default_text = "10000"),
    PEN_OPTION(BOOL, pen_learning_rate_cycle, three_phase,
               "falls to the first rate in as many steps as it rose, and then further",
               .default_text = "false"),
};

static pen_status rate_check_cycle(const void *object, const pen_option_source *source) {
    const pen_learning_rate_cycle *cycle = object;
    if (!cycle->three_phase || cycle->pct_start <= 0.5) return PEN_OK;
    return pen_option_blame(source, &cycle->pct_start,
                            pen_error(PEN_INVALID_INPUT,
                                      "pct_start: found %g with three_phase, expected at most 0.5",
                                      cycle->pct_start));
}

static const pen_option_table rate_cycle_table = {
    PEN_OPTION_FIELDS(pen_learning_rate_cycle, rate_cycle_fields),
    .words = pen_job_rate_words,
    .check = rate_check_cycle,
};

static const char *const rate_plateau_mode_names[] = {
    [PEN_PLATEAU_REL] = "rel",
    [PEN_PLATEAU_ABS] = "abs",
    NULL,
};
static const pen_option_field rate_plateau_fields[] = {
    PEN_OPTION(NUMBER, pen_plateau_rate, factor, "by which it is multiplied then",
               .minimum = PEN_OPTION_ABOVE(0), .maximum = PEN_OPTION_BELOW(1),
               .default_text = "0.1"),
    PEN_OPTION(INTEGER, pen_plateau_rate, patience,
               "evaluations in a row that may be no better; with the next it falls",
               PEN_OPTION_RANGE(0, 1000000000), .default_text = "10"),
    PEN_OPTION(NUMBER, pen_plateau_rate, threshold,
               "by how much an evaluation must be better to be better",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0.0001"),
    PEN_OPTION(CHOICE, pen_plateau_rate, threshold_mode,
               "whether that is a share of the best, or a number of its own",
               .choices = rate_plateau_mode_names, .default_text = "rel"),
    PEN_OPTION(INTEGER, pen_plateau_rate, cooldown, "evaluations after it fell that do not count",
               PEN_OPTION_RANGE(0, 1000000000), .default_text = "0"),
    PEN_OPTION(NUMBER, pen_plateau_rate, min_lr, "it falls no further",
               .minimum = PEN_OPTION_FROM(0), .default_text = "0"),
};
static const pen_option_table rate_plateau_table = {
    PEN_OPTION_FIELDS(pen_plateau_rate, rate_plateau_fields), .words = pen_job_rate_words};

static const pen_option_field rate_piece_item;

// A piece of a chain has all before the chain: what evaluations decide has no length.
static const pen_option_field rate_fields[] = {
    [PEN_LEARNING_RATE_CONSTANT] = {.key = "constant",
                                    .kind = PEN_OPTION_MAPPING,
                                    .table = &rate_constant_table,
                                    .help = "stays"},
    [PEN_LEARNING_RATE_STEP] =
        PEN_OPTION(MAPPING, pen_job_learning_rate, step,
                   "is multiplied by a factor from time to time", .table = &rate_step_table),
    [PEN_LEARNING_RATE_COSINE] =
        PEN_OPTION(MAPPING, pen_job_learning_rate, cosine, "falls along half a cosine",
                   .table = &rate_final_table),
    [PEN_LEARNING_RATE_LINEAR] = PEN_OPTION(MAPPING, pen_job_learning_rate, linear,
                                            "falls along a line", .table = &rate_final_table),
    [PEN_LEARNING_RATE_POLYNOMIAL] =
        PEN_OPTION(MAPPING, pen_job_learning_rate, polynomial, "falls to 0 along a power",
                   .table = &rate_polynomial_table),
    [PEN_LEARNING_RATE_ONE_CYCLE] =
        PEN_OPTION(MAPPING, pen_job_learning_rate, one_cycle,
                   "rises to lr and falls far below where it began", .table = &rate_cycle_table),
    [PEN_LEARNING_RATE_CHAINED] =
        PEN_OPTION(LIST, pen_job_learning_rate, chained, "one schedule after the other",
                   .item = &rate_piece_item, .count_minimum = 1,
                   .count_maximum = PEN_LEARNING_RATE_CURVE_LIMIT),
    [PEN_LEARNING_RATE_PLATEAU] = PEN_OPTION(MAPPING, pen_job_learning_rate, plateau,
                                             "falls when evaluations (`evaluation`) are no better",
                                             .table = &rate_plateau_table),
};
// A number is what other programs have under this key.
static const char *rate_explain(const char *key) {
    const bool is_number = key[0] == '.' || (key[0] >= '0' && key[0] <= '9');
    return is_number ? "a rate is the optimizer's lr, as in optimizer: {adam: {lr: 0.001}}; here "
                       "stands how it changes"
                     : NULL;
}

const pen_option_table pen_job_learning_rate_table = {
    PEN_OPTION_FIELDS(pen_job_learning_rate, rate_fields),
    .words = pen_job_rate_words,
    .explain = rate_explain,
    .chosen_offset = offsetof(pen_job_learning_rate, kind),
};
static const pen_option_table rate_piece_schedule_table = {
    .size = sizeof(pen_job_learning_rate),
    .fields = rate_fields,
    .field_count = PEN_LEARNING_RATE_CHAINED,
    .words = pen_job_rate_words,
    .chosen_offset = offsetof(pen_job_learning_rate, kind),
};

static const pen_option_field rate_piece_fields[] = {
    PEN_OPTION(ONE_OF, pen_job_rate_piece, schedule, "how the rate changes meanwhile",
               .is_required = true, .table = &rate_piece_schedule_table),
    PEN_OPTION(INTERVAL, pen_job_rate_piece, length,
               "until the next schedule; the last one has all that is left when not given",
               .present_offset = offsetof(pen_job_rate_piece, has_length),
               .minimum = PEN_OPTION_FROM(1)),
    PEN_OPTION(NUMBER, pen_job_rate_piece, scale, "times the optimizer's lr, in its place",
               .minimum = PEN_OPTION_ABOVE(0), .default_text = "1"),
};
static const pen_option_table rate_piece_table = {
    PEN_OPTION_FIELDS(pen_job_rate_piece, rate_piece_fields)};
static const pen_option_field rate_piece_item = {.kind = PEN_OPTION_MAPPING,
                                                 .table = &rate_piece_table};

// A schedule that rises by itself begins low, where a warm-up would end high.
pen_status pen_job_check_learning_rate(const pen_job_train *train,
                                       const pen_option_source *source) {
    const pen_job_learning_rate *rate = &train->learning_rate;
    const bool is_chained = rate->kind == PEN_LEARNING_RATE_CHAINED;
    const pen_job_rate_piece *pieces = rate->chained.items;
    for (uint32_t i = 0; is_chained && i + 1 < rate->chained.count; i++) {
        if (pieces[i].has_length) continue;
        return pen_option_blame(source, &pieces[i].length,
                                pen_error(PEN_INVALID_INPUT,
                                          "train.learning_rate.chained[%u]: 'length' is missing, "
                                          "expected one of each schedule but the last",
                                          i));
    }
    const pen_learning_rate_kind first = is_chained ? pieces[0].schedule.kind : rate->kind;
    if (first != PEN_LEARNING_RATE_ONE_CYCLE || train->warmup.count == 0) return PEN_OK;
    return pen_option_blame(source, &train->warmup,
                            pen_error(PEN_INVALID_INPUT,
                                      "train.warmup: found together with learning_rate one_cycle, "
                                      "which rises by itself; expected one of the two"));
}
