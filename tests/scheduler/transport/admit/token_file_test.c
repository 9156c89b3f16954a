// Proofs that two processes have the same token file.
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "scheduler/transport/admit/token_file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#define CONTENT "0123456789abcdef0123456789abcdef\n"

static pen_token_seen seen;

static int forget(void **state) {
    (void)state;
    memset(&seen, 0, sizeof seen);
    return 0;
}

static const char *write_file(const char *name, const char *content, mode_t mode) {
    const char *path = scratch_file(name, content, strlen(content));
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static pen_token_file read_file(const char *name, const char *content) {
    pen_token_file file;
    CHECK_OK(pen_token_file_read(write_file(name, content, 0600), &file));
    assert_true(file.is_given);
    return file;
}

static void files_are_looked_at(void **state) {
    (void)state;
    pen_token_file file;
    CHECK_OK(pen_token_file_read(NULL, &file));
    assert_false(file.is_given);
    CHECK_ERROR(pen_token_file_read(scratch_path("nowhere"), &file), PEN_NOT_FOUND, "nowhere");
    CHECK_ERROR(pen_token_file_read(write_file("short", "0123456789abcde\n", 0600), &file),
                PEN_INVALID_INPUT, "15 bytes, expected at least 16");
    CHECK_ERROR(pen_token_file_read(write_file("open", CONTENT, 0644), &file), PEN_INVALID_INPUT,
                "can be read or written by everybody");
    CHECK_ERROR(pen_token_file_read(write_file("hole", CONTENT, 0602), &file), PEN_INVALID_INPUT,
                "chmod o-rw");
    assert_false(file.is_given);
    CHECK_OK(pen_token_file_read(write_file("group", CONTENT, 0640), &file));
    // blanks at the end are none of it
    const pen_token_file one = read_file("one", CONTENT);
    const pen_token_file two = read_file("two", "0123456789abcdef0123456789abcdef \r\n\n");
    assert_memory_equal(one.key, two.key, sizeof one.key);
}

static void who_has_it_is_believed_once(void **state) {
    (void)state;
    const pen_token_file file = read_file("file", CONTENT);
    char proof[PEN_TOKEN_PROOF_BYTES], expected[PEN_TOKEN_ANSWER_BYTES];
    char answer[PEN_TOKEN_ANSWER_BYTES];
    assert_true(pen_token_file_prove(&file, 4000, 1e9, proof, expected));
    CHECK_OK(pen_token_file_judge(&file, &seen, 4000, 1e9 + 3, proof, answer));
    assert_true(pen_token_answer_is(expected, answer));
    assert_string_not_equal(strrchr(proof, ' ') + 1, answer); // a proof is no answer
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9 + 3, proof, answer), PEN_INVALID_INPUT,
                "was shown before");
    // it stays known for as long as it could be shown
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9 + 60, proof, answer),
                PEN_INVALID_INPUT, "was shown before");
}

static void others_are_not(void **state) {
    (void)state;
    const pen_token_file file = read_file("file", CONTENT);
    const pen_token_file other = read_file("other", "another content of a token file");
    char proof[PEN_TOKEN_PROOF_BYTES], expected[PEN_TOKEN_ANSWER_BYTES];
    char answer[PEN_TOKEN_ANSWER_BYTES];
    assert_true(pen_token_file_prove(&other, 4000, 1e9, proof, expected));
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9, proof, answer), PEN_INVALID_INPUT,
                "another one than here");
    assert_false(pen_token_answer_is(expected, answer));
    assert_true(pen_token_file_prove(&file, 4001, 1e9, proof, expected));
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9, proof, answer), PEN_INVALID_INPUT,
                "for port 4001, not 4000");
    assert_true(pen_token_file_prove(&file, 4000, 1e9, proof, expected));
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9 + 62, proof, answer),
                PEN_INVALID_INPUT, "62 s away");
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 4000, 1e9 - 61, proof, answer),
                PEN_INVALID_INPUT, "61 s away");
}

// What one machine answers to a caller of another is no answer there.
static void answers_may_be_of_one_machine(void **state) {
    (void)state;
    pen_token_file here = read_file("here", CONTENT), there = here;
    char proof[PEN_TOKEN_PROOF_BYTES], answer[PEN_TOKEN_ANSWER_BYTES];
    char ours[PEN_TOKEN_ANSWER_BYTES], theirs[PEN_TOKEN_ANSWER_BYTES];
    assert_true(pen_token_file_prove(&here, 4000, 1e9, proof, answer));
    assert_true(pen_token_file_answer_nearby(&here, answer, ours));
    assert_true(pen_token_file_answer_nearby(&there, answer, theirs));
    assert_string_equal(ours, theirs);
    assert_string_not_equal(ours, answer);
    there.machine[0] = there.machine[0] == '0' ? '1' : '0';
    assert_true(pen_token_file_answer_nearby(&there, answer, theirs));
    assert_string_not_equal(ours, theirs);
    there.machine[0] = '\0';
    assert_false(pen_token_file_answer_nearby(&there, answer, theirs));
}

// Each byte of a proof counts, and cut ones are none.
static void what_was_changed_is_refused(void **state) {
    (void)state;
    const pen_token_file file = read_file("file", CONTENT);
    char proof[PEN_TOKEN_PROOF_BYTES], expected[PEN_TOKEN_ANSWER_BYTES];
    char answer[PEN_TOKEN_ANSWER_BYTES], changed[PEN_TOKEN_PROOF_BYTES + 1];
    assert_true(pen_token_file_prove(&file, 65535, 1e9, proof, expected));
    const size_t length = strlen(proof);
    for (size_t i = 0; i < length; i++) {
        memcpy(changed, proof, sizeof proof);
        changed[i] = changed[i] == '0' ? '1' : '0';
        CHECK_ERROR(pen_token_file_judge(&file, &seen, 65535, 1e9, changed, answer),
                    PEN_INVALID_INPUT, "token file");
        changed[i] = '\0';
        CHECK_ERROR(pen_token_file_judge(&file, &seen, 65535, 1e9, changed, answer),
                    PEN_INVALID_INPUT, "a proof of a token file that is none");
    }
    snprintf(changed, sizeof changed, "%s0", proof);
    CHECK_ERROR(pen_token_file_judge(&file, &seen, 65535, 1e9, changed, answer), PEN_INVALID_INPUT,
                "that is none");
    CHECK_OK(pen_token_file_judge(&file, &seen, 65535, 1e9, proof, answer));
}

PEN_TEST_MAIN(cmocka_unit_test_setup(files_are_looked_at, forget),
              cmocka_unit_test_setup(who_has_it_is_believed_once, forget),
              cmocka_unit_test_setup(others_are_not, forget),
              cmocka_unit_test_setup(answers_may_be_of_one_machine, forget),
              cmocka_unit_test_setup(what_was_changed_is_refused, forget))
