#include "scheduler/transport/admit/token_file.h"

#include <inttypes.h>
#include <math.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/system/file.h"

#define TOKEN_DIGEST_BYTES 32u
#define TOKEN_CALL "call"
#define TOKEN_ANSWER "answer"

// ---- the file

static pen_status token_check_rights(const char *path) {
    struct stat about;
    if (stat(path, &about) != 0 || (about.st_mode & 0006) == 0) return PEN_OK;
    return pen_error(PEN_INVALID_INPUT,
                     "the token file '%s' can be read or written by everybody on this machine "
                     "(mode %04o): chmod o-rw",
                     path, (unsigned)(about.st_mode & 07777));
}

static pen_status token_read(const char *path, pen_arena *arena, pen_token_file *out_file) {
    const char *bytes;
    size_t length;
    unsigned digest_length;
    PEN_TRY(pen_file_read(path, PEN_TOKEN_FILE_MOST, arena, &bytes, &length));
    while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) != NULL)
        length -= 1;
    if (length < PEN_TOKEN_FILE_LEAST) {
        return pen_error(PEN_INVALID_INPUT,
                         "the token file '%s' has %zu bytes, expected at least %u: `openssl rand "
                         "-hex 32` makes some",
                         path, length, PEN_TOKEN_FILE_LEAST);
    }
    if (EVP_Digest(bytes, length, out_file->key, &digest_length, EVP_sha256(), NULL) != 1) {
        return pen_error(PEN_INTERNAL, "no digest of the token file");
    }
    return PEN_OK;
}

pen_status pen_token_file_read(const char *path, pen_token_file *out_file) {
    pen_arena *arena;
    *out_file = (pen_token_file){.is_given = false};
    if (path == NULL) return PEN_OK;
    PEN_TRY(pen_arena_create(&arena));
    pen_status status = token_read(path, arena, out_file);
    if (status == PEN_OK) status = token_check_rights(path);
    pen_arena_destroy(arena);
    out_file->is_given = status == PEN_OK;
    pen_machine_boot(out_file->machine);
    return pen_status_add_context(status, "while reading the token file");
}

// ---- proofs

typedef struct token_claim {
    unsigned port;
    int64_t time;
    uint64_t number;
} token_claim;

// What the key makes of a text.
static bool token_sign_text(const pen_token_file *file, const char *text,
                            char out_text[PEN_TOKEN_ANSWER_BYTES]) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned digest_length = 0;
    if (HMAC(EVP_sha256(), file->key, sizeof file->key, (const unsigned char *)text, strlen(text),
             digest, &digest_length) == NULL ||
        digest_length != TOKEN_DIGEST_BYTES) {
        return false;
    }
    for (uint32_t i = 0; i < TOKEN_DIGEST_BYTES; i++)
        snprintf(out_text + (size_t)2 * i, 3, "%02x", digest[i]);
    return true;
}

// Of "call 4000 1764320000 0123456789abcdef".
static bool token_sign(const pen_token_file *file, const char *what, const token_claim *claim,
                       char out_text[PEN_TOKEN_ANSWER_BYTES]) {
    char text[96];
    snprintf(text, sizeof text, "%s %u %" PRId64 " %016" PRIx64, what, claim->port, claim->time,
             claim->number);
    return token_sign_text(file, text, out_text);
}

bool pen_token_file_answer_nearby(const pen_token_file *file,
                                  const char answer[PEN_TOKEN_ANSWER_BYTES],
                                  char out_nearby[PEN_TOKEN_ANSWER_BYTES]) {
    char text[160];
    if (file->machine[0] == '\0') return false;
    snprintf(text, sizeof text, "nearby %s %s", file->machine, answer);
    return token_sign_text(file, text, out_nearby);
}

