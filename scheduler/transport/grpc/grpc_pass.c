#include "scheduler/transport/grpc/grpc_gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/transport/admit/local_host.h"
#include "scheduler/transport/grpc/grpc_link.h"
#include "scheduler/transport/grpc/grpc_server.h"
#include "scheduler/transport/wire_code.h"

// PASS_TOKEN: of a call, "once 0123…" or "file …" (token_file.h); PASS_PROOF: of its answer.
#define PASS_TOKEN "penstock-token"
#define PASS_PROOF "penstock-proof"
#define PASS_ONCE "once "
#define PASS_FILE "file "
#define PASS_ASK_SECONDS 5.0    // for the other process to answer
#define PASS_LOOK_SECONDS 0.001 // between two looks for the answer
#define PASS_BUSY_SECONDS 0.02  // before one that has no time is asked again
#define GATE_LOOK_SECONDS 0.1   // at least, between two looks for whose process a caller is

static double pass_time_of_day(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// The text of one key. False: it is not there, or too long
static bool pass_find(const grpc_metadata_array *metadata, const char *key, char *out_text,
                      size_t size) {
    for (size_t i = 0; i < metadata->count; i++) {
        if (grpc_slice_str_cmp(metadata->metadata[i].key, key) != 0) continue;
        const grpc_slice *value = &metadata->metadata[i].value;
        const size_t length = GRPC_SLICE_LENGTH(*value);
        if (length >= size) return false;
        memcpy(out_text, GRPC_SLICE_START_PTR(*value), length);
        out_text[length] = '\0';
        return true;
    }
    return false;
}

// ---- who calls

static void pass_stay_here(pen_grpc_pass *pass, const char *host, uint16_t port) {
    pass->is_needed = true;
    snprintf(pass->where, sizeof pass->where, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
             port);
}

void pen_grpc_pass_init(pen_grpc_link *link, const pen_address *address) {
    char host[PEN_LOCAL_HOST_BYTES];
    if (pen_grpc_tls_is_used(&link->transport->options.tls)) return;
    if (pen_local_host_is(address->host)) {
        link->pass.is_needed = true;
    } else if (pen_local_host_find(address->host, host)) {
        pass_stay_here(&link->pass, host, address->port);
    }
}

// Whether a call went to this host, with the address that it went to.
static bool pass_stays_here(const pen_grpc_link *link, pen_address *out_address) {
    char text[PEN_ADDRESS_TEXT_LIMIT];
    if (link->call == NULL) return false;
    pen_grpc_server_get_address(link->call, text, sizeof text);
    const pen_status status = pen_address_read(text, out_address);
    const bool is_address = status == PEN_OK;
    pen_status_ignore(status, "there was no connection");
    return is_address && pen_local_host_is(out_address->host);
}

// A name that only a server of names knows may be this host's: the connection tells.
bool pen_grpc_pass_learn(pen_grpc_link *link) {
    pen_address address;
    if (link->pass.is_needed || pen_grpc_tls_is_used(&link->transport->options.tls)) return false;
    if (!pass_stays_here(link, &address)) return false;
    pass_stay_here(&link->pass, address.host, address.port);
    return true;
}

void pen_grpc_pass_release(pen_grpc_link *link) {
    if (link->pass.socket != 0) close(link->pass.socket - 1);
    link->pass.socket = 0;
}

// Asks each process of this user that may take links there, and no other: one of them is meant. A
// name may stand for several addresses, where others may listen: then the one asked is called.
// Whether one of them has no time now.
static bool pass_ask(pen_grpc_pass *pass, const char *link_address) {
    pen_local_way ways[PEN_LOCAL_HOST_LIMIT];
    pen_address address;
    bool is_busy = false;
    const char *where = pass->where[0] != '\0' ? pass->where : link_address;
    const pen_status status = pen_address_read(where, &address);
    PEN_ASSERT(status == PEN_OK); // it was read when the link was made
    const size_t count = pen_local_host_ways(address.host, ways);
    memcpy(pass->address, pass->where, sizeof pass->where);
    for (size_t i = 0; i < count && pass->socket == 0 && !is_busy; i++) {
        pass->socket = pen_ring_door_ask(ways[i].listens, address.port, &is_busy) + 1;
        if (pass->socket == 0 || ways[i].calls[0] == '\0') continue;
        snprintf(pass->address, sizeof pass->address,
                 strchr(ways[i].calls, ':') != NULL ? "[%s]:%u" : "%s:%u", ways[i].calls,
                 address.port);
    }
    return is_busy;
}

// Without a token from the process itself, the file speaks. Never to another host: who listens
// there could hand the proof on to a process at loopback that has the same file and port.
static void pass_use_file(pen_grpc_link *link) {
    pen_grpc_pass *pass = &link->pass;
    const pen_token_file *file = &link->transport->gate.file;
    char proof[PEN_TOKEN_PROOF_BYTES];
    pen_address address;
    pen_grpc_pass_release(link);
    memcpy(pass->address, pass->where, sizeof pass->where);
    if (!file->is_given) return;
    const pen_status status = pen_address_read(link->address, &address);
    PEN_ASSERT(status == PEN_OK);
    if (pen_token_file_prove(file, address.port, pass_time_of_day(), proof, pass->answer)) {
        snprintf(pass->text, sizeof pass->text, PASS_FILE "%s", proof);
    }
}

static void pass_write_token(pen_grpc_pass *pass, const uint8_t token[PEN_RING_TOKEN_BYTES]) {
    size_t length = (size_t)snprintf(pass->text, sizeof pass->text, PASS_ONCE);
    for (uint32_t i = 0; i < PEN_RING_TOKEN_BYTES; i++)
        length += (size_t)snprintf(pass->text + length, 3, "%02x", token[i]);
}

// A token is asked for anew for each attempt, since each is good for one. Who has too many callers
// turns some away, and they ask again.
bool pen_grpc_pass_is_ready(pen_grpc_link *link, double now) {
    pen_grpc_pass *pass = &link->pass;
    uint8_t token[PEN_RING_TOKEN_BYTES];
    bool is_busy = false;
    if (!pass->is_needed) return true;
    if (!pass->is_asked) {
        pass->is_asked = true;
        pass->text[0] = pass->answer[0] = '\0';
        pass->until = now + PASS_ASK_SECONDS;
    }
    if (pass->socket == 0) is_busy = pass_ask(pass, link->address);
    pen_ring_answer answer = PEN_RING_ANSWER_NONE;
    if (pass->socket != 0) answer = pen_ring_door_hear(pass->socket - 1, token);
    if (answer == PEN_RING_ANSWER_REFUSED) {
        pen_grpc_pass_release(link);
        is_busy = true;
    }
    if ((is_busy || pass->socket != 0) && answer != PEN_RING_ANSWER_TOKEN && now < pass->until) {
        const double pause = is_busy ? PASS_BUSY_SECONDS : PASS_LOOK_SECONDS;
        pen_grpc_link_set_deadline(link, fmin(now + pause, link->give_up_at));
        return false;
    }
    pass->is_asked = false;
    if (answer == PEN_RING_ANSWER_TOKEN) {
        pass_write_token(pass, token);
        pen_grpc_pass_release(link);
    } else {
        pass_use_file(link);
    }
    return true;
}

size_t pen_grpc_pass_metadata(pen_grpc_link *link, grpc_metadata **out_metadata) {
    pen_grpc_pass *pass = &link->pass;
    const char *text = link->is_caller ? pass->text : pass->proof;
    *out_metadata = &pass->metadata;
    if (text[0] == '\0') return 0;
    pass->metadata = (grpc_metadata){
        .key = grpc_slice_from_static_string(link->is_caller ? PASS_TOKEN : PASS_PROOF),
        .value = grpc_slice_from_static_string(text)};
    return 1;
}

// Whether who answers has the token file. It may have taken us for another host, as where ports are
// handed on to a container: then it has answered as to a process of its machine.
static bool pass_is_answered(const pen_grpc_link *link) {
    char found[PEN_TOKEN_ANSWER_BYTES], nearby[PEN_TOKEN_ANSWER_BYTES];
    const char *answer = link->pass.answer;
    if (!pass_find(&link->head, PASS_PROOF, found, sizeof found)) return false;
    if (pen_token_answer_is(answer, found)) return true;
    return pen_token_file_answer_nearby(&link->transport->gate.file, answer, nearby) &&
           pen_token_answer_is(nearby, found);
}

// Anybody on this host may listen at an address where the process that is meant does not.
pen_status pen_grpc_pass_check(const pen_grpc_link *link) {
    const pen_grpc_pass *pass = &link->pass;
    pen_address address;
    if (pen_grpc_tls_is_used(&link->transport->options.tls)) return PEN_OK;
    if (!pass->is_needed && !pass_stays_here(link, &address)) return PEN_OK;
    if (pass->text[0] == '\0') {
        return pen_error(PEN_INVALID_INPUT,
                         "who answers at %s is no process of this user (%u), and asks for no token",
                         link->address, (unsigned)geteuid());
    }
    if (pass->answer[0] == '\0') return PEN_OK; // it has given us the token
    if (pass_is_answered(link)) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT, "who answers at %s does not have our token file",
                     link->address);
}

