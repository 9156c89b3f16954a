#include "scheduler/protocol/message.h"

#include "base/limits.h"
#include "base/text.h"

#define ROW(kind, number, member, ...)                                                             \
    PEN_RECORD_ROW(kind, number, #member, pen_message, member, __VA_ARGS__)
// What is counted on: never near the end of its numbers.
#define COUNT(number, member, ...)                                                                 \
    ROW(NUMBER, number, member, __VA_ARGS__, .limit = PEN_COUNTER_LIMIT)
#define NAMED(kind, number, name, member, ...)                                                     \
    PEN_RECORD_ROW(kind, number, name, pen_message, member, __VA_ARGS__)
#define BLOCK(number, name, ...)                                                                   \
    PEN_RECORD_BYTES_ROW(number, name, pen_message, bytes, bytes_length, __VA_ARGS__,              \
                         .limit = PEN_MESSAGE_PART_LIMIT)

static const pen_record_field hello_fields[] = {
    ROW(NUMBER, 1, worker, "0: any"),
    ROW(TEXT, 2, build, "build, isa, address: at most 127 bytes"),
    ROW(TEXT, 3, isa, "kernel level and libraries"),
    ROW(NUMBER, 4, plan_hash, "0: none yet"),
    ROW(NUMBER, 5, device_count, "that it can run, 0: any"),
    ROW(TEXT, 6, address, "where it takes links"),
    ROW(NUMBER, 7, memory_bytes, "that its process may use, 0: not known"),
    NAMED(TEXT, 8, "store", text, "the folder beneath which it writes shards; empty: none"),
    NAMED(NUMBER, 9, "cores", count,
          "that its process may use, 0: not known, or the coordinator's own process"),
};
static const pen_record_field refused_fields[] = {
    ROW(NUMBER, 1, code, NULL),
    ROW(TEXT, 2, text, "at most 1023 bytes"),
};
static const pen_record_field assign_fields[] = {
    ROW(NUMBER, 1, worker, NULL),
    ROW(NUMBER, 2, target_incarnation, "of whom it is meant for"),
    ROW(NUMBER, 3, plan_hash, NULL),
    COUNT(4, byte_count, "of the description"),
    NAMED(NUMBER, 5, "lease_nanoseconds", clock,
          "of silence, after which the worker leaves; 0: never"),
    NAMED(TEXT, 6, "folders", text,
          "that are saved to, as the coordinator calls them, a line each; at most 1023 bytes"),
    ROW(NUMBER, 7, mark,
        "a file .penstock-MARK, of 16 hexadecimal digits, is in the first; one of MARK + 1 in "
        "the second"),
};
static const pen_record_field ready_fields[] = {
    NAMED(NUMBER, 1, "folders", number, "bits: those of the assignment that are seen"),
    NAMED(TEXT, 2, "identity", text,
          "on which numbers depend besides build and isa, a line for each kind of device that says "
          "it; at most 1023 bytes"),
    BLOCK(3, "lacks", "what its devices could not take into use, and why: a line each, for people"),
};
static const pen_record_field round_fields[] = {
    COUNT(1, round, "numbered one after another"),
    ROW(NUMBER, 2, form, NULL),
    ROW(NUMBER, 3, count, "microbatches"),
    ROW(NUMBER, 4, updates, NULL),
    ROW(NUMBER, 5, continues, "adds to the gradients of the round before"),
    COUNT(6, step, "of the training, from 1"),
    ROW(FIXED, 7, learning_rate, NULL, .is_real = true),
    COUNT(8, first_microbatch, "of the step, before this round"),
    ROW(FIXED, 9, value,
        "the gradient of a microbatch's loss: its share of the step's examples, scaled",
        .is_real = true),
    COUNT(10, epoch, "whose order workers read in that read by themselves"),
    COUNT(11, first_example, "of the epoch's order, that the round begins with"),
    COUNT(12, step_microbatches, "that the step has in all its rounds"),
    COUNT(13, update, "of the optimizer, from 1"),
    ROW(FIXED, 14, unscale, "that gradients are multiplied by where the loss is scaled",
        .is_real = true),
};
static const pen_record_field go_fields[] = {
    COUNT(1, round, NULL),
    ROW(FIXED, 2, order, "of lanes that come as they come: four bits each, the first the lowest"),
};
static const pen_record_field loss_fields[] = {
    COUNT(1, round, NULL),
    ROW(NUMBER, 2, form, NULL),
    ROW(NUMBER, 3, microbatch, NULL),
    ROW(NUMBER, 4, stage, NULL),
    ROW(NUMBER, 5, device, "of the whole run"),
    ROW(FIXED, 6, value, "twice the same, or the run ends", .is_real = true),
    ROW(NUMBER, 7, correct_count, NULL),
    ROW(NUMBER, 8, target_count, NULL),
    PEN_RECORD_LIST_ROW(ARRAY, FIXED, 9, "terms", pen_message, terms, term_count,
                        "losses one by one, where there are several; then of metrics",
                        .limit = PEN_TERMS_LIMIT, .is_real = true),
    ROW(NUMBER, 10, made, "bits: terms that the stage makes"),
};
static const pen_record_field round_done_fields[] = {
    COUNT(1, round, NULL),
    BLOCK(2, "bytes", "figures of the devices"),
};
static const pen_record_field credit_fields[] = {
    ROW(NUMBER, 1, form, NULL),
    ROW(NUMBER, 2, channel, NULL),
    COUNT(3, sequence, "all frames below are consumed"),
};
static const pen_record_field pull_fields[] = {
    ROW(NUMBER, 1, frame_kind, "Frame.Kind: TENSOR or BLOB"),
    ROW(NUMBER, 2, number, NULL),
    COUNT(3, offset, "in bytes"),
    COUNT(4, byte_count, NULL),
    COUNT(5, sequence, "that the frame shall have"),
};
static const pen_record_field ask_fields[] = {
    ROW(NUMBER, 1, number, NULL),
    COUNT(2, offset, NULL),
};
static const pen_record_field part_fields[] = {
    ROW(NUMBER, 1, number, NULL),
    COUNT(2, offset, NULL),
    COUNT(3, byte_count, "in all"),
    BLOCK(4, "bytes", "at most 512 KiB"),
};
static const pen_record_field pong_fields[] = {
    COUNT(1, sequence, NULL),
    ROW(NUMBER, 2, clock, "nanoseconds, at the sender; the ping's"),
    ROW(NUMBER, 3, clock_here, NULL),
};
static const pen_record_field fail_fields[] = {
    ROW(NUMBER, 1, code, NULL),
    ROW(TEXT, 2, text, "at most 1023 bytes"),
    ROW(NUMBER, 3, device, "of the whole run"),
};
static const pen_record_field stopped_fields[] = {
    ROW(TEXT, 1, text, "what devices waited for, those that compute first"),
    NAMED(NUMBER, 2, "computes", number, "1: one does, so that the run is not left yet"),
};
static const pen_record_field taken_fields[] = {COUNT(1, sequence, "of the frame")};
static const pen_record_field beat_fields[] = {
    ROW(NUMBER, 1, state, "0 idle, 1 greeted, 2 pulling, 3 loading, 4 running, 5 leaving"),
    COUNT(2, step, "the last one done"),
    ROW(NUMBER, 3, step_nanoseconds, "that it took"),
    NAMED(NUMBER, 4, "task_nanoseconds", clock,
          "for which the longest task runs; 0: nothing computes"),
};
static const pen_record_field snapshot_fields[] = {
    COUNT(1, step, "that were done"),
    ROW(NUMBER, 2, worker, "whose shard it is: part of the shard's name"),
    NAMED(TEXT, 3, "folder", text,
          "where shards go, as the coordinator calls it; at most 1023 bytes"),
    ROW(NUMBER, 4, is_local, "it is a name beneath the worker's own folder, and to be made"),
    COUNT(5, sequence, "of the order, from 1 on; one that came before is dropped"),
    ROW(NUMBER, 6, mark, "as in an assignment"),
};
static const pen_record_field committed_fields[] = {COUNT(1, step, NULL)};
static const pen_record_field snapped_fields[] = {
    COUNT(1, step, NULL),
    COUNT(2, sequence, "of the order"),
};
static const pen_record_field shard_fields[] = {
    COUNT(1, step, NULL),
    ROW(NUMBER, 2, code, "0: the shard is durable"),
    ROW(TEXT, 3, text, "why not; at most 1023 bytes"),
    BLOCK(4, "summary", "its name, bytes and checksums; at most 512 KiB"),
    COUNT(5, sequence, "of the order"),
};
static const pen_record_field survey_fields[] = {
    COUNT(1, sequence, NULL),
    ROW(NUMBER, 2, number, "0 rates, 1 a node, 2 cpu, 3 load, 4 send, 5 call"),
    ROW(NUMBER, 3, device, "of the whole run"),
    ROW(NUMBER, 4, node, "of its part"),
    NAMED(NUMBER, 5, "nanoseconds", clock, "to repeat it for"),
    ROW(NUMBER, 6, worker, "that is sent to"),
    ROW(NUMBER, 7, count, "threads that compute"),
};
static const pen_record_field surveyed_fields[] = {
    COUNT(1, sequence, "of what was asked"),
    ROW(NUMBER, 2, code, "0: it was measured"),
    ROW(TEXT, 3, text, "why not, or what the device could not take into use; at most 1023 bytes"),
    PEN_RECORD_LIST_ROW(ARRAY, FIXED, 4, "figures", pen_message, terms, term_count, NULL,
                        .limit = PEN_TERMS_LIMIT, .is_real = true),
};

static const pen_record_field gradient_fields[] = {
    COUNT(1, round, NULL),
    ROW(NUMBER, 2, microbatch, NULL),
    ROW(NUMBER, 3, stage, NULL),
};

static const pen_record_field audit_fields[] = {
    COUNT(1, round, NULL),
    ROW(NUMBER, 2, device, "of the whole run"),
    ROW(NUMBER, 3, stage, NULL),
    ROW(NUMBER, 4, microbatch, NULL),
};
static const pen_record_field recompute_fields[] = {
    COUNT(1, sequence, "of the question"),
    ROW(NUMBER, 2, device, "whose part it is, of the whole run"),
    COUNT(3, offset, "in bytes"),
    COUNT(4, byte_count, "in all"),
    BLOCK(5, "bytes", "at most 512 KiB"),
};
static const pen_record_field recomputed_fields[] = {
    COUNT(1, sequence, "of the question"),
    COUNT(2, offset, "bytes that are here"),
    ROW(NUMBER, 3, code, "0: all is well so far"),
    ROW(TEXT, 4, text, "why not; at most 1023 bytes"),
    ROW(FIXED, 5, value, "the digest, when all bytes are here"),
};

static const pen_record_field seen_fields[] = {
    COUNT(1, round, NULL),
    ROW(NUMBER, 2, microbatch, NULL),
    ROW(NUMBER, 3, number, "which of the values of the part"),
    COUNT(4, offset, "in bytes"),
    COUNT(5, byte_count, "in all"),
    BLOCK(6, "bytes", "at most 512 KiB"),
};

// One of the kinds; `...` are its fields.
#define BODY(no, value, key, title, words, ...)                                                    \
    {                                                                                              \
        .number = (no), .kind = PEN_RECORD_MESSAGE, .name = (key), .help = (words),                \
        .is_choice = true, .chosen = PEN_MESSAGE_##value, .record = &(const pen_record) {          \
            .name = (title), .size = sizeof(pen_message), __VA_ARGS__                              \
        }                                                                                          \
    }
