// Places with a name at which a test makes a process die, stop, or wait:
// PEN_FAILPOINT("shard.synced").
//
// PENSTOCK_FAILPOINT="shard.synced:3:kill" kills the process (SIGKILL) the third time that it comes
// there. Others than kill: `stop` (SIGSTOP to itself), `exit` (ends with code 1), `sleep=SECONDS`,
// `fail` (pen_failpoint_hit returns true, and the place fails as if the system had refused).
// Several are separated by commas. Without the variable a place costs one load and one branch.
//
// Names are `part.event`, in the past tense of what has just been done. docs/recovery.md lists
// them.
//
// Threads: any.
#ifndef PEN_BASE_SYSTEM_FAILPOINT_H
#define PEN_BASE_SYSTEM_FAILPOINT_H

#include <stdbool.h>

extern bool pen_failpoints_are_set;

// Reads the variable. Once, before there are threads. Prints what it cannot read, and then false.
bool pen_failpoints_init(void);

// Counts, and does what was asked for. True: the place is to fail.
bool pen_failpoint_hit(const char *name);

#define PEN_FAILPOINT(name) (pen_failpoints_are_set && pen_failpoint_hit(name))

#endif // PEN_BASE_SYSTEM_FAILPOINT_H
