#include "base/system/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizer.h"
#if PEN_HAS_ASAN
#include <sanitizer/lsan_interface.h>
#endif

// Rights of newer kernels than the headers at hand (ABI 2, 3, 5).
#define SANDBOX_REFER (1ull << 13)
#define SANDBOX_TRUNCATE (1ull << 14)
#define SANDBOX_IOCTL_DEVICE (1ull << 15)

#define SANDBOX_READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define SANDBOX_WRITES                                                                             \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                               \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |  \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM)
#define SANDBOX_MAKES_DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)

// No part of Penstock makes these calls.
static const int sandbox_refused[] = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsmount),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(syslog),
    SCMP_SYS(personality),
    SCMP_SYS(quotactl),
    SCMP_SYS(vhangup),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
};

// Memory, threads that wait, time, files and sockets that are open, and the end of a process.
static const int sandbox_calculates[] = {
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendto),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(brk),
    SCMP_SYS(madvise),
    SCMP_SYS(mprotect),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getuid),
    SCMP_SYS(getrusage),
    SCMP_SYS(sysinfo),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(tgkill),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
};

// ---- files

// 0: there is no Landlock.
static int sandbox_version(void) {
    const long version =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);
    return version > 0 ? (int)version : 0;
}

// What Landlock of this version may take away: a right that it does not know is an error.
static uint64_t sandbox_rights(int version) {
    uint64_t rights =
        SANDBOX_READS | SANDBOX_WRITES | SANDBOX_MAKES_DEVICES | LANDLOCK_ACCESS_FS_EXECUTE;
    if (version >= 2) rights |= SANDBOX_REFER;
    if (version >= 3) rights |= SANDBOX_TRUNCATE;
    if (version >= 5) rights |= SANDBOX_IOCTL_DEVICE;
    return rights;
}

// Gives back `rights` beneath `path`; of a file those that files have. ENOENT and the like stay in
// errno.
static bool sandbox_allow(int rules, const char *path, uint64_t rights) {
    const int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return false;
    const struct landlock_path_beneath_attr beneath = {.allowed_access = rights,
                                                       .parent_fd = place};
    const long result =
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    (void)close(place);
    return result == 0;
}

// The program that loads ours ("/lib64/ld-linux-x86-64.so.2"), as our own headers name it.
static int sandbox_find_loader(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_INTERP) continue;
        *(const char **)context = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return 1; // the first is the program itself
}

static bool sandbox_allow_itself(int rules) {
    const char *loader = NULL;
    (void)dl_iterate_phdr(sandbox_find_loader, &loader);
    const uint64_t rights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE;
    return sandbox_allow(rules, "/proc/self/exe", rights) &&
           (loader == NULL || sandbox_allow(rules, loader, rights));
}

static pen_status sandbox_refuse(const char *what) {
    return pen_error(PEN_UNAVAILABLE, "a sandbox: %s: %s", what, strerror(errno));
}

// Reading stays free everywhere. Devices that swallow or give bytes may be written.
static pen_status sandbox_fill_rules(const pen_sandbox *sandbox, int rules, uint64_t rights) {
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
    if (!sandbox_allow(rules, "/", SANDBOX_READS)) return sandbox_refuse("reading");
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        (void)sandbox_allow(rules, devices[i],
                            LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);
    }
    if (sandbox->starts_itself && !sandbox_allow_itself(rules)) return sandbox_refuse("programs");
    for (uint32_t i = 0; i < sandbox->folder_count; i++) {
        const uint64_t kept =
            (SANDBOX_READS | SANDBOX_WRITES | SANDBOX_REFER | SANDBOX_TRUNCATE) & rights;
        if (sandbox_allow(rules, sandbox->folders[i], kept)) continue;
        return pen_error(PEN_INVALID_INPUT, "a sandbox: '%.500s': %s; expected a folder",
                         sandbox->folders[i], strerror(errno));
    }
    return PEN_OK;
}

static pen_status sandbox_make_rules(const pen_sandbox *sandbox, int *out_rules) {
    const int version = sandbox_version();
    if (version == 0) return sandbox_refuse("Landlock");
    const struct landlock_ruleset_attr taken = {.handled_access_fs = sandbox_rights(version)};
    const int rules =
        (int)syscall(SYS_landlock_create_ruleset, &taken, sizeof taken.handled_access_fs, 0);
    if (rules < 0) return sandbox_refuse("Landlock");
    const pen_status status = sandbox_fill_rules(sandbox, rules, taken.handled_access_fs);
    if (status != PEN_OK) {
        (void)close(rules);
        return status;
    }
    *out_rules = rules;
    return PEN_OK;
}

