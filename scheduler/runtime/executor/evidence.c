#include "scheduler/runtime/executor/evidence.h"

#include <string.h>

#include "base/checksum.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "scheduler/runtime/executor/executor_state.h"

#define EVIDENCE_MAGIC 0x65636e6564697665u
#define EVIDENCE_HEAD 4   // words: magic, bytes, digest, checksum of the bytes behind the head
#define EVIDENCE_VALUE 1u // value, bytes, contents: what a value holds
#define EVIDENCE_LIST 2u  // list, context: run it
#define EVIDENCE_VALUE_WORDS 3
#define EVIDENCE_LIST_WORDS 11

// What is known of a value's home.
typedef struct evidence_value {
    bool is_known; // copied, or made by the lists themselves
    bool is_counted;
    uint64_t checksum; // of what was copied, of what persists
} evidence_value;

struct pen_evidence {
    const pen_executor *executor;
    uint64_t microbatch;
    uint32_t list; // that runs
    uint32_t lists_left;
    evidence_value *values; // [value_count]
    uint64_t *words;        // [word_limit]
    uint64_t word_count;
    uint64_t word_limit;
    uint64_t digest;
};

static uint64_t evidence_words(uint64_t bytes) {
    return (bytes + 7) / 8;
}

static uint64_t evidence_mix(uint64_t digest, uint64_t word) {
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 32;
}

static pen_memory_region evidence_region(const pen_executor *executor, pen_value_id value) {
    return executor->plan->values[value.index].region;
}

// Whether a value is there before and after a list runs.
static bool evidence_outlives(const pen_executor *executor, pen_value_id value) {
    const pen_memory_region region = evidence_region(executor, value);
    return region == PEN_MEMORY_PERSISTENT || region == PEN_MEMORY_COPIES ||
           region == PEN_MEMORY_LENT;
}

// What `visit` is called for: each value that a list may find from before it ran. What it reads of
// its own making is in the arena, or is made known by who visits.
typedef pen_status (*evidence_visitor)(pen_evidence *evidence, pen_value_id home);
// In the order of the nodes: what one makes, those after it do not find from before.
static pen_status evidence_visit_inputs(pen_evidence *evidence, uint32_t list,
                                        evidence_visitor visit) {
    const pen_executor *executor = evidence->executor;
    const pen_graph *graph = executor->spec.graph;
    const pen_memory_list *range = &executor->lists[list];
    for (uint32_t p = range->first; p < range->end; p++) {
        const pen_node *node = pen_graph_node(graph, executor->spec.order[p]);
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (!pen_value_is(node->inputs[i])) continue;
            const pen_value_id home = pen_value_home(graph, node->inputs[i]);
            if (evidence_outlives(executor, home)) PEN_TRY(visit(evidence, home));
        }
        for (uint32_t i = 0; i < node->output_count; i++) { // it may be added to
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id home = pen_value_home(graph, node->outputs[i]);
            const pen_memory_region region = evidence_region(executor, home);
            if (region == PEN_MEMORY_PERSISTENT) PEN_TRY(visit(evidence, home));
            evidence->values[home.index].is_known = true;
        }
    }
    return PEN_OK;
}

static const void *evidence_look(const pen_evidence *evidence, pen_value_id home,
                                 uint64_t *out_bytes) {
    *out_bytes = pen_executor_bytes(evidence->executor, home);
    return pen_executor_address(evidence->executor, home, evidence->microbatch);
}

// ---- noting

static pen_status evidence_count_value(pen_evidence *evidence, pen_value_id home) {
    evidence_value *known = &evidence->values[home.index];
    uint64_t bytes;
    const void *memory = evidence_look(evidence, home, &bytes);
    if (known->is_known || known->is_counted || memory == NULL) return PEN_OK;
    known->is_counted = true;
    evidence->word_limit += EVIDENCE_VALUE_WORDS + evidence_words(bytes);
    return PEN_OK;
}