// ---- who is called

pen_status pen_grpc_gate_init(pen_grpc_gate *gate, const char *token_file) {
    pen_one_time_init(&gate->tokens);
    return pen_token_file_read(token_file, &gate->file);
}

void pen_grpc_gate_deinit(pen_grpc_gate *gate) {
    pen_one_time_deinit(&gate->tokens);
}

// A name is called by the addresses that it stands for as well: the system says what they are.
static pen_status gate_open_doors(pen_grpc *transport, const pen_address *address, uint16_t port) {
    char host[PEN_LOCAL_HOST_BYTES], bound[PEN_RING_LANES_DOORS - 1][PEN_LOCAL_HOST_BYTES];
    pen_local_host_write(address->host, host);
    PEN_TRY(pen_ring_lanes_open_door(transport->lanes, host, port));
    const size_t count = pen_local_host_bound(port, PEN_RING_LANES_DOORS - 1, bound);
    for (size_t i = 0; i < count && !pen_local_host_is_address(host); i++)
        PEN_TRY(pen_ring_lanes_open_door(transport->lanes, bound[i], port));
    return PEN_OK;
}

// A process that nobody of this host could call is of use only to other hosts.
pen_status pen_grpc_gate_open(pen_grpc *transport, const pen_address *address, uint16_t port) {
    pen_grpc_gate *gate = &transport->gate;
    gate->port = port;
    if (pen_grpc_tls_is_used(&transport->options.tls)) return PEN_OK;
    pen_status status = PEN_OK;
    if (transport->lanes == NULL) {
        status = pen_error(PEN_UNAVAILABLE, "%s", gate->failure);
    } else {
        status = gate_open_doors(transport, address, port);
    }
    if (status == PEN_OK) return PEN_OK;
    status = pen_status_add_context(status, "while making a socket that processes of this user "
                                            "get tokens from; a token file does without");
    if (pen_address_is_loopback(address) && !gate->file.is_given) return status;
    pen_log(PEN_LOG_WARNING, "%s", pen_status_message(status));
    pen_status_ignore(status, "other hosts, or those with the token file, can still call");
    return PEN_OK;
}

