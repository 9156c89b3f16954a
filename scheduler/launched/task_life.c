#include "scheduler/launched/task_life.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/system/failpoint.h"
#include "base/system/interrupt.h"
#include "base/system/process_heap.h"
#include "scheduler/launched/task_address.h"
#include "scheduler/launched/task_grant.h"
#include "scheduler/launched/task_inside.h"
#include "scheduler/launched/task_system.h"
#include "scheduler/launched/task_tls.h"
#include "scheduler/protocol/flight_recorder.h"
#include "scheduler/transport/grpc/address_answer.h"

#define LIFE_OWN_SECONDS 1.0    // between two looks at the own record
#define LIFE_TOLD_SECONDS 2.0   // for who coordinates to say that it was told to end, too
#define LIFE_ANSWER_SECONDS 0.3 // for a task to answer
#define LIFE_LEVEL "error: "
#define LIFE_CODE_LOST 6     // exit codes that another try may do away with: this,
#define LIFE_CODE_LATER 9    // a disk or place that may be there later,
#define LIFE_CODE_SIGNAL 128 // and from here on

// ---- the end

static bool life_is_final(uint64_t code) {
    return code != LIFE_CODE_LOST && code != LIFE_CODE_LATER && code < LIFE_CODE_SIGNAL;
}

pen_status pen_task_read_end(task_life *task, bool *out_is_over, int *out_code) {
    pen_task_record end;
    bool is_there;
    *out_is_over = false;
    PEN_TRY(pen_task_folder_read(&task->folder, PEN_TASK_FILE_END, &end, &is_there));
    if (!is_there || end.incarnation == task->earlier_end) return PEN_OK;
    *out_is_over = true;
    *out_code = (int)end.code;
    if (end.code != 0) {
        pen_log(PEN_LOG_ERROR, "ends with code %d, as task %u on %s: %s", *out_code,
                (unsigned)end.rank, end.node, end.reason);
    }
    return PEN_OK;
}

void pen_task_write_end(task_life *task, int code, pen_status status) {
    pen_task_record end = {.rank = task->own.rank,
                           .size = task->own.size,
                           .incarnation = pen_random_incarnation(),
                           .code = (uint64_t)code};
    memcpy(end.node, task->own.node, sizeof end.node);
    char reason[PEN_TASK_REASON_BYTES] = "";
    if (status != PEN_OK) pen_status_format(status, reason, sizeof reason);
    reason[strcspn(reason, "\n")] = '\0';
    const bool has_word = strncmp(reason, LIFE_LEVEL, strlen(LIFE_LEVEL)) == 0;
    snprintf(end.reason, sizeof end.reason, "%s", reason + (has_word ? strlen(LIFE_LEVEL) : 0));
    const pen_status written = pen_task_folder_write(&task->folder, PEN_TASK_FILE_END, &end);
    if (written != PEN_OK) pen_log(PEN_LOG_WARNING, "%s", pen_status_message(written));
    pen_status_ignore(written, "said; the others see that this task is gone");
    task->earlier_end = end.incarnation; // its own
    (void)PEN_FAILPOINT("task.ended");
    pen_task_folder_forget_keys(&task->folder);
}

// An end that was there before is this start's only if that has a name, and no other try would
// help; else an earlier start left it.
static pen_status life_read_earlier_end(task_life *task, bool *out_is_over, int *out_code) {
    const pen_task_identity *identity = task->options->identity;
    pen_task_record end;
    bool is_there;
    *out_is_over = false;
    PEN_TRY(pen_task_folder_read(&task->folder, PEN_TASK_FILE_END, &end, &is_there));
    if (!is_there) return PEN_OK;
    if (identity->start != NULL && life_is_final(end.code)) {
        return pen_task_read_end(task, out_is_over, out_code);
    }
    task->earlier_end = end.incarnation;
    if (identity->rank == 0) {
        pen_log(PEN_LOG_NOTE, "%s is of an earlier start, which ended with code %u; begins anew",
                task->folder.path, (unsigned)end.code);
    }
    return PEN_OK;
}

// ---- the own record

pen_status pen_task_publish(task_life *task) {
    char name[PEN_TASK_FILE_BYTES];
    return pen_task_folder_write(&task->folder, pen_task_folder_name(task->own.rank, name),
                                 &task->own);
}

bool pen_task_answers(const pen_task_record *record) {
    return pen_address_answers(record->address, LIFE_ANSWER_SECONDS);
}

static pen_status life_refuse_alike(const task_life *task, const pen_task_record *other) {
    if (other->size != task->own.size) {
        return pen_error(PEN_INVALID_INPUT,
                         "%s: found a start of %u tasks whose task %u, process %u on %s, is alive, "
                         "expected none: this start has %u tasks; give it a folder of its own",
                         task->folder.path, (unsigned)other->size, (unsigned)other->rank,
                         (unsigned)other->process, other->node, (unsigned)task->own.size);
    }
    return pen_error(
        PEN_INVALID_INPUT,
        "two tasks are number %u of %u: process %u on %s and process %u on %s, expected "
        "each number once",
        (unsigned)task->own.rank, (unsigned)task->own.size, (unsigned)other->process, other->node,
        (unsigned)task->own.process, task->own.node);
}

