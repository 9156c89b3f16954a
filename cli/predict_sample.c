#include "cli/predict_sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/system/file.h"
#include "scheduler/runner/sample.h"

typedef struct sample_writing {
    const pen_sample_request *request;
    bool is_text; // tokens are bytes
    FILE *stream; // NULL: to be gathered in `text` for JSON
    pen_arena *arena;
    int64_t *tokens; // [prompt_count + count]
    uint64_t count;  // with the prompt
} sample_writing;

static pen_status sample_write_token(sample_writing *writing, int64_t token) {
    if (writing->is_text && token > UINT8_MAX) {
        return pen_error(PEN_UNSUPPORTED,
                         "the model wrote token %" PRId64 ", which is no byte: it was not trained "
                         "on data of the format text",
                         token);
    }
    const bool is_first = writing->count == 0;
    writing->tokens[writing->count++] = token;
    if (writing->stream == NULL) return PEN_OK;
    const int written = writing->is_text
                            ? fputc((int)token, writing->stream)
                            : fprintf(writing->stream, "%s%" PRId64, is_first ? "" : " ", token);
    if (written == EOF || fflush(writing->stream) != 0) {
        return pen_error(PEN_IO, "the sample cannot be written: %s", strerror(errno));
    }
    return PEN_OK;
}

// The prompt comes with the first token: whether it suits the model is known by then.
static pen_status sample_take(void *context, uint32_t token) {
    sample_writing *writing = context;
    const pen_sample_request *request = writing->request;
    if (writing->count == 0) {
        for (uint64_t i = 0; i < request->prompt_count; i++)
            PEN_TRY(sample_write_token(writing, request->prompt[i]));
    }
    return sample_write_token(writing, token);
}

// "12 7 300"
static pen_status sample_parse_tokens(const char *text, int64_t *tokens, uint64_t *out_count) {
    uint64_t count = 0;
    for (const char *at = text; *at != '\0';) {
        char *end;
        errno = 0;
        const long long token = strtoll(at, &end, 10);
        if (end == at || errno != 0 || (*end != ' ' && *end != '\0')) {
            return pen_error(PEN_INVALID_INPUT,
                             "--prompt: found \"%.40s\", expected tokens: numbers with a space "
                             "between them",
                             at);
        }
        tokens[count++] = token;
        at = *end == ' ' ? end + 1 : end;
    }
    *out_count = count;
    return PEN_OK;
}

// What the writing begins with: without a prompt, a text begins with a line end.
static pen_status sample_read_prompt(const pen_predict_sample *sample, bool is_text,
                                     pen_arena *arena, pen_sample_request *request) {
    const char *text = sample->prompt != NULL ? sample->prompt : is_text ? "\n" : "";
    const size_t length = strlen(text);
    int64_t *tokens;
    PEN_TRY(PEN_NEW(arena, length + 1, &tokens));
    request->prompt = tokens;
    if (!is_text) {
        PEN_TRY(sample_parse_tokens(text, tokens, &request->prompt_count));
        if (request->prompt_count > 0) return PEN_OK;
        return pen_error(PEN_INVALID_INPUT,
                         "--sample of a model of tokens needs a --prompt: the tokens it begins "
                         "with, such as \"12 7 300\"");
    }
    for (size_t i = 0; i < length; i++)
        tokens[i] = (uint8_t)text[i];
    request->prompt_count = length;
    return PEN_OK;
}

// How fast it went, where it was more than a window a token.
static void sample_note_speed(const pen_sample_figures *figures) {
    const uint64_t count = figures->window_count + figures->decoded_count;
    if (figures->decoded_count == 0 || figures->seconds <= 0) return;
    pen_log(PEN_LOG_NOTE,
            "%" PRIu64 " tokens, %.1f a second: %" PRIu64 " ran the whole window, the others one "
            "position and %.1f MiB of keys and values",
            count, (double)count / figures->seconds, figures->window_count,
            (double)figures->kept_bytes / (1024.0 * 1024.0));
}

// Tokens always, and the text they make where tokens are bytes.
static pen_status sample_write_json(const sample_writing *writing,
                                    const pen_sample_request *request,
                                    const pen_sample_figures *figures) {
    pen_json_writer json;
    pen_command_begin_json(&json, "predict");
    pen_json_key_unsigned(&json, "prompt_tokens", request->prompt_count);
    pen_json_key_unsigned(&json, "windows", figures->window_count);
    pen_json_key_unsigned(&json, "kept_bytes", figures->kept_bytes);
    pen_json_key_array(&json, "tokens");
    for (uint64_t i = 0; i < writing->count; i++)
        pen_json_integer(&json, writing->tokens[i]);
    pen_json_end_array(&json);
    if (writing->is_text) {
        char *text;
        PEN_TRY(PEN_NEW(writing->arena, writing->count + 1, &text));
        for (uint64_t i = 0; i < writing->count; i++)
            text[i] = (char)writing->tokens[i];
        pen_json_key(&json, "text");
        pen_json_text_bytes(&json, text, writing->count);
    }
    pen_json_end_object(&json);
    return pen_json_finish(&json);
}

static pen_status sample_run(sample_writing *writing, const pen_sample_request *request,
                             pen_job_session *session) {
    PEN_TRY(PEN_NEW(writing->arena, request->prompt_count + request->count, &writing->tokens));
    writing->request = request;
    pen_sample_figures figures;
    PEN_TRY(pen_sample(session->runner, request, writing->arena, sample_take, writing, &figures));
    if (writing->stream == NULL) {
        sample_note_speed(&figures);
        return sample_write_json(writing, request, &figures);
    }
    if (fputc('\n', writing->stream) == EOF || fflush(writing->stream) != 0) {
        return pen_error(PEN_IO, "the sample cannot be written: %s", strerror(errno));
    }
    sample_note_speed(&figures);
    return PEN_OK;
}

// Tokens are written as they are drawn, to the terminal too; a file gets its name when the sample
// is whole.
pen_status pen_predict_write_sample(pen_command_context *context, const pen_predict_sample *sample,
                                    pen_job_session *session) {
    const char *format = pen_dataset_get_info(session->dataset)->format;
    sample_writing writing = {.arena = context->arena};
    pen_sample_request request = {.count = (uint64_t)sample->count,
                                  .output = sample->output_name,
                                  .whole_windows = sample->whole_windows,
                                  .sampling = {.temperature = sample->temperature,
                                               .top_k = (uint64_t)sample->top_k,
                                               .seed = (uint64_t)sample->seed}};
    writing.is_text = strcmp(format, "text") == 0;
    if (!writing.is_text && strcmp(format, "tokens") != 0) {
        return pen_error(PEN_INVALID_INPUT,
                         "--sample writes on from data of the format text or tokens; the job's is "
                         "%s",
                         format);
    }
    context->input_exit_code = PEN_EXIT_USAGE;
    PEN_TRY(sample_read_prompt(sample, writing.is_text, context->arena, &request));
    context->input_exit_code = PEN_EXIT_SPEC;
    if (sample->output == NULL) {
        writing.stream = sample->json ? NULL : stdout;
        return sample_run(&writing, &request, session);
    }
    pen_file *file = NULL;
    pen_status status = pen_file_create_beside(sample->output, &file);
    if (status == PEN_OK) {
        writing.stream = pen_file_stream(file);
        status = sample_run(&writing, &request, session);
    }
    if (status == PEN_OK) status = pen_file_commit(file);
    return pen_status_join(status, pen_file_close(file));
}