static bool gate_read_token(const char *text, uint8_t out_token[PEN_ONE_TIME_BYTES]) {
    const char *const digits = "0123456789abcdef";
    if (strlen(text) != (size_t)2 * PEN_ONE_TIME_BYTES) return false;
    for (uint32_t i = 0; i < PEN_ONE_TIME_BYTES; i++) {
        const char *high = strchr(digits, text[2 * i]), *low = strchr(digits, text[2 * i + 1]);
        if (high == NULL || low == NULL) return false;
        out_token[i] = (uint8_t)((high - digits) << 4 | (low - digits));
    }
    return true;
}

// Who shows nothing is another user's, or has begun before we gave out tokens. The list of
// connections is long on some hosts, so that strangers cannot have it read again and again.
static pen_status gate_refuse_stranger(pen_grpc *transport, const char *address) {
    pen_grpc_gate *gate = &transport->gate;
    const double now = pen_clock_seconds();
    const uid_t own = geteuid();
    uid_t user = own;
    bool is_known = false;
    if (now - gate->looked_at >= GATE_LOOK_SECONDS) {
        gate->looked_at = now;
        is_known = pen_local_host_user(address, gate->port, &user);
    }
    if (!is_known || user == own) {
        return pen_error(PEN_UNAVAILABLE,
                         "it shows no token, as calls within one host must: it has no way to the "
                         "socket of user %u; give both sides one file, `penstock worker "
                         "--token-file FILE` and `token_file: FILE` in the job",
                         (unsigned)own);
    }
    return pen_error(PEN_INVALID_INPUT,
                     "user %u calls, and this process belongs to user %u: on one host both must be "
                     "of one user, or have one file, `penstock worker --token-file FILE` and "
                     "`token_file: FILE` in the job",
                     (unsigned)user, (unsigned)own);
}

// Each refusal says which of the reasons it is, for whoever has to mend it.
static pen_status gate_judge_text(pen_grpc *transport, const char *text,
                                  char out_proof[PEN_TOKEN_ANSWER_BYTES]) {
    pen_grpc_gate *gate = &transport->gate;
    uint8_t token[PEN_ONE_TIME_BYTES];
    if (strncmp(text, PASS_FILE, sizeof PASS_FILE - 1) == 0) {
        if (!gate->file.is_given) {
            return pen_error(PEN_INVALID_INPUT,
                             "it proves that it has a token file, and this process has none: "
                             "`penstock worker --token-file FILE`");
        }
        return pen_token_file_judge(&gate->file, &gate->seen, gate->port, pass_time_of_day(),
                                    text + sizeof PASS_FILE - 1, out_proof);
    }
    if (strncmp(text, PASS_ONCE, sizeof PASS_ONCE - 1) == 0 &&
        gate_read_token(text + sizeof PASS_ONCE - 1, token) &&
        pen_one_time_take(&gate->tokens, pen_clock_seconds(), token)) {
        return PEN_OK;
    }
    return pen_error(PEN_UNAVAILABLE,
                     "its token is not one of this process, was used before, or is older than %g s",
                     PEN_ONE_TIME_SECONDS);
}

