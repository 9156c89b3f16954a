#include "base/text.h"

#include "tests/support/check.h"

#include "base/memory.h"

static void grows_and_finishes(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    const char *whole;
    CHECK_OK(pen_text_finish(&text, &whole));
    assert_string_equal(whole, "");
    for (int i = 0; i < 1000; i++) {
        pen_text_print(&text, "%d,", i);
    }
    pen_text_add(&text, "end");
    const char *first;
    CHECK_OK(pen_text_finish(&text, &first));
    assert_int_equal(strlen(first), text.length);
    assert_string_equal(first + strlen(first) - 11, "998,999,end");
    pen_text_add(&text, "!");
    assert_string_equal(first + strlen(first) - 3, "end");
    pen_arena_destroy(arena);
}

static void reports_lost_memory_once(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    pen_memory_fail_at(1, 1);
    for (int i = 0; i < 100000; i++) {
        pen_text_add(&text, "0123456789");
    }
    pen_memory_fail_at(0, 0);
    const char *whole;
    CHECK_ERROR(pen_text_finish(&text, &whole), PEN_OUT_OF_MEMORY, "out of memory");
    pen_arena_destroy(arena);
}

static void distance_counts_edits(void **state) {
    (void)state;
    assert_int_equal(pen_text_distance("", ""), 0);
    assert_int_equal(pen_text_distance("batch", "batch"), 0);
    assert_int_equal(pen_text_distance("batch", "Batch"), 0);
    assert_int_equal(pen_text_distance("", "abc"), 3);
    assert_int_equal(pen_text_distance("abc", ""), 3);
    assert_int_equal(pen_text_distance("kitten", "sitting"), 3);
    assert_int_equal(pen_text_distance("epohcs", "epochs"), 1);
    assert_int_equal(pen_text_distance("flaw", "lawn"), 2);
}

static void nearest_name_comes_first(void **state) {
    (void)state;
    static const char *const names[] = {"batch", "epochs", "microbatches", "seed"};
    assert_int_equal(pen_text_nearest("epoch", names, 4), 1);
    assert_int_equal(pen_text_nearest("micro", names, 4), 2);
    assert_int_equal(pen_text_nearest("zzzz", names, 4), 4);
    assert_int_equal(pen_text_nearest("number_of_epochs", names, 4), 1);
    assert_int_equal(pen_text_nearest("batches", names, 4), 0);   // it begins so
    assert_int_equal(pen_text_nearest("robatches", names, 4), 2); // three letters off, not "batch"
    assert_int_equal(pen_text_nearest("some_seed", names, 4), 4); // four letters may be chance
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add_names(&text, "epocs", names, 4, 10);
    assert_string_equal(text.bytes, "epochs, batch, microbatches, seed; did you mean epochs?");
    pen_text_init(&text, arena);
    pen_text_add_names(&text, "epocs", names, 4, 2);
    assert_string_equal(text.bytes, "epochs, batch and 2 more; did you mean epochs?");
    pen_text_init(&text, arena);
    pen_text_add_names(&text, "zzzz", names, 4, 2);
    assert_string_equal(text.bytes, "batch, epochs and 2 more");
    pen_arena_destroy(arena);
}

// Short names have few letters to be wrong in, and of two that begin a name the longer is meant.
static void far_names_are_not_near(void **state) {
    (void)state;
    static const char *const names[] = {"tls", "crl", "ready", "adam", "adamw", "sandbox"};
    static const char *const far[] = {"gpus", "host", "port", "cert", "threads", "wandb", "muon"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        CHECK(pen_text_nearest(far[i], names, 6) == 6, "%s", far[i]);
    }
    assert_int_equal(pen_text_nearest("adamw8bit", names, 6), 4);
    assert_int_equal(pen_text_nearest("AdamW", names, 6), 4);
    assert_int_equal(pen_text_nearest("tsl", names, 6), 0);
    assert_int_equal(pen_text_nearest("raedyy", names, 6), 2); // two of six letters
    char long_name[301] = "";
    memset(long_name, 'q', 300);
    assert_int_equal(pen_text_nearest(long_name, names, 6), 6);
    memcpy(long_name, "adamw", 5);
    assert_int_equal(pen_text_nearest(long_name, names, 6), 6);
}

