// What a process in a sandbox cannot do, and what it still can. Each test tries it in a child.

#include "base/system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static char own_folder[512], other_file[512], inner_file[512];

// Runs `attempt` in a child; 0: all was as expected, else the line that was not.
static int in_child(int (*attempt)(void)) {
    int how = -1;
    const pid_t child = fork();
    if (child == 0) _exit(attempt());
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 256 + WTERMSIG(how);
}

#define EXPECT(condition)                                                                          \
    if (!(condition)) return __LINE__ % 250 + 1

static bool enter(bool connects, bool starts_itself) {
    const char *folders[] = {own_folder};
    const pen_sandbox sandbox = {folders, 1, connects, starts_itself};
    const pen_status status = pen_sandbox_enter(&sandbox);
    if (status == PEN_OK) return true;
    pen_status_ignore(status, "the caller fails");
    return false;
}

static int writes_where_it_may(void) {
    char name[600];
    EXPECT(enter(false, false));
    const int inner = open(inner_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(inner >= 0 && write(inner, "x", 1) == 1 && close(inner) == 0);
    snprintf(name, sizeof name, "%s.new", inner_file);
    EXPECT(rename(inner_file, name) == 0 && unlink(name) == 0);
    snprintf(name, sizeof name, "%s/made", own_folder);
    EXPECT(mkdir(name, 0700) == 0 && rmdir(name) == 0);
    // what lies elsewhere can be read alone
    EXPECT(open(other_file, O_WRONLY) < 0 && errno == EACCES);
    EXPECT(truncate(other_file, 0) < 0 && errno == EACCES);
    EXPECT(unlink(other_file) < 0 && errno == EACCES);
    snprintf(name, sizeof name, "%s.new", other_file);
    EXPECT(open(name, O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    EXPECT(open(other_file, O_RDONLY) >= 0);
    EXPECT(open("/dev/null", O_WRONLY) >= 0);
    return 0;
}

static int starts_nothing(void) {
    char *const arguments[] = {"/bin/true", NULL};
    EXPECT(enter(false, false));
    EXPECT(execv(arguments[0], arguments) < 0 && errno == EPERM);
    return 0;
}

// Another program than itself has no right to run.
static int starts_itself_alone(void) {
    char *const other[] = {"/bin/true", NULL};
    char *const itself[] = {"/proc/self/exe", "--again", NULL};
    EXPECT(enter(false, true));
    EXPECT(execv(other[0], other) < 0 && errno == EACCES);
    execv(itself[0], itself);
    return __LINE__ % 250 + 1;
}

// A socket file may belong to a program that does anything, so none is reached.
static int connects_nowhere(void) {
    int pair[2];
    char byte = 1;
    EXPECT(enter(false, false));
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    EXPECT(socket(AF_INET6, SOCK_DGRAM, 0) < 0 && errno == EPERM);
    EXPECT(socket(AF_NETLINK, SOCK_RAW, 0) < 0 && errno == EPERM);
    EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    EXPECT(write(pair[0], &byte, 1) == 1 && read(pair[1], &byte, 1) == 1);
    return 0;
}

static int meets_its_own_alone(void) {
    EXPECT(enter(false, true));
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    return 0;
}

static int connects_where_it_may(void) {
    EXPECT(enter(true, false));
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    return 0;
}

static void *nothing(void *context) {
    return context;
}

static int looks_into_nobody(void) {
    pthread_t thread;
    EXPECT(enter(true, true));
    EXPECT(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
    EXPECT(unshare(CLONE_NEWUSER) < 0 && errno == EPERM);
    EXPECT(pthread_create(&thread, NULL, nothing, NULL) == 0 && pthread_join(thread, NULL) == 0);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    EXPECT(child > 0 && waitpid(child, NULL, 0) == child);
    return 0;
}

static void *tries_later(void *context) {
    const int *pipe = context;
    char byte;
    if (read(pipe[0], &byte, 1) != 1) return NULL;
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM ? context : NULL;
}

// A thread that is there already is bound, too; files are as before.
static int drops_calls(void) {
    int pipes[2];
    pthread_t thread;
    void *result = NULL;
    const pen_sandbox kept = {.connects = true};
    EXPECT(pipe(pipes) == 0 && pthread_create(&thread, NULL, tries_later, pipes) == 0);
    EXPECT(pen_sandbox_drop_calls(&kept));
    EXPECT(write(pipes[1], "x", 1) == 1 && pthread_join(thread, &result) == 0 && result != NULL);
    char *const arguments[] = {"/bin/true", NULL};
    EXPECT(execv(arguments[0], arguments) < 0 && errno == EPERM);
    EXPECT(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    EXPECT(open(other_file, O_WRONLY) >= 0);
    return 0;
}

static int calculates(void) {
    int pipes[2];
    char byte = 1;
    EXPECT(pipe(pipes) == 0);
    EXPECT(pen_sandbox_enter_calculator());
    EXPECT(write(pipes[1], &byte, 1) == 1 && read(pipes[0], &byte, 1) == 1);
    void *memory = malloc((size_t)8 << 20);
    EXPECT(memory != NULL);
    memset(memory, 1, (size_t)8 << 20);
    free(memory);
    EXPECT(open("/dev/null", O_RDONLY) < 0 && errno == EPERM);
    EXPECT(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    EXPECT(fork() < 0 && errno == EPERM);
    EXPECT(kill(getppid(), 0) < 0 && errno == EPERM);
    return 0;
}

// A process with several threads is not entered, and TSan has one of its own.
static void skip_where_threads_are(void) {
    if (PEN_HAS_TSAN) skip();
}

static void it_writes_in_its_folders_alone(void **state) {
    (void)state;
    skip_where_threads_are();
    assert_int_equal(in_child(writes_where_it_may), 0);
}

static void it_starts_what_it_may_alone(void **state) {
    (void)state;
    skip_where_threads_are();
    assert_int_equal(in_child(starts_nothing), 0);
    assert_int_equal(in_child(starts_itself_alone), 77); // said by itself, started again
}

static void it_connects_where_it_may_alone(void **state) {
    (void)state;
    skip_where_threads_are();
    assert_int_equal(in_child(connects_nowhere), 0);
    assert_int_equal(in_child(meets_its_own_alone), 0);
    assert_int_equal(in_child(connects_where_it_may), 0);
}

static void it_looks_into_no_other_process(void **state) {
    (void)state;
    skip_where_threads_are();
    assert_int_equal(in_child(looks_into_nobody), 0);
}

static void a_server_drops_calls(void **state) {
    (void)state;
    assert_int_equal(in_child(drops_calls), 0);
}

static void a_calculator_opens_nothing(void **state) {
    (void)state;
    assert_int_equal(in_child(calculates), 0);
}

static void a_missing_folder_is_named(void **state) {
    (void)state;
    const char *folders[] = {"/no/such/folder"};
    const pen_sandbox sandbox = {folders, 1, false, false};
    CHECK_ERROR(pen_sandbox_enter(&sandbox), PEN_INVALID_INPUT, "'/no/such/folder'");
    assert_true(open(other_file, O_WRONLY) >= 0); // nothing was given up
}

int main(int argument_count, char **arguments) {
    // not by exit: a sanitizer would look for leaks, which the sandbox it was started in refuses
    if (argument_count > 1 && strcmp(arguments[1], "--again") == 0) _exit(77);
    snprintf(inner_file, sizeof inner_file, "%s", scratch_file("own/inner", "", 0));
    snprintf(other_file, sizeof other_file, "%s", scratch_file("other", "abc", 3));
    snprintf(own_folder, sizeof own_folder, "%s", scratch_path("own"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_writes_in_its_folders_alone),
        cmocka_unit_test(it_starts_what_it_may_alone),
        cmocka_unit_test(it_connects_where_it_may_alone),
        cmocka_unit_test(it_looks_into_no_other_process),
        cmocka_unit_test(a_server_drops_calls),
        cmocka_unit_test(a_calculator_opens_nothing),
        cmocka_unit_test(a_missing_folder_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