// The caller may take us for its own host though it is another one to us, as where ports are handed
// on to a container. Who hands on what it was shown on another machine gets no answer of use.
static void gate_answer_nearby(pen_grpc *transport, const char *text,
                               char out_proof[PEN_TOKEN_ANSWER_BYTES]) {
    char answer[PEN_TOKEN_ANSWER_BYTES] = "";
    const pen_status status = gate_judge_text(transport, text, answer);
    const bool is_answered = status == PEN_OK && answer[0] != '\0';
    pen_status_ignore(status, "another host needs no token");
    if (!is_answered || !pen_token_file_answer_nearby(&transport->gate.file, answer, out_proof)) {
        out_proof[0] = '\0';
    }
}

// A call from another host needs nothing.
pen_status pen_grpc_gate_judge(pen_grpc *transport, const char *address,
                               const grpc_metadata_array *metadata,
                               char out_proof[PEN_TOKEN_ANSWER_BYTES]) {
    char text[PEN_GRPC_PASS_BYTES];
    char host[PEN_ADDRESS_TEXT_LIMIT];
    pen_address where;
    out_proof[0] = '\0';
    if (pen_grpc_tls_is_used(&transport->options.tls)) return PEN_OK;
    const pen_status status = pen_address_read(address, &where);
    // what cannot be read is taken for one of this host
    snprintf(host, sizeof host, "%s", status == PEN_OK ? where.host : "localhost");
    pen_status_ignore(status, "it needs a token then");
    const bool is_shown = pass_find(metadata, PASS_TOKEN, text, sizeof text);
    if (pen_local_host_is(host)) {
        return is_shown ? gate_judge_text(transport, text, out_proof)
                        : gate_refuse_stranger(transport, address);
    }
    if (is_shown) gate_answer_nearby(transport, text, out_proof);
    return PEN_OK;
}

// ---- refusing

typedef struct gate_refusal {
    pen_caller caller;
    grpc_call *call;
    pen_grpc_tag tag;
    grpc_metadata mark;
    int was_cancelled;
} gate_refusal;

static void gate_refused(void *owner, bool success) {
    gate_refusal *refusal = owner;
    (void)success; // whether or not the caller is still there
    grpc_call_unref(refusal->call);
    pen_caller_has_ended(refusal->caller);
    pen_memory_free(refusal);
}

// Nothing that the caller sends is read.
void pen_grpc_gate_refuse(pen_caller caller, grpc_call *take_call, pen_status take_reason) {
    const bool may_come_again = pen_status_get_code(take_reason) == PEN_UNAVAILABLE;
    gate_refusal *refusal = pen_memory_allocate(1, sizeof *refusal);
    if (refusal == NULL) {
        (void)grpc_call_cancel(take_call, NULL);
        grpc_call_unref(take_call);
        pen_caller_has_ended(caller);
        pen_status_ignore(take_reason, "it is in the log");
        return;
    }
    grpc_slice text = grpc_slice_from_copied_string(pen_status_message(take_reason));
    pen_status_ignore(take_reason, "the caller is told");
    refusal->caller = caller;
    refusal->call = take_call;
    refusal->tag = (pen_grpc_tag){.done = gate_refused, .owner = refusal};
    refusal->mark = (grpc_metadata){.key = grpc_slice_from_static_string(PEN_GRPC_MARK),
                                    .value = grpc_slice_from_static_string("1")};
    grpc_op ops[3] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
         .data.send_status_from_server = {.status = may_come_again ? GRPC_STATUS_UNAVAILABLE
                                                                   : GRPC_STATUS_PERMISSION_DENIED,
                                          .status_details = &text,
                                          .trailing_metadata_count = 1,
                                          .trailing_metadata = &refusal->mark}},
        {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
         .data.recv_close_on_server.cancelled = &refusal->was_cancelled},
    };
    const grpc_call_error error = grpc_call_start_batch(take_call, ops, 3, &refusal->tag, NULL);
    PEN_ASSERT(error == GRPC_CALL_OK);
    grpc_slice_unref(text);
}
