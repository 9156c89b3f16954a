// What a user asks of a running command by signals: to stop (Ctrl-C, SIGTERM), and to say how it
// stands (SIGUSR1).
//
// The first request to stop is a wish, which the work asks for between two steps; the second ends
// the process at once, with code 130.
//
// Threads: any may ask; installing and ending are for one.
#ifndef PEN_BASE_SYSTEM_INTERRUPT_H
#define PEN_BASE_SYSTEM_INTERRUPT_H

#include <stdbool.h>

// From now on SIGINT and SIGTERM are wishes. `notice` is written to standard error by the first
// (with its line's end); it outlives the process. NULL: nothing is.
void pen_interrupt_install(const char *notice);

// Whether the work is to stop.
bool pen_interrupt_requested(void);

// The same for one piece of work, that `wish` is about: whether there is a number other than 0. Any
// thread, or a signal handler, may write it meanwhile. NULL: only the command as a whole stops.
bool pen_interrupt_wished(const volatile int *wish);

// From now on SIGUSR1 ends nothing. Until somebody says otherwise (pen_interrupt_set_stage) it is
// answered at once: the command is starting.
void pen_interrupt_begin(void);
// What SIGUSR1 writes to standard error at once, with its line's end; it outlives the process.
// NULL: nothing, since whoever takes the question answers it.
void pen_interrupt_set_stage(const char *text);

// From now on SIGUSR1 is a question; `also` is called in the signal handler, before the question
// can be taken: it may only do what handlers may. NULL: nothing more.
void pen_interrupt_install_question(void (*also)(void));

// Whether there is a question that nobody has taken yet; takes it.
bool pen_interrupt_take_question(void);

#endif // PEN_BASE_SYSTEM_INTERRUPT_H