static pen_status evidence_grow(pen_evidence *evidence, uint64_t word_count) {
    if (evidence->word_count + word_count <= evidence->word_limit) return PEN_OK;
    const uint64_t limit = evidence->word_limit + word_count;
    uint64_t *words = pen_memory_allocate_lazily(limit, sizeof *words);
    if (words == NULL) return pen_error_out_of_memory();
    memcpy(words, evidence->words, evidence->word_count * sizeof *words);
    pen_memory_free(evidence->words);
    evidence->words = words;
    evidence->word_limit = limit;
    return PEN_OK;
}

static void evidence_put(pen_evidence *evidence, uint64_t word) {
    PEN_ASSERT(evidence->word_count < evidence->word_limit);
    evidence->words[evidence->word_count++] = word;
}

// Once; and again where another microbatch has changed it since.
static pen_status evidence_copy_value(pen_evidence *evidence, pen_value_id home) {
    evidence_value *known = &evidence->values[home.index];
    const bool persists = evidence_region(evidence->executor, home) == PEN_MEMORY_PERSISTENT;
    uint64_t bytes;
    const void *memory = evidence_look(evidence, home, &bytes);
    if (memory == NULL || (known->is_known && !persists)) return PEN_OK;
    const uint64_t checksum = persists ? pen_checksum_whole(memory, bytes) : 0;
    if (known->is_known && known->checksum == checksum) return PEN_OK;
    PEN_TRY(evidence_grow(evidence, EVIDENCE_VALUE_WORDS + evidence_words(bytes)));
    evidence_put(evidence, EVIDENCE_VALUE);
    evidence_put(evidence, home.index);
    evidence_put(evidence, bytes);
    uint64_t *contents = evidence->words + evidence->word_count;
    if (bytes % 8 != 0) contents[bytes / 8] = 0;
    memcpy(contents, memory, bytes);
    evidence->word_count += evidence_words(bytes);
    *known = (evidence_value){.is_known = true, .checksum = checksum};
    return PEN_OK;
}

static pen_status evidence_prepare(pen_evidence *evidence, const uint32_t *lists,
                                   uint32_t list_count) {
    const uint32_t value_count = pen_graph_value_count(evidence->executor->spec.graph);
    evidence->values = pen_memory_allocate(value_count + 1, sizeof *evidence->values);
    if (evidence->values == NULL) return pen_error_out_of_memory();
    evidence->word_limit = EVIDENCE_HEAD + (uint64_t)list_count * (EVIDENCE_LIST_WORDS + 1);
    for (uint32_t l = 0; l < list_count; l++) {
        PEN_TRY(evidence_visit_inputs(evidence, lists[l], evidence_count_value));
    }
    memset(evidence->values, 0, value_count * sizeof *evidence->values);
    evidence->words = pen_memory_allocate_lazily(evidence->word_limit, sizeof *evidence->words);
    if (evidence->words == NULL) return pen_error_out_of_memory();
    memset(evidence->words, 0, EVIDENCE_HEAD * sizeof *evidence->words);
    evidence->word_count = EVIDENCE_HEAD;
    return PEN_OK;
}

// Room for all of it is taken at once, since its size is known.
pen_status pen_evidence_create(const pen_executor *executor, const uint32_t *lists,
                               uint32_t list_count, uint64_t microbatch,
                               pen_evidence **out_evidence) {
    if (!executor_is_seen(executor)) {
        return pen_error(PEN_UNSUPPORTED, "what a device of kind '%s' computes cannot be looked at",
                         executor->spec.device->kind->name);
    }
    pen_evidence *evidence = pen_memory_allocate(1, sizeof *evidence);
    if (evidence == NULL) return pen_error_out_of_memory();
    evidence->executor = executor;
    evidence->microbatch = microbatch;
    evidence->lists_left = list_count;
    const pen_status status = evidence_prepare(evidence, lists, list_count);
    if (status != PEN_OK) {
        pen_evidence_destroy(evidence);
        return status;
    }
    *out_evidence = evidence;
    return PEN_OK;
}

void pen_evidence_destroy(pen_evidence *evidence) {
    if (evidence == NULL) return;
    pen_memory_free(evidence->values);
    pen_memory_free(evidence->words);
    pen_memory_free(evidence);
}

