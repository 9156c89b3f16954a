#include "scheduler/transport/grpc/grpc_ask.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "scheduler/transport/grpc/address.h"
#include "scheduler/transport/grpc/failure_words.h"
#include "scheduler/transport/grpc/grpc_settings.h"
#include "scheduler/transport/grpc/grpc_tls.h"
#include "scheduler/transport/grpc/health_format.h"

#define ASK_TEXT_BYTES 512

typedef struct ask_answer {
    grpc_metadata_array head, trailer;
    grpc_byte_buffer *reply;
    grpc_status_code code;
    grpc_slice details;
} ask_answer;

// Starts the whole call as one batch, and waits for its end, which its deadline brings.
static void ask_run(grpc_call *call, grpc_completion_queue *queue, ask_answer *answer) {
    grpc_byte_buffer *request = grpc_raw_byte_buffer_create(NULL, 0); // of the server as a whole
    const grpc_op ops[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = request},
        {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
        {.op = GRPC_OP_RECV_INITIAL_METADATA,
         .data.recv_initial_metadata.recv_initial_metadata = &answer->head},
        {.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &answer->reply},
        {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
         .data.recv_status_on_client = {.trailing_metadata = &answer->trailer,
                                        .status = &answer->code,
                                        .status_details = &answer->details}},
    };
    const grpc_call_error error =
        grpc_call_start_batch(call, ops, sizeof ops / sizeof *ops, call, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
    (void)grpc_completion_queue_pluck(queue, call, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
    grpc_byte_buffer_destroy(request);
}

static bool ask_is_serving(grpc_byte_buffer *reply) {
    grpc_byte_buffer_reader reader;
    const uint8_t serving[] = {PEN_HEALTH_STATUS_KEY, PEN_HEALTH_SERVING};
    if (reply == NULL || grpc_byte_buffer_length(reply) != sizeof serving) return false;
    if (grpc_byte_buffer_reader_init(&reader, reply) == 0) return false;
    grpc_slice slice = grpc_byte_buffer_reader_readall(&reader);
    const bool is_serving = memcmp(GRPC_SLICE_START_PTR(slice), serving, sizeof serving) == 0;
    grpc_slice_unref(slice);
    grpc_byte_buffer_reader_destroy(&reader);
    return is_serving;
}

// Whether a link would be made with who answered: its certificate may have been taken back.
static bool ask_is_trusted(pen_grpc_credentials *credentials, grpc_call *call, char *out_why) {
    const pen_status status = pen_grpc_tls_check_revoked(credentials, call);
    if (status == PEN_OK) return true;
    snprintf(out_why, ASK_TEXT_BYTES, "%s", pen_status_message(status));
    pen_status_ignore(status, "it is told as the reason");
    return false;
}

// One attempt over a channel of its own. *out_why: why it failed.
static bool ask_once(const char *address, pen_grpc_credentials *credentials,
                     const grpc_channel_args *settings, double seconds, char *out_why) {
    grpc_completion_queue *queue = grpc_completion_queue_create_for_pluck(NULL);
    grpc_channel *channel =
        grpc_channel_create(address, pen_grpc_credentials_of_channels(credentials), settings);
    const gpr_timespec end = gpr_time_add(
        gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis((int64_t)(seconds * 1e3), GPR_TIMESPAN));
    grpc_call *call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, queue,
                                 grpc_slice_from_static_string(PEN_HEALTH_METHOD), NULL, end, NULL);
    ask_answer answer = {.details = grpc_empty_slice()};
    grpc_metadata_array_init(&answer.head);
    grpc_metadata_array_init(&answer.trailer);
    ask_run(call, queue, &answer);
    bool is_serving = answer.code == GRPC_STATUS_OK && ask_is_serving(answer.reply);
    size_t length = GRPC_SLICE_LENGTH(answer.details);
    if (length >= ASK_TEXT_BYTES) length = ASK_TEXT_BYTES - 1;
    memcpy(out_why, GRPC_SLICE_START_PTR(answer.details), length);
    out_why[length] = '\0';
    (void)pen_text_clean(out_why, false); // another process wrote it
    if (answer.code == GRPC_STATUS_OK) snprintf(out_why, ASK_TEXT_BYTES, "it does not serve");
    is_serving = is_serving && ask_is_trusted(credentials, call, out_why);
    if (answer.reply != NULL) grpc_byte_buffer_destroy(answer.reply);
    grpc_slice_unref(answer.details);
    grpc_metadata_array_destroy(&answer.head);
    grpc_metadata_array_destroy(&answer.trailer);
    grpc_call_unref(call);
    grpc_channel_destroy(channel);
    grpc_completion_queue_shutdown(queue);
    grpc_completion_queue_destroy(queue);
    return is_serving;
}

// Who asks from the same host shows the same certificate, which need not be for "127.0.0.1": so
// that name is expected there first.
static pen_status ask_with(const char *address, pen_grpc_credentials *credentials, double seconds) {
    pen_grpc_settings settings, own;
    char why[ASK_TEXT_BYTES] = "";
    grpc_resource_quota *quota = grpc_resource_quota_create("ask");
    const double end = pen_clock_seconds() + seconds;
    pen_grpc_settings_fill(&settings, false, quota);
    bool is_serving = false;
    if (credentials->own_name[0] != '\0') {
        pen_grpc_settings_expect(&own, &settings, credentials->own_name);
        is_serving = ask_once(address, credentials, &own.list, seconds, why);
    }
    const double left = end - pen_clock_seconds();
    if (!is_serving && left > 0) {
        is_serving = ask_once(address, credentials, &settings.list, left, why);
    }
    grpc_resource_quota_unref(quota);
    if (is_serving) return PEN_OK;
    const char *words = pen_failure_words(why, credentials->paths[0] != NULL);
    return pen_error(PEN_UNAVAILABLE, "%s does not take links: %s", address,
                     words == NULL ? why : words);
}

pen_status pen_grpc_ask(const char *address, const pen_transport_tls *tls, double seconds) {
    pen_address where;
    pen_grpc_credentials credentials;
    PEN_TRY(pen_address_read(address, &where));
    grpc_init();
    pen_status status = pen_grpc_credentials_create(tls, &credentials);
    if (status == PEN_OK) {
        status = ask_with(where.text, &credentials, seconds);
        pen_grpc_credentials_destroy(&credentials);
    }
    grpc_shutdown_blocking();
    return status;
}

const char *pen_grpc_version(void) {
    return grpc_version_string();
}