#define FIELDS(kind) PEN_RECORD_FIELDS(kind##_fields)
#define HEADER_COUNT 4

static const pen_record_field control_fields[HEADER_COUNT + PEN_MESSAGE_KIND_COUNT] = {
    ROW(NUMBER, 1, protocol, "version: 1"),
    ROW(TEXT, 2, job, "at most 63 bytes"),
    ROW(NUMBER, 3, generation, "grows with each new start; HELLO: 0, or the last one known",
        .limit = PEN_GENERATION_LIMIT),
    ROW(NUMBER, 4, incarnation, "of the sender's process"),
    BODY(10, HELLO, "hello", "Hello", "worker: who I am and what I run", FIELDS(hello)),
    BODY(11, REFUSED, "refused", "Refused", "coordinator: why I do not take you", FIELDS(refused)),
    BODY(12, ASSIGN, "assign", "Assign",
         "coordinator: be this worker; pull your description (BLOB 0)", FIELDS(assign)),
    BODY(13, READY, "ready", "Ready", "worker: loaded", FIELDS(ready)),
    BODY(14, START, "start", "Start", "coordinator: all are loaded", .field_count = 0),
    BODY(15, ROUND, "round", "Round", "coordinator: run a round", FIELDS(round)),
    BODY(16, GO, "go", "Go", "coordinator: its losses are finite, update", FIELDS(go)),
    BODY(17, LOSS, "loss", "Loss", "worker: of a microbatch", FIELDS(loss)),
    BODY(18, ROUND_DONE, "round_done", "RoundDone", "worker", FIELDS(round_done)),
    BODY(19, CREDIT, "credit", "Credit", "reader of a channel to its maker", FIELDS(credit)),
    BODY(20, PULL, "pull", "Pull", "receiver to holder: send these bytes, as a frame",
         FIELDS(pull)),
    BODY(21, OFFER, "offer", "Offer", "holder to receiver: pull these", .fields = pull_fields,
         .field_count = 4),
    BODY(22, ASK, "ask", "Ask", "coordinator: send me a trace or report", FIELDS(ask)),
    BODY(23, PART, "part", "Part", "worker: a part of it", FIELDS(part)),
    BODY(24, PING, "ping", "Ping", NULL, .fields = pong_fields, .field_count = 2),
    BODY(25, PONG, "pong", "Pong", NULL, FIELDS(pong)),
    BODY(26, FAIL, "fail", "Fail", "either: I cannot go on", FIELDS(fail)),
    BODY(27, STOP, "stop", "Stop", "coordinator", .field_count = 0),
    BODY(28, STOPPED, "stopped", "Stopped", "worker", FIELDS(stopped)),
    BODY(29, TAKEN, "taken", "Taken", "worker: a piece of a tensor came whole", FIELDS(taken)),
    BODY(30, BEAT, "beat", "Beat", "worker: I am here", FIELDS(beat)),
    BODY(31, SNAPSHOT, "snapshot", "Snapshot",
         "coordinator: copy your tensors aside, write them to a shard", FIELDS(snapshot)),
    BODY(32, SNAPPED, "snapped", "Snapped", "worker: they are copied", FIELDS(snapped)),
    BODY(33, SHARD, "shard", "Shard", "worker: the shard is durable, or why not", FIELDS(shard)),
    BODY(34, COMMITTED, "committed", "Committed",
         "coordinator: the checkpoint is whole and durable", FIELDS(committed)),
    BODY(35, SURVEY, "survey", "Survey", "coordinator: measure this", FIELDS(survey)),
    BODY(36, SURVEYED, "surveyed", "Surveyed", "worker: the figures, or why there are none",
         FIELDS(surveyed)),
    BODY(37, GRADIENT, "gradient", "Gradient", "worker: of a microbatch, by a stage, is made",
         FIELDS(gradient)),
    BODY(38, AUDIT, "audit", "Audit", "coordinator: keep what you compute of this", FIELDS(audit)),
    BODY(39, RECOMPUTE, "recompute", "Recompute", "coordinator: compute this again, in parts",
         FIELDS(recompute)),
    BODY(40, RECOMPUTED, "recomputed", "Recomputed",
         "worker: so much is here; or what it came to, or why to nothing", FIELDS(recomputed)),
    BODY(41, SEEN, "seen", "Seen", "worker: a piece of a value that the coordinator sees",
         FIELDS(seen)),
};

