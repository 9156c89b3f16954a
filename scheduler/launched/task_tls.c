#include "scheduler/launched/task_tls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/transport/grpc/certificates.h"

#define TLS_DAYS 365

// Made beside and renamed: of several tasks that do so at once one is first, and the others take
// what is there.
static pen_status tls_make_authority(const pen_task_folder *folder, uint64_t incarnation,
                                     const char *path, pen_arena *arena) {
    const pen_certificates *made;
    const char *beside;
    if (access(path, F_OK) == 0) return PEN_OK;
    PEN_TRY(pen_arena_format(arena, &beside, "%s/tls.%016" PRIx64, folder->path, incarnation));
    const pen_certificates_request request = {.folder = beside, .days = TLS_DAYS};
    PEN_TRY(pen_certificates_make(&request, arena, &made));
    if (rename(beside, path) == 0) return PEN_OK;
    const int why = errno;
    for (size_t i = 0; i < made->count; i++) {
        (void)unlink(made->files[i].certificate);
        (void)unlink(made->files[i].key);
    }
    const char *key;
    PEN_TRY(pen_arena_format(arena, &key, "%s/ca.key", beside));
    (void)unlink(key);
    (void)unlink(made->authority);
    (void)rmdir(beside);
    if (why == ENOTEMPTY || why == EEXIST) return PEN_OK;
    return pen_error(PEN_IO, "cannot make '%s': %s", path, strerror(why));
}

pen_status pen_task_tls_make(const pen_task_folder *folder, const char *host, uint64_t incarnation,
                             pen_arena *arena, pen_transport_tls *out_tls) {
    const pen_certificates *made;
    const char *authority, *own;
    PEN_TRY(pen_arena_format(arena, &authority, "%s/tls", folder->path));
    PEN_TRY(pen_arena_format(arena, &own, "%s/%016" PRIx64, authority, incarnation));
    PEN_TRY(tls_make_authority(folder, incarnation, authority, arena));
    const pen_certificates_request request = {
        .folder = own, .authority = authority, .hosts = &host, .host_count = 1, .days = TLS_DAYS};
    PEN_TRY(pen_certificates_make(&request, arena, &made));
    *out_tls = (pen_transport_tls){
        .ca = made->authority, .cert = made->files[0].certificate, .key = made->files[0].key};
    return PEN_OK;
}