// Values before the list that reads them: who computes it again writes them, and then runs it.
pen_status pen_evidence_begin_list(pen_evidence *evidence, uint32_t list,
                                   const pen_run_context *run) {
    PEN_TRY(evidence_visit_inputs(evidence, list, evidence_copy_value));
    PEN_TRY(evidence_grow(evidence, EVIDENCE_LIST_WORDS));
    const uint64_t words[EVIDENCE_LIST_WORDS] = {EVIDENCE_LIST,
                                                 list,
                                                 run->seed,
                                                 run->step,
                                                 run->microbatch,
                                                 run->first_microbatch,
                                                 run->later_lane,
                                                 run->ends_lane,
                                                 run->lane,
                                                 run->lane_count,
                                                 run->microbatch_count};
    for (uint32_t w = 0; w < EVIDENCE_LIST_WORDS; w++) {
        evidence_put(evidence, words[w]);
    }
    evidence->list = list;
    return PEN_OK;
}

// What a list has left behind, in the order of its nodes.
static uint64_t evidence_sum_list(const pen_executor *executor, uint32_t list, uint64_t microbatch,
                                  uint64_t digest) {
    const pen_graph *graph = executor->spec.graph;
    const pen_memory_list *range = &executor->lists[list];
    for (uint32_t p = range->first; p < range->end; p++) {
        const pen_node *node = pen_graph_node(graph, executor->spec.order[p]);
        for (uint32_t i = 0; i < node->output_count; i++) {
            uint64_t bytes;
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id home = pen_value_home(graph, node->outputs[i]);
            if (!evidence_outlives(executor, home)) continue;
            const void *memory = executor_look(executor, home, microbatch, &bytes);
            if (memory != NULL) digest = evidence_mix(digest, pen_checksum_whole(memory, bytes));
        }
    }
    return digest;
}

// What persists is known as it was left, too: others may change it before the next list.
static void evidence_note_left(pen_evidence *evidence) {
    const pen_executor *executor = evidence->executor;
    const pen_graph *graph = executor->spec.graph;
    const pen_memory_list *range = &executor->lists[evidence->list];
    for (uint32_t p = range->first; p < range->end; p++) {
        const pen_node *node = pen_graph_node(graph, executor->spec.order[p]);
        for (uint32_t i = 0; i < node->output_count; i++) {
            uint64_t bytes;
            if (!pen_value_is(node->outputs[i])) continue;
            const pen_value_id home = pen_value_home(graph, node->outputs[i]);
            if (evidence_region(executor, home) != PEN_MEMORY_PERSISTENT) continue;
            const void *memory = evidence_look(evidence, home, &bytes);
            if (memory == NULL) continue;
            evidence->values[home.index].checksum = pen_checksum_whole(memory, bytes);
        }
    }
}

void pen_evidence_end_list(pen_evidence *evidence) {
    PEN_ASSERT(evidence->lists_left > 0);
    evidence->digest = evidence_sum_list(evidence->executor, evidence->list, evidence->microbatch,
                                         evidence->digest);
    evidence->lists_left -= 1;
    if (evidence->lists_left > 0) {
        evidence_note_left(evidence);
        return;
    }
    const uint64_t bytes = evidence->word_count * sizeof *evidence->words;
    const uint64_t head = EVIDENCE_HEAD * sizeof *evidence->words;
    evidence->words[0] = EVIDENCE_MAGIC;
    evidence->words[1] = bytes;
    evidence->words[2] = evidence->digest;
    evidence->words[3] = pen_checksum_whole(evidence->words + EVIDENCE_HEAD, bytes - head);
}

bool pen_evidence_is_whole(const pen_evidence *evidence) {
    return evidence->lists_left == 0;
}

const void *pen_evidence_bytes(const pen_evidence *evidence, uint64_t *out_count) {
    PEN_ASSERT(evidence->lists_left == 0);
    *out_count = evidence->word_count * sizeof *evidence->words;
    return evidence->words;
}

// ---- computing again

