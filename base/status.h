// How a function says that it failed.
//
// A pen_status is one word: PEN_OK (NULL) or an error that the holder owns. An error has a code, a
// message, the position in the user's file if known, the C position, and context added on the way
// up. Whoever holds an error returns it, joins it, or drops it with a reason.
//
// Messages are lower case, use the user's names, and give what was found and what was expected.
//
// Threads: an error belongs to one thread at a time; it may be handed to another.
#ifndef PEN_BASE_STATUS_H
#define PEN_BASE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEN_NODISCARD __attribute__((warn_unused_result))
#define PEN_PRINTF(format_index, first_index)                                                      \
    __attribute__((format(printf, format_index, first_index)))

typedef enum pen_status_code {
    PEN_CODE_OK = 0,
    PEN_INVALID_INPUT, // a file, flag or argument of the user's is wrong
    PEN_NOT_FOUND,     // a name, file or entry is not there
    PEN_UNSUPPORTED,   // well-formed, but not something Penstock can do
    PEN_DOES_NOT_FIT,  // no placement or memory plan within the limits
    PEN_OUT_OF_MEMORY, // the system refused memory
    PEN_IO,            // the system refused an operation on a file or socket
    PEN_CORRUPT,       // bytes contradict themselves: truncated, bad checksum
    PEN_UNAVAILABLE,   // a peer is not there now; worth trying again
    PEN_DEADLINE,      // waited as long as was allowed
    PEN_CANCELLED,     // somebody asked to stop
    PEN_NOT_FINITE,    // a loss or gradient is infinite or not a number
    PEN_INTERNAL,      // our own mistake
    PEN_NO_STORAGE,    // a disk or place is full, away or read-only now; worth trying later
} pen_status_code;

typedef struct pen_error_record *pen_status;
#define PEN_OK ((pen_status)0)

// A new error: pen_error(PEN_NOT_FOUND, "no op is called '%s'", name). Never returns PEN_OK: when
// memory is out it returns the static out-of-memory error.
#define pen_error(code, ...)                                                                       \
    pen_status_is_error(pen_error_at(__FILE__, __LINE__, (code), __VA_ARGS__))
PEN_NODISCARD pen_status pen_error_at(const char *file, int line, pen_status_code code,
                                      const char *format, ...) PEN_PRINTF(4, 5);

// Tells compilers and analysers that `status` is an error. Returns it.
PEN_NODISCARD static inline pen_status pen_status_is_error(pen_status status) {
    if (status == PEN_OK) __builtin_unreachable();
    return status;
}

// The error for a refused allocation. Static; releasing it does nothing.
#define pen_error_out_of_memory() pen_status_is_error(pen_error_get_out_of_memory())
PEN_NODISCARD pen_status pen_error_get_out_of_memory(void);

// Adds the position in the user's file, unless one is known already. `line` and `column` count
// from 1; 0 means unknown. Returns `status`. Does nothing to PEN_OK.
PEN_NODISCARD pen_status pen_status_at_position(pen_status status, const char *file, uint32_t line,
                                                uint32_t column);

// Adds a line of context: "while inferring shapes". Returns `status`. Does nothing to PEN_OK.
PEN_NODISCARD pen_status pen_status_add_context(pen_status status, const char *format, ...)
    PEN_PRINTF(2, 3);

// Both, where either may be PEN_OK: the code is `first`'s; both messages are kept.
PEN_NODISCARD pen_status pen_status_join(pen_status first, pen_status second);

// Drops an error. `reason` says, to the reader of the code, why that is right.
void pen_status_ignore(pen_status status, const char *reason);

pen_status_code pen_status_get_code(pen_status status);

// The name of a code in lower case: "not found".
const char *pen_status_code_name(pen_status_code code);

// The whole text, lines ended by '\n':
//   mlp.yaml:14:5: error: matmul 'fc2': inner dimensions differ, [32,512] x [256,10]
//     while inferring shapes
// Writes at most `size` bytes with the terminating 0 and returns the length of the whole text.
size_t pen_status_format(pen_status status, char *out_text, size_t size);

// The message alone, without position or context. Valid as long as the error. "" for PEN_OK.
const char *pen_status_message(pen_status status);

// The user's file that the error is about, with line and column (0: not known); NULL: none. Valid
// as long as the error.
const char *pen_status_position(pen_status status, uint32_t *out_line, uint32_t *out_column);

// The process exit code that stands for `status` (DESIGN: 0 ok, 1 internal, 2 usage, 3 spec,
// 4 model, 5 does not fit, 6 peer lost or superseded, 7 verification failed, 8 not finite,
// 9 disk or place: try again later).
// INVALID_INPUT and its kin depend on what was being read, so the command chooses `input_exit_code`
// for them; but those with a line in the user's file are about what is written there: 3.
int pen_status_exit_code(pen_status status, int input_exit_code);

// Returns early with an error. For functions that own nothing but arena memory.
#define PEN_TRY(expression)                                                                        \
    do {                                                                                           \
        const pen_status pen_try_status = (expression);                                            \
        if (pen_try_status != PEN_OK) return pen_try_status;                                       \
    } while (0)

// Our own mistakes, never the world's. On in release builds: prints the claim and aborts.
#define PEN_ASSERT(claim) ((claim) ? (void)0 : pen_assert_failed(__FILE__, __LINE__, #claim))
// A place that is never reached, as `claim` says.
#define PEN_NEVER(claim) pen_assert_failed(__FILE__, __LINE__, claim)
// Inside kernels: debug builds only.
#ifdef PEN_DEBUG
#define PEN_ASSERT_HOT(claim) PEN_ASSERT(claim)
#else
#define PEN_ASSERT_HOT(claim) ((void)0)
#endif
__attribute__((noreturn)) void pen_assert_failed(const char *file, int line, const char *claim);
// Called once by the first assertion that fails, before the process is aborted: for leaving what
// helps to find out why. May be called on any thread, in any state. NULL: nothing.
void pen_assert_set_hook(void (*hook)(const char *claim));

#ifdef __cplusplus
}
#endif

#endif // PEN_BASE_STATUS_H
