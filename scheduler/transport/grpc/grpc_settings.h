// The settings of gRPC's channels and servers, in one table.
#ifndef PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SETTINGS_H
#define PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SETTINGS_H

#include <grpc/grpc.h>

#define PEN_GRPC_SETTING_LIMIT 32 // and one of pen_grpc_settings_expect

typedef struct pen_grpc_settings {
    grpc_arg args[PEN_GRPC_SETTING_LIMIT + 1];
    grpc_channel_args list; // of them, for grpc_channel_create and grpc_server_create
} pen_grpc_settings;

// Of servers, or of channels. `quota` is borrowed.
void pen_grpc_settings_fill(pen_grpc_settings *settings, int is_server, grpc_resource_quota *quota);

// The same for a channel whose other end's certificate must be for `name`, wherever it is. Borrows
// both.
void pen_grpc_settings_expect(pen_grpc_settings *settings, const pen_grpc_settings *from,
                              const char *name);

#endif // PEN_SCHEDULER_TRANSPORT_GRPC_GRPC_SETTINGS_H