// ---- system calls

// New namespaces give new rights: processes and threads are made without. clone3 has its flags in
// memory, where a filter does not see them; the C library then takes clone.
static int sandbox_refuse_namespaces(scmp_filter_ctx filter) {
    static const uint64_t flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                     CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    int code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    for (size_t i = 0; i < sizeof flags / sizeof *flags && code == 0; i++) {
        code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i]));
    }
    return code;
}

// Calls that this machine's processor family does not have are none that could be made.
static bool sandbox_add_all(scmp_filter_ctx filter, uint32_t action, const int *calls,
                            size_t count) {
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (calls[i] >= 0) code = seccomp_rule_add(filter, action, calls[i], 0);
    }
    return code == 0;
}

#if PEN_HAS_ASAN
// The sanitizer looks for leaks by a thread that traces the others, which the filter refuses: in a
// process with a filter it does not look.
static bool sandbox_is_filtered;

int __lsan_is_turned_off(void) {
    return sandbox_is_filtered;
}
#endif

// What is refused by name, and by what the process keeps. All threads get the filter.
static bool sandbox_filter(const pen_sandbox *sandbox) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) return false;
    bool is_right = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0; // all threads
    is_right = is_right &&
               sandbox_add_all(filter, SCMP_ACT_ERRNO(EPERM), sandbox_refused,
                               sizeof sandbox_refused / sizeof *sandbox_refused) &&
               sandbox_refuse_namespaces(filter) == 0;
    if (is_right && !sandbox->connects && !sandbox->starts_itself) {
        // not AF_UNIX either: by its path one reaches a bus or a daemon that does anything
        is_right = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 0) == 0;
    } else if (is_right && !sandbox->connects) {
        is_right = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                    SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0)) == 0;
    }
    if (is_right && !sandbox->starts_itself) {
        static const int starts[] = {SCMP_SYS(execve), SCMP_SYS(execveat)};
        is_right = sandbox_add_all(filter, SCMP_ACT_ERRNO(EPERM), starts, 2);
    }
    is_right = is_right && seccomp_load(filter) == 0;
    seccomp_release(filter);
#if PEN_HAS_ASAN
    sandbox_is_filtered = is_right;
#endif
    return is_right;
}

// ---- both

static uint32_t sandbox_count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL) return 1;
    uint32_t count = 0;
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        if (entry->d_name[0] != '.') count += 1;
    }
    (void)closedir(tasks);
    return count;
}

bool pen_sandbox_is_possible(void) {
    return sandbox_version() > 0 && prctl(PR_GET_SECCOMP) >= 0;
}

// The filter comes last: it is what could still refuse Landlock's calls.
pen_status pen_sandbox_enter(const pen_sandbox *sandbox) {
    int rules;
    const uint32_t threads = sandbox_count_threads();
    if (threads > 1) {
        return pen_error(PEN_INTERNAL, "a sandbox: the process has %u threads already", threads);
    }
    PEN_TRY(sandbox_make_rules(sandbox, &rules));
    const bool is_right = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                          syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    const pen_status status = is_right ? PEN_OK : sandbox_refuse("Landlock");
    (void)close(rules);
    if (status != PEN_OK) return status;
    return sandbox_filter(sandbox) ? PEN_OK : sandbox_refuse("the filter of system calls");
}

bool pen_sandbox_drop_calls(const pen_sandbox *sandbox) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && sandbox_filter(sandbox);
}

bool pen_sandbox_enter_calculator(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL) return false;
    const bool is_right = sandbox_add_all(filter, SCMP_ACT_ALLOW, sandbox_calculates,
                                          sizeof sandbox_calculates / sizeof *sandbox_calculates) &&
                          seccomp_load(filter) == 0;
    seccomp_release(filter);
    return is_right;
}

const char *pen_seccomp_version(void) {
    static _Thread_local char text[36];
    const struct scmp_version *version = seccomp_version();
    snprintf(text, sizeof text, "%u.%u.%u", version->major, version->minor, version->micro);
    return text;
}
