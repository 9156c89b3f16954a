// The command as scripts see it: exit codes, standard output, standard error.

#include "tests/support/check.h"
#include "tests/support/golden.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"

#define COMMAND_BYTES_LIMIT (1u << 20)

typedef struct command_result {
    int exit_code;
    const char *output;
    const char *messages;
} command_result;

static command_result run(pen_arena *arena, const char *arguments) {
    char output_path[] = "/tmp/pen_command_test.XXXXXX";
    char messages_path[] = "/tmp/pen_command_test.XXXXXX";
    const int output = mkstemp(output_path);
    const int messages = mkstemp(messages_path);
    CHECK(output >= 0 && messages >= 0, "no temporary files");
    close(output);
    close(messages);
    const char *build = getenv("PENSTOCK_BUILD");
    CHECK(build != NULL, "PENSTOCK_BUILD is set by tests/run_tests.sh");
    char line[1024];
    snprintf(line, sizeof line, "%s/penstock %s >%s 2>%s", build, arguments, output_path,
             messages_path);
    const int code = system(line);
    command_result result = {.exit_code = WIFEXITED(code) ? WEXITSTATUS(code) : -1};
    size_t length;
    CHECK_OK(pen_file_read(output_path, COMMAND_BYTES_LIMIT, arena, &result.output, &length));
    CHECK_OK(pen_file_read(messages_path, COMMAND_BYTES_LIMIT, arena, &result.messages, &length));
    unlink(output_path);
    unlink(messages_path);
    return result;
}

static void wrong_command_lines_are_explained(void **state) {
    (void)state;
    static const struct {
        const char *arguments;
        const char *message;
    } cases[] = {
        {"", "error: a verb is missing; penstock --help lists them\n"},
        {"schem", "error: unknown verb 'schem', possible: schema, "},
        {"schema --jsno", "error: unknown option --jsno, possible: --json, --keys, "},
        {"train --epochs 3 job.yaml", "error: unknown option --epochs, which is a key of the job: "
                                      "--set train.epochs=VALUE; possible: --steps, "},
        {"plan --devices=2 job.yaml", "error: unknown option --devices, which is a key of the job: "
                                      "--set devices=VALUE; possible: "},
        {"train --batch-size 8 job.yaml",
         "error: unknown option --batch-size: in a job, train.batch says how many examples a step "
         "has; --set PATH=VALUE changes a key; possible: --steps, "},
        {"train --learning-rate 0.1 job.yaml",
         "error: unknown option --learning-rate: in a job, the rate is the optimizer's: "},
        {"train --seed 3 job.yaml",
         "error: unknown option --seed, which is a key of model, train, "
         "placement of the job: --set PATH=VALUE changes it; possible: "},
        {"train --memory 3 job.yaml", "error: unknown option --memory, which is a key of "
                                      "devices[…] of the job: --set PATH=VALUE changes it; "},
        {"worker --epochs 3", "error: unknown option --epochs, possible: "}, // it takes no job
        {"train --version", "error: unknown option --version: `penstock --version` prints it; "},
        {"fit job.yaml", "error: unknown verb 'fit': it is `penstock train JOB`\n"},
        {"version", "error: unknown verb 'version': it is `penstock --version`\n"},
        {"job.yaml", "error: unknown verb 'job.yaml': a verb comes first, as in `penstock train "},
        {"a.yml job", "error: unknown verb 'a.yml': a verb comes first, as in `penstock train "},
        {"schema -x", "error: unknown option -x, possible: "},
        {"schema --json=1", "error: --json: found the value \"1\", expected none\n"},
        {"schema job.yaml", "error: found \"job.yaml\", possible: job, cluster, costs, plan, "
                            "sweep; did you mean job?\n"},
        {"schema -- --json",
         "error: found \"--json\", possible: job, cluster, costs, plan, sweep\n"},
        {"schema -", "error: found \"-\", possible: job, cluster, costs, plan, sweep\n"},
        {"worker --listen 127.0.0.1:0 -",
         "error: found the job \"-\", expected none without --launched"},
        {"schema clustr", "error: found \"clustr\", possible: cluster, job, costs, plan, sweep; "
                          "did you mean cluster?\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pen_arena *arena = check_arena();
        const command_result result = run(arena, cases[i].arguments);
        CHECK(result.exit_code == 2, "%s: exit %d", cases[i].arguments, result.exit_code);
        CHECK(strncmp(result.messages, cases[i].message, strlen(cases[i].message)) == 0, "%s: %s",
              cases[i].arguments, result.messages);
        assert_string_equal(result.output, "");
        pen_arena_destroy(arena);
    }
}

static void help_and_version_go_to_standard_output(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    command_result result = run(arena, "--version");
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.output, "penstock " PEN_VERSION "\n");
    result = run(arena, "--help");
    assert_int_equal(result.exit_code, 0);
    assert_non_null(strstr(result.output, "\n  schema "));
    assert_non_null(strstr(result.output, "\n  doctor "));
    assert_string_equal(result.messages, "");
    result = run(arena, "schema --nonsense --help");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_help.txt", result.output);
    pen_arena_destroy(arena);
}