const pen_record pen_message_record = {
    .name = "ControlMessage",
    .help = "Says one thing. Another generation than the receiver's, or another process than the\n"
            "one it knows (incarnation), is passed over; so is what was said before.",
    PEN_RECORD_FIELDS(control_fields),
    .size = sizeof(pen_message),
    .chosen_offset = offsetof(pen_message, kind),
    .chosen_none = PEN_MESSAGE_KIND_COUNT,
};

const char *pen_message_kind_name(pen_message_kind kind) {
    PEN_ASSERT((uint32_t)kind < PEN_MESSAGE_KIND_COUNT);
    return control_fields[HEADER_COUNT + kind].name;
}

size_t pen_message_encode(const pen_message *message, void *out_bytes, size_t size) {
    PEN_ASSERT((uint32_t)message->kind < PEN_MESSAGE_KIND_COUNT);
    PEN_ASSERT(message->bytes_length == 0 || message->bytes != NULL);
    return pen_record_encode(&pen_message_record, message, out_bytes, size);
}

static pen_status message_read(const void *bytes, size_t length, pen_message *message) {
    PEN_TRY(pen_record_decode(&pen_message_record, bytes, length, NULL, message));
    if (message->protocol != PEN_PROTOCOL_VERSION) {
        const uint32_t protocol = message->protocol;
        *message = (pen_message){.protocol = protocol};
        return pen_error(PEN_UNSUPPORTED, "a message of protocol version %u, here is %u", protocol,
                         PEN_PROTOCOL_VERSION);
    }
    if ((uint32_t)message->kind < PEN_MESSAGE_KIND_COUNT) return PEN_OK;
    return pen_error(PEN_CORRUPT, "a message that says nothing");
}

// What is shown is cleaned where it comes in, so that nobody has to think of it later. Folders that
// the coordinator names are none of these: they are places, whose names may be any bytes.
static void message_clean(pen_message *message) {
    (void)pen_text_clean(message->build, false);
    (void)pen_text_clean(message->isa, false);
    (void)pen_text_clean(message->address, false);
    const bool is_place =
        message->kind == PEN_MESSAGE_SNAPSHOT || message->kind == PEN_MESSAGE_ASSIGN;
    if (!is_place) (void)pen_text_clean(message->text, true);
}

pen_status pen_message_decode(const void *bytes, size_t length, pen_message *out_message) {
    *out_message = (pen_message){0};
    const pen_status status = message_read(bytes, length, out_message);
    message_clean(out_message);
    return pen_status_add_context(status, "while reading a control message of %zu bytes", length);
}
