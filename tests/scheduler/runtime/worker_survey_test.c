// What a worker does with orders of a survey: it measures what is here, and refuses the rest.
#include "scheduler/runtime/worker/worker_survey.h"

#include "tests/support/check.h"

#define DEVICES 2 // one of this worker, one of another

typedef struct sample {
    pen_worker_survey_options options;
    pen_run_device table_devices[DEVICES];
    pen_run_form form;
    pen_run_table table;
    pen_run_spec_device devices[DEVICES];
    pen_run_spec_part parts[DEVICES];
    pen_run_spec_form spec_form;
    pen_run_spec spec;
    pen_worker_survey *survey;
} sample;

static void set_up(sample *s, pen_run_survey kind) {
    *s = (sample){.table_devices = {{.worker = 1}, {.worker = 2}},
                  .devices = {{"a", "cpu", 1, 0}, {"b", "cpu", 1, 0}}};
    s->form =
        (pen_run_form){.microbatch_count = 1, .microbatch_size = 1, .devices = s->table_devices};
    s->table = (pen_run_table){
        .worker_count = 2, .device_count = DEVICES, .form_count = 1, .forms = &s->form};
    s->spec_form = (pen_run_spec_form){.parts = s->parts};
    s->spec = (pen_run_spec){
        .table = &s->table, .devices = s->devices, .forms = &s->spec_form, .survey = kind};
    s->options = (pen_worker_survey_options){.spec = &s->spec, .worker = 1, .generation = 3};
    CHECK_OK(pen_worker_survey_create(&s->options, &s->survey));
}

static void rates_are_measured(void **state) {
    (void)state;
    sample s;
    pen_survey_answer answer;
    set_up(&s, PEN_RUN_SURVEY_OPERATORS);
    const pen_survey_order order = {.kind = PEN_SURVEY_RATES, .device = 0};
    CHECK_OK(pen_worker_survey_carry_out(s.survey, &order, &answer));
    CHECK(answer.figures[0] > 1e6 && answer.figures[1] > 1e6, "%g, %g", answer.figures[0],
          answer.figures[1]);
    assert_true(answer.figures[2] == 0 && answer.figures[3] == 0);
    pen_worker_survey_destroy(s.survey);
}

static void what_is_not_here_is_refused(void **state) {
    (void)state;
    static const struct {
        pen_survey_order order;
        const char *why;
    } rows[] = {
        {{.kind = PEN_SURVEY_RATES, .device = 1}, "device 1, which is not here"},
        {{.kind = PEN_SURVEY_RATES, .device = DEVICES}, "device 2, which is not here"},
        {{.kind = PEN_SURVEY_NODE, .device = UINT32_MAX}, "which is not here"},
        {{.kind = PEN_SURVEY_NODE, .device = 0, .node = 0}, "node 0 of device 0"},
        {{.kind = PEN_SURVEY_SEND, .peer = 2, .seconds = 1}, "worker 2, which is not linked"},
        {{.kind = PEN_SURVEY_LOAD, .count = 100000}, "compute with 100000 threads"},
        {{.kind = (pen_survey_kind)77, .device = 0}, "measure 77, which is nothing"},
    };
    sample s;
    set_up(&s, PEN_RUN_SURVEY_OPERATORS);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        pen_survey_answer answer;
        CHECK_ERROR(pen_worker_survey_carry_out(s.survey, &rows[r].order, &answer), PEN_CORRUPT,
                    rows[r].why);
        assert_true(answer.figures[0] == 0);
    }
    s.devices[0].kind = "abacus";
    const pen_survey_order order = {.kind = PEN_SURVEY_RATES, .device = 0};
    pen_survey_answer answer;
    pen_worker_survey_destroy(s.survey);
    CHECK_OK(pen_worker_survey_create(&s.options, &s.survey));
    CHECK_ERROR(pen_worker_survey_carry_out(s.survey, &order, &answer), PEN_NOT_FOUND, "abacus");
    pen_worker_survey_destroy(s.survey);
    pen_worker_survey_destroy(NULL);
}

// Frames of a worker that keeps to nothing.
static void wrong_frames_are_refused(void **state) {
    (void)state;
    static const struct {
        uint32_t peer;
        pen_frame frame;
        const char *why;
    } rows[] = {
        {2, {.kind = PEN_FRAME_TENSOR, .generation = 3, .bytes = 64}, "64 bytes that nobody"},
        {2, {.kind = PEN_FRAME_VALUE, .generation = 2, .bytes = 64}, "64 bytes that nobody"},
        {2, {.kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 0}, "0 bytes that nobody"},
        {2, {.kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 1 << 21}, "bytes that nobody"},
        {2, {.kind = PEN_FRAME_VALUE, .generation = 3, .form = 3, .bytes = 64}, "that nobody"},
        {0, {.kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 64}, "worker 0 sent 64"},
        {3, {.kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 64}, "worker 3 sent 64"},
        {2, {.kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 64, .sequence = 1}, "out of turn"},
    };
    sample s;
    pen_memory_place place;
    set_up(&s, PEN_RUN_SURVEY_LINKS);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        CHECK_ERROR(pen_worker_survey_begin(s.survey, rows[r].peer, &rows[r].frame, &place),
                    PEN_CORRUPT, rows[r].why);
    }
    uint32_t begun = 0; // frames that are never whole take all places, and then no more
    pen_status status = PEN_OK;
    while (status == PEN_OK && begun < 1000) {
        const pen_frame frame = {
            .kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 64, .sequence = begun};
        status = pen_worker_survey_begin(s.survey, 2, &frame, &place);
        begun += status == PEN_OK;
    }
    CHECK_ERROR(status, PEN_CORRUPT, "without credit");
    assert_int_equal(begun, 16);
    CHECK_ERROR(pen_worker_survey_take_credit(s.survey, 2, 1), PEN_CORRUPT,
                "consumed 1 frames of 0");
    CHECK_ERROR(pen_worker_survey_take_credit(s.survey, 7, 0), PEN_CORRUPT, "for nothing");
    pen_worker_survey_close(s.survey);
    const pen_frame late = {
        .kind = PEN_FRAME_VALUE, .generation = 3, .bytes = 64, .sequence = begun};
    CHECK_ERROR(pen_worker_survey_begin(s.survey, 2, &late, &place), PEN_UNAVAILABLE, "over");
    assert_int_equal(pen_worker_survey_lent_count(s.survey), 0);
    pen_worker_survey_destroy(s.survey);
}

PEN_TEST_MAIN(cmocka_unit_test(rates_are_measured), cmocka_unit_test(what_is_not_here_is_refused),
              cmocka_unit_test(wrong_frames_are_refused))