// A record that is there is that of this task before it was started again, or of another that has
// the same number by mistake.
static pen_status life_check_own(task_life *task) {
    char name[PEN_TASK_FILE_BYTES];
    pen_task_record other;
    bool is_there;
    PEN_TRY(pen_task_folder_read(&task->folder, pen_task_folder_name(task->own.rank, name), &other,
                                 &is_there));
    if (!is_there || other.incarnation == task->own.incarnation) return PEN_OK;
    return pen_task_is_alive(&other) ? life_refuse_alike(task, &other) : PEN_OK;
}

// Whether another process has taken this task's number meanwhile: it was started again while this
// one stood still, or two were started with one number at the same moment.
static pen_status life_check_replaced(task_life *task) {
    char name[PEN_TASK_FILE_BYTES];
    pen_task_record now;
    bool is_there;
    if (pen_clock_seconds() < task->own_read_at + LIFE_OWN_SECONDS) return PEN_OK;
    task->own_read_at = pen_clock_seconds();
    PEN_TRY(pen_task_folder_read(&task->folder, pen_task_folder_name(task->own.rank, name), &now,
                                 &is_there));
    if (!is_there) return pen_task_publish(task);
    return now.incarnation == task->own.incarnation ? PEN_OK : life_refuse_alike(task, &now);
}

// The record of this task, as the others read it: who it is, and what it may use.
static pen_status life_describe(task_life *task) {
    const pen_task_identity *identity = task->options->identity;
    pen_task_grant grant;
    PEN_TRY(pen_task_grant_find(identity, task->arena, &grant));
    const uint64_t most = task->options->memory_bytes;
    if (most > 0) grant.memory_bytes = pen_min_u64(grant.memory_bytes, most);
    pen_task_record *own = &task->own;
    *own = (pen_task_record){.rank = identity->rank,
                             .size = identity->size,
                             .incarnation = pen_random_incarnation(),
                             .process = (uint64_t)getpid(),
                             .began = pen_task_system_began((uint64_t)getpid()),
                             .cores = grant.cores,
                             .memory_bytes = grant.memory_bytes,
                             .shares_cores = grant.shares_cores,
                             .shares_memory = grant.shares_memory,
                             .is_worker = task->options->is_worker};
    snprintf(own->node, sizeof own->node, "%s", identity->node);
    pen_task_system_name(own->system);
    return PEN_OK;
}

// ---- beginning

// Certificates first: nobody is let in without. The port is whatever is free.
static pen_status life_listen(task_life *task) {
    const pen_task_options *options = task->options;
    char host[PEN_TASK_HOST_BYTES], address[PEN_TASK_ADDRESS_BYTES];
    const pen_transport_kind *transport;
    const char *store, *mirror = NULL;
    uint16_t port;
    PEN_TRY(pen_task_address_find(host));
    task->tls = options->tls;
    if (task->tls.ca == NULL && !options->is_insecure) {
        PEN_TRY(pen_status_add_context(
            pen_task_tls_make(&task->folder, host, task->own.incarnation, task->arena, &task->tls),
            "while making certificates for links between tasks"));
    }
    const bool has_colon = strchr(host, ':') != NULL;
    snprintf(address, sizeof address, has_colon ? "[%s]:0" : "%s:0", host);
    PEN_TRY(pen_transport_kind_find("grpc", &transport));
    PEN_TRY(pen_arena_format(task->arena, &store, "%s/shards", options->checkpoints));
    if (options->mirror != NULL) {
        PEN_TRY(pen_arena_format(task->arena, &mirror, "%s/shards", options->mirror));
    }
    const pen_worker_options worker = {.transport = transport,
                                       .address = address,
                                       .tls = task->tls,
                                       .is_insecure = options->is_insecure,
                                       .token_file = options->token_file,
                                       .memory_bytes = task->own.memory_bytes,
                                       .store = store,
                                       .mirror = mirror,
                                       .data = "/"};
    pen_process_heap_prepare();
    PEN_TRY(pen_worker_create(&worker, &task->worker, &port));
    (void)PEN_FAILPOINT("task.listening");
    snprintf(task->own.address, sizeof task->own.address, has_colon ? "[%s]:%u" : "%s:%u", host,
             port);
    return PEN_OK;
}

// The folder, and who looks whether it answers: within the time for a rendezvous.
static pen_status life_open_folder(task_life *task) {
    const pen_task_options *options = task->options;
    const bool makes_keys = options->tls.ca == NULL && !options->is_insecure;
    const pen_status hung = pen_error(PEN_NO_STORAGE, "the folder does not answer");
    const int code = options->exit_code(options->context, hung);
    pen_status_ignore(hung, "its code is wanted");
    PEN_TRY(pen_task_watch_create(options->checkpoints,
                                  fmax(options->wait_seconds, options->lease_seconds), code,
                                  &task->watch));
    pen_task_watch_ask(task->watch);
    const pen_status status =
        pen_task_folder_open(options->checkpoints, options->verb, options->identity->start,
                             makes_keys, task->arena, &task->folder);
    pen_task_watch_answer(task->watch);
    task->folder.watch = task->watch;
    return status;
}