bool pen_token_file_prove(const pen_token_file *file, uint16_t port, double now,
                          char out_proof[PEN_TOKEN_PROOF_BYTES],
                          char out_answer[PEN_TOKEN_ANSWER_BYTES]) {
    token_claim claim = {.port = port, .time = (int64_t)floor(now)};
    char signature[PEN_TOKEN_ANSWER_BYTES];
    if (getrandom(&claim.number, sizeof claim.number, 0) != (ssize_t)sizeof claim.number ||
        !token_sign(file, TOKEN_CALL, &claim, signature) ||
        !token_sign(file, TOKEN_ANSWER, &claim, out_answer)) {
        return false;
    }
    snprintf(out_proof, PEN_TOKEN_PROOF_BYTES, "%u %" PRId64 " %016" PRIx64 " %s", claim.port,
             claim.time, claim.number, signature);
    return true;
}

// A number of at most `most` digits before a blank. NULL: that is not there.
static const char *token_read_number(const char *text, unsigned base, unsigned most,
                                     uint64_t *out_number) {
    uint64_t number = 0;
    unsigned count = 0;
    for (; *text != ' '; text++, count++) {
        const char *const digits = "0123456789abcdef";
        const char *digit = *text == '\0' ? NULL : strchr(digits, *text);
        if (digit == NULL || digit - digits >= (int)base || count == most) return NULL;
        number = number * base + (uint64_t)(digit - digits);
    }
    *out_number = number;
    return count == 0 ? NULL : text + 1;
}

// What a caller may have written: anything. False: it is no proof.
static bool token_read_claim(const char *proof, token_claim *out_claim,
                             const char **out_signature) {
    uint64_t port, time, number;
    const char *at = token_read_number(proof, 10, 5, &port);
    if (at != NULL) at = token_read_number(at, 10, 12, &time);
    if (at != NULL) at = token_read_number(at, 16, 16, &number);
    if (at == NULL || strlen(at) != PEN_TOKEN_ANSWER_BYTES - 1) return false;
    *out_claim = (token_claim){.port = (unsigned)port, .time = (int64_t)time, .number = number};
    *out_signature = at;
    return true;
}

bool pen_token_answer_is(const char expected[PEN_TOKEN_ANSWER_BYTES], const char *found) {
    return strlen(found) == PEN_TOKEN_ANSWER_BYTES - 1 &&
           CRYPTO_memcmp(expected, found, PEN_TOKEN_ANSWER_BYTES - 1) == 0;
}

// Remembers it until its time is over. False: it was there.
static bool token_remember(pen_token_seen *seen, uint64_t number, double now) {
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < PEN_TOKEN_SEEN_LIMIT; i++) {
        if (seen->list[i].number == number && seen->list[i].until > now) return false;
        if (seen->list[i].until < seen->list[oldest].until) oldest = i;
    }
    seen->list[oldest].number = number;
    seen->list[oldest].until = now + 2 * PEN_TOKEN_FILE_SECONDS + 2;
    return true;
}

// What it claims is looked at only once it is known who claims it.
pen_status pen_token_file_judge(const pen_token_file *file, pen_token_seen *seen, uint16_t port,
                                double now, const char *proof,
                                char out_answer[PEN_TOKEN_ANSWER_BYTES]) {
    token_claim claim;
    const char *signature;
    char expected[PEN_TOKEN_ANSWER_BYTES];
    if (!token_read_claim(proof, &claim, &signature)) {
        return pen_error(PEN_INVALID_INPUT, "it shows a proof of a token file that is none");
    }
    if (!token_sign(file, TOKEN_CALL, &claim, expected) ||
        !token_sign(file, TOKEN_ANSWER, &claim, out_answer)) {
        return pen_error(PEN_INTERNAL, "no digest of the token file");
    }
    if (!pen_token_answer_is(expected, signature)) {
        return pen_error(PEN_INVALID_INPUT, "its token file is another one than here");
    }
    if (claim.port != port) {
        return pen_error(PEN_INVALID_INPUT, "its proof of the token file is for port %u, not %u",
                         claim.port, port);
    }
    if (fabs(now - (double)claim.time) > PEN_TOKEN_FILE_SECONDS) {
        return pen_error(PEN_INVALID_INPUT,
                         "its proof of the token file is %.0f s away from the time here",
                         fabs(now - (double)claim.time));
    }
    if (!token_remember(seen, claim.number, now)) {
        return pen_error(PEN_INVALID_INPUT, "its proof of the token file was shown before");
    }
    return PEN_OK;
}