static void words_of_others_are_known(void **state) {
    (void)state;
    static const pen_text_word words[] = {{"batch_size", "a"}, {"*_size", "b"}, {"max_*steps", "c"},
                                          {"random_*", "d"},   {"tp_*", "e"},   {NULL, NULL}};
    static const struct {
        const char *text;
        const char *meaning;
    } cases[] = {
        {"batch_size", "a"},     {"batch-size", "a"},
        {"BatchSize", "a"},      {"local_batch_size", "b"},
        {"max_steps", "c"},      {"max_train_steps", "c"},
        {"RandomFlip", "d"},     {"batch_sizes", NULL},
        {"steps", NULL},         {"", NULL},
        {"random.flip", "d"},    {"randomly", NULL},
        {"random", NULL},        {"resize", NULL},
        {"LOCAL_SIZE", "b"},     {"SizeOf", NULL},
        {"local.size", "b"},     {"LocalSize", "b"},
        {"TPU", NULL},           {"tpu", NULL},
        {"TPDegree", "e"},       {"tp-degree", "e"},
        {"maximum_steps", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = pen_text_find_word(words, cases[i].text);
        const bool is_same = found == NULL || cases[i].meaning == NULL
                                 ? found == cases[i].meaning
                                 : strcmp(found, cases[i].meaning) == 0;
        CHECK(is_same, "%s: %s", cases[i].text, found == NULL ? "none" : found);
    }
    assert_null(pen_text_find_word(NULL, "batch_size"));
}

static void quotes_what_was_found(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    pen_text text;
    pen_text_init(&text, arena);
    pen_text_add_quoted(&text, "a\"b\\\n\x01", 6);
    assert_string_equal(text.bytes, "\"a\\\"b\\\\\\n\\x01\"");
    char long_text[100];
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text + 59, "\xC3\xA4", 2); // would be cut in half
    pen_text_init(&text, arena);
    pen_text_add_quoted(&text, long_text, sizeof long_text);
    assert_int_equal(text.length, 59 + 5);
    assert_string_equal(text.bytes + 58, "xx...\"");
    pen_arena_destroy(arena);
}

static void cleans_what_others_say(void **state) {
    (void)state;
    static const struct {
        const char *said, *lines, *line; // with line ends kept, and without
    } cases[] = {
        {"plain text, Gr\xc3\xb6\xc3\x9f"
         "e \xe2\x86\x92 \xf0\x9f\x98\x80",
         NULL, NULL},
        {"", NULL, NULL},
        {"a\x1b[31mred\x07\x7f", "a?[31mred??", NULL},
        {"two\nlines\r\tend", "two\nlines? end", "two?lines? end"},
        {"\xff\xc0\xafx\xed\xa0\x80", "???x???", NULL},
        {"cut \xe2\x86", "cut ??", NULL},
        {"c1 \xc2\x9b"
         "2J",
         "c1 ??2J", NULL},
        {"\xe2\x80\xaeturned \xe2\x81\xa6", "???turned ???", NULL},
        {"\xef\xbb\xbf\xe2\x80\x8b", "??????", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        const char *lines = cases[i].lines == NULL ? cases[i].said : cases[i].lines;
        snprintf(text, sizeof text, "%s", cases[i].said);
        assert_string_equal(pen_text_clean(text, true), lines);
        assert_string_equal(pen_text_clean(text, true), lines);
        snprintf(text, sizeof text, "%s", cases[i].said);
        assert_string_equal(pen_text_clean(text, false),
                            cases[i].line == NULL ? lines : cases[i].line);
    }
}

static void quantities_for_people(void **state) {
    (void)state;
    char text[PEN_QUANTITY_TEXT_BYTES];
    assert_string_equal(pen_bytes_format(0, text), "0 bytes");
    assert_string_equal(pen_bytes_format(1, text), "1 byte");
    assert_string_equal(pen_bytes_format(1023, text), "1023 bytes");
    assert_string_equal(pen_bytes_format(1536, text), "1.50 KiB");
    assert_string_equal(pen_bytes_format(12ull << 30, text), "12.0 GiB");
    assert_string_equal(pen_bytes_format((1ull << 30) - 1, text), "1.00 GiB");
    assert_string_equal(pen_bytes_format(UINT64_MAX, text), "16.0 EiB");
    assert_string_equal(pen_seconds_format(870e-9, text), "870 ns");
    assert_string_equal(pen_seconds_format(1.5e-3, text), "1.50 ms");
    assert_string_equal(pen_seconds_format(0.99999, text), "1.00 s");
    assert_string_equal(pen_seconds_format(12.34, text), "12.3 s");
    assert_string_equal(pen_seconds_format(245, text), "4 min 05 s");
    assert_string_equal(pen_seconds_format(11520, text), "3 h 12 min");
    assert_string_equal(pen_count_format(812, text), "812");
    assert_string_equal(pen_count_format(23400000, text), "23.4 M");
    assert_string_equal(pen_count_format(999999, text), "1.00 M");
}

PEN_TEST_MAIN(cmocka_unit_test(grows_and_finishes), cmocka_unit_test(reports_lost_memory_once),
              cmocka_unit_test(distance_counts_edits), cmocka_unit_test(nearest_name_comes_first),
              cmocka_unit_test(far_names_are_not_near), cmocka_unit_test(words_of_others_are_known),
              cmocka_unit_test(quotes_what_was_found), cmocka_unit_test(cleans_what_others_say),
              cmocka_unit_test(quantities_for_people))