pen_status pen_evidence_read(const void *bytes, uint64_t count, uint64_t *out_digest) {
    uint64_t head[EVIDENCE_HEAD];
    if (count < sizeof head || count % 8 != 0) {
        return pen_error(PEN_CORRUPT, "%llu bytes are no evidence", (unsigned long long)count);
    }
    memcpy(head, bytes, sizeof head);
    const bool is_right =
        head[0] == EVIDENCE_MAGIC && head[1] == count &&
        head[3] == pen_checksum_whole((const char *)bytes + sizeof head, count - sizeof head);
    if (!is_right) return pen_error(PEN_CORRUPT, "the evidence's checksum does not fit");
    *out_digest = head[2];
    return PEN_OK;
}

// A reader of words that are not trusted.
typedef struct evidence_reader {
    const char *at, *end;
} evidence_reader;

static bool evidence_take(evidence_reader *reader, uint64_t *out_words, uint32_t count) {
    const uint64_t bytes = (uint64_t)count * 8;
    if ((uint64_t)(reader->end - reader->at) < bytes) return false;
    memcpy(out_words, reader->at, bytes);
    reader->at += bytes;
    return true;
}

static bool evidence_restore(evidence_reader *reader, pen_executor *executor) {
    uint64_t words[EVIDENCE_VALUE_WORDS - 1];
    if (!evidence_take(reader, words, EVIDENCE_VALUE_WORDS - 1)) return false;
    if (words[0] >= pen_graph_value_count(executor->spec.graph)) return false;
    const pen_value_id value = {(uint32_t)words[0]};
    void *memory = pen_executor_address(executor, value, 0);
    if (memory == NULL || pen_executor_bytes(executor, value) != words[1]) return false;
    if (evidence_words(words[1]) > (uint64_t)(reader->end - reader->at) / 8) return false;
    memcpy(memory, reader->at, words[1]);
    reader->at += evidence_words(words[1]) * 8;
    return true;
}

// False: there is no such list, or it updates parameters, which nobody asks for.
static bool evidence_read_list(evidence_reader *reader, const pen_executor *executor,
                               uint32_t *out_list, pen_run_context *out_run) {
    uint64_t words[EVIDENCE_LIST_WORDS - 1];
    if (!evidence_take(reader, words, EVIDENCE_LIST_WORDS - 1)) return false;
    if (words[0] >= executor->list_count) return false;
    *out_list = (uint32_t)words[0];
    *out_run = (pen_run_context){.seed = words[1],
                                 .step = words[2],
                                 .microbatch = words[3],
                                 .first_microbatch = words[4] != 0,
                                 .later_lane = words[5] != 0,
                                 .ends_lane = words[6] != 0,
                                 .lane = (uint32_t)words[7],
                                 .lane_count = (uint32_t)words[8],
                                 .microbatch_count = (uint32_t)words[9]};
    const pen_memory_list *range = &executor->lists[*out_list];
    for (uint32_t p = range->first; p < range->end; p++) { // nobody asks for an update
        if (pen_graph_node(executor->spec.graph, executor->spec.order[p])->op->is_update) {
            return false;
        }
    }
    return true;
}

pen_status pen_evidence_recompute(const void *bytes, uint64_t count, pen_executor *executor,
                                  uint64_t *out_digest) {
    uint64_t digest = 0, kind, said;
    PEN_TRY(pen_evidence_read(bytes, count, &said));
    evidence_reader reader = {(const char *)bytes + EVIDENCE_HEAD * sizeof(uint64_t),
                              (const char *)bytes + count};
    while (evidence_take(&reader, &kind, 1)) {
        uint32_t list;
        pen_run_context run;
        if (kind == EVIDENCE_VALUE && evidence_restore(&reader, executor)) continue;
        if (kind != EVIDENCE_LIST || !evidence_read_list(&reader, executor, &list, &run)) {
            return pen_error(PEN_CORRUPT, "the evidence does not fit the part");
        }
        PEN_TRY(pen_executor_run(executor, list, 0, &run));
        digest = evidence_sum_list(executor, list, 0, digest);
    }
    *out_digest = digest;
    return PEN_OK;
}
