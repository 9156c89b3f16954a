// A process gives up what it will not need, before it looks at bytes that others wrote.
//
// A mistake in a reader then gains little: the process cannot write elsewhere, start programs, open
// connections, or look into other processes. Two means of Linux are used: Landlock keeps it from
// files (Documentation/userspace-api/landlock.rst of the kernel), a filter of system calls
// (seccomp(2), by libseccomp) from the rest. What is given up cannot be had again, nor by processes
// that are started later.
//
// Threads: entered while the process has one thread; threads and processes that it makes are bound
//          as well.
#ifndef PEN_BASE_SYSTEM_SANDBOX_H
#define PEN_BASE_SYSTEM_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// What a process keeps. Reading stays free but for PEN_SANDBOX_CALCULATOR.
typedef struct pen_sandbox {
    const char *const *folders; // [folder_count] files beneath them may be written, made, removed
    uint32_t folder_count;      // 0: nothing may be written
    bool connects;              // it opens sockets to other hosts
    bool starts_itself;         // it starts this program again, and no other
} pen_sandbox;

// System calls that no part of Penstock makes are refused with EPERM: ptrace and what else looks
// into other processes, mounts, namespaces, kernel modules, keys, BPF, io_uring, clocks that are
// set. So are sockets where it does not connect: all of them, or, where it starts itself, all but
// AF_UNIX. socketpair stays. Files that are open stay as they are.
//   UNAVAILABLE    the kernel has no Landlock or no filter; nothing was given up
//   INVALID_INPUT  a folder is not there; nothing was given up
//   INTERNAL       the process has more threads than one
PEN_NODISCARD pen_status pen_sandbox_enter(const pen_sandbox *sandbox);

// The same without the part about files, for a process that serves for months: a file system that
// is mounted anew would be out of its reach. Threads that run already are bound, too. Returns false
// where the kernel has no filter.
bool pen_sandbox_drop_calls(const pen_sandbox *sandbox);

// For a child that only calculates on what it has and talks over sockets that are open: no file
// can be opened any more, none made, and but some 40 calls that libraries need for memory, time and
// their end, all are refused with EPERM. Returns false where the kernel has no filter; the child is
// then bound by what else was done.
bool pen_sandbox_enter_calculator(void);

// Whether this kernel has what pen_sandbox_enter needs.
bool pen_sandbox_is_possible(void);

// The version of libseccomp, "2.5.4". Good until the thread asks again. Threads: any.
const char *pen_seccomp_version(void);

#endif // PEN_BASE_SYSTEM_SANDBOX_H