static void the_schema_is_the_reviewed_one(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    command_result result = run(arena, "schema");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_job.json", result.output);
    result = run(arena, "schema --keys");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_keys.txt", result.output);
    result = run(arena, "schema cluster");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_cluster.json", result.output);
    result = run(arena, "schema costs");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_costs.json", result.output);
    result = run(arena, "schema plan");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_plan.json", result.output);
    result = run(arena, "schema sweep");
    assert_int_equal(result.exit_code, 0);
    CHECK_GOLDEN("schema_sweep.json", result.output);
    result = run(arena, "schema --json");
    static const char start[] = "{\"schema\": \"penstock/schema/1\", \"job\": {\"$schema\"";
    CHECK(strncmp(result.output, start, strlen(start)) == 0, "%.100s", result.output);
    pen_arena_destroy(arena);
}

static void the_doctor_speaks(void **state) {
    (void)state;
    pen_arena *arena = check_arena();
    command_result result = run(arena, "doctor");
    assert_int_equal(result.exit_code, 0);
    assert_non_null(strstr(result.output, "memory  "));
    static const char *const names[] = {
        "kernel level ", "OpenBLAS ",     "oneDNN ",      "\njansson ",    "\nlibpng ",
        "\nlibyaml ",    "\nlibhdf5 ",    "\nlibzip ",    "\nMETIS ",      "\nlibjpeg-turbo ",
        "\nlibwebp ",    "\nzlib ",       "\ngRPC core ", "\nlibarchive ", "\nlibmicrohttpd ",
        "\nlibpq ",      "\nlibseccomp ", "\nOpenSSL ",   "\nSQLite "};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *found = strstr(result.output, names[i]);
        CHECK(found != NULL, "%s: %s", names[i], result.output);
        found += strlen(names[i]);
        found += strspn(found, " v");
        CHECK(*found >= '0' && *found <= '9', "%s: %s", names[i], result.output);
    }
    result = run(arena, "doctor --json");
    assert_int_equal(result.exit_code, 0);
    static const char start[] = "{\"schema\": \"penstock/doctor/1\", \"version\": \"" PEN_VERSION;
    CHECK(strncmp(result.output, start, strlen(start)) == 0, "%.100s", result.output);
    assert_ptr_equal(strchr(result.output, '\n'), result.output + strlen(result.output) - 1);
    pen_arena_destroy(arena);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    const char *build = getenv("PENSTOCK_BUILD");
    CHECK(build != NULL, "PENSTOCK_BUILD is set by tests/run_tests.sh");
    static const char *const arguments[] = {"schema",        "schema --keys", "doctor",
                                            "doctor --json", "--help",        "--version"};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        char line[1024];
        snprintf(line, sizeof line, "%s/penstock %s >/dev/full 2>/dev/null", build, arguments[i]);
        const int code = system(line);
        CHECK(WIFEXITED(code) && WEXITSTATUS(code) != 0, "%s", arguments[i]);
    }
}

PEN_TEST_MAIN(cmocka_unit_test(wrong_command_lines_are_explained),
              cmocka_unit_test(help_and_version_go_to_standard_output),
              cmocka_unit_test(the_schema_is_the_reviewed_one), cmocka_unit_test(the_doctor_speaks),
              cmocka_unit_test(a_full_disk_is_an_error))