static pen_status life_begin(task_life *task, bool *out_is_over, int *out_code) {
    task->began = pen_clock_seconds();
    PEN_TRY(life_open_folder(task));
    PEN_TRY(life_describe(task));
    PEN_TRY(life_read_earlier_end(task, out_is_over, out_code));
    if (*out_is_over) return PEN_OK;
    PEN_TRY(life_check_own(task));
    PEN_TRY(life_listen(task));
    PEN_TRY(pen_task_publish(task));
    task->own_read_at = pen_clock_seconds();
    (void)PEN_FAILPOINT("task.published");
    return PEN_OK;
}

// ---- waiting

// Told to end: who coordinates, told as well, keeps a checkpoint, for which it needs this worker.
// Else this task leaves alone.
static pen_status life_leave(task_life *task, bool is_led) {
    char name[PEN_TASK_FILE_BYTES];
    pen_task_record leader = {0};
    bool is_there = false;
    if (!pen_interrupt_requested()) return PEN_OK;
    if (task->told_at == 0) {
        task->told_at = pen_clock_seconds();
        task->own.is_leaving = true;
        PEN_TRY(pen_task_publish(task));
    }
    if (is_led) {
        PEN_TRY(pen_task_folder_read(&task->folder,
                                     pen_task_folder_name(task->leader.record.rank, name), &leader,
                                     &is_there));
    }
    const bool is_wanted = is_led && is_there && leader.is_leaving;
    const bool may_be = is_led && pen_clock_seconds() < task->told_at + LIFE_TOLD_SECONDS;
    if (is_wanted || may_be) return PEN_OK;
    pen_worker_leave(task->worker, "the task was told to end");
    return pen_error(PEN_CANCELLED, "told to end (a signal)");
}

static pen_status life_check_deadline(const task_life *task) {
    const double waited = task->quiet_since == 0 ? 0 : pen_clock_seconds() - task->quiet_since;
    if (!task->options->is_worker || waited < task->options->wait_seconds) return PEN_OK;
    return pen_error(PEN_DEADLINE,
                     "no task coordinates, for %.0f s (pipeline.rendezvous_timeout); this one is a "
                     "worker alone: expected `penstock train --launched` in another",
                     task->options->wait_seconds);
}

// What was done last, for somebody who asks while this task only serves.
static void life_answer_question(void) {
    if (!pen_interrupt_take_question()) return;
    (void)pen_flight_dump("somebody asked (SIGUSR1)");
    pen_log(PEN_LOG_NOTE, "this task serves; what was done last is in %s", pen_flight_folder());
}

// A network folder may fail for a moment. One that stays away ends the task.
static pen_status life_step(task_life *task, bool *out_is_over, int *out_code) {
    bool is_led, is_next = false, is_superseded;
    PEN_TRY(pen_task_read_end(task, out_is_over, out_code));
    if (*out_is_over) return PEN_OK;
    PEN_TRY(life_check_replaced(task));
    PEN_TRY(pen_task_look(task, &is_led));
    PEN_TRY(life_leave(task, is_led));
    if (!is_led) PEN_TRY(pen_task_is_next(task, &is_next));
    if (!is_next) return is_led ? PEN_OK : life_check_deadline(task);
    if (task->own.rank > 0) pen_log(PEN_LOG_NOTE, "task %u coordinates", (unsigned)task->own.rank);
    task->quiet_since = 0;
    const pen_status status = pen_task_lead(task, &is_superseded);
    if (is_superseded) return status;
    *out_is_over = true;
    *out_code = task->options->exit_code(task->options->context, status);
    return status;
}

static pen_status life_live(task_life *task, int *out_code) {
    bool is_over = false;
    pen_status status = life_begin(task, &is_over, out_code);
    while (status == PEN_OK && !is_over) {
        status = life_step(task, &is_over, out_code);
        life_answer_question();
        if (status == PEN_OK && !is_over) pen_clock_pause(LIFE_POLL_SECONDS);
    }
    if (status == PEN_OK || is_over || task->folder.path == NULL) return status;
    // a mistake, which all the others wait for in vain
    const int code = task->options->exit_code(task->options->context, status);
    if (life_is_final((uint64_t)code)) pen_task_write_end(task, code, status);
    return status;
}

pen_status pen_task_run(const pen_task_options *options, int *out_code) {
    task_life *task = pen_memory_allocate(1, sizeof *task);
    if (task == NULL) return pen_error_out_of_memory();
    task->options = options;
    pen_mutex_init(&task->lock);
    pen_condition_init(&task->changed);
    pen_interrupt_install(NULL);
    pen_interrupt_install_question(NULL);
    pen_status status = pen_arena_create(&task->arena);
    if (status == PEN_OK) status = life_live(task, out_code);
    pen_worker_destroy(task->worker);
    pen_task_watch_destroy(task->watch);
    pen_arena_destroy(task->arena);
    pen_condition_deinit(&task->changed);
    pen_mutex_deinit(&task->lock);
    pen_memory_free(task);
    return status;
}
