#include "base/system/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define INTERRUPT_CODE 130 // as shells have it for a program that Ctrl-C ended

static atomic_int interrupt_requests;
static _Atomic(const char *) interrupt_notice;
static atomic_bool interrupt_question;
static _Atomic(void (*)(void)) interrupt_also;
static _Atomic(const char *) interrupt_stage;

static void interrupt_write(const char *text) {
    if (text == NULL) return;
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; // nobody is there to read it
}

static void interrupt_stop(int signal_number) {
    (void)signal_number;
    const int error = errno;
    if (atomic_fetch_add(&interrupt_requests, 1) > 0) _exit(INTERRUPT_CODE);
    interrupt_write(atomic_load(&interrupt_notice));
    errno = error;
}

static void interrupt_ask(int signal_number) {
    (void)signal_number;
    const int error = errno;
    void (*const also)(void) = atomic_load(&interrupt_also);
    if (also != NULL) also();
    const char *stage = atomic_load(&interrupt_stage);
    interrupt_write(stage);
    if (stage == NULL) atomic_store(&interrupt_question, true); // else it is answered
    errno = error;
}

static void interrupt_take(int signal_number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    (void)sigaction(signal_number, &action, NULL); // fails for numbers that are none
}

void pen_interrupt_begin(void) {
    atomic_store(&interrupt_stage, "the command is starting; no step is done\n");
    interrupt_take(SIGUSR1, interrupt_ask);
}

void pen_interrupt_set_stage(const char *text) {
    atomic_store(&interrupt_stage, text);
}

void pen_interrupt_install(const char *notice) {
    atomic_store(&interrupt_notice, notice);
    interrupt_take(SIGINT, interrupt_stop);
    interrupt_take(SIGTERM, interrupt_stop);
}

bool pen_interrupt_requested(void) {
    return atomic_load(&interrupt_requests) > 0;
}

bool pen_interrupt_wished(const volatile int *wish) {
    if (wish != NULL && __atomic_load_n(wish, __ATOMIC_ACQUIRE) != 0) return true;
    return pen_interrupt_requested();
}

void pen_interrupt_install_question(void (*also)(void)) {
    atomic_store(&interrupt_also, also);
    interrupt_take(SIGUSR1, interrupt_ask);
}

bool pen_interrupt_take_question(void) {
    return atomic_exchange(&interrupt_question, false);
}
