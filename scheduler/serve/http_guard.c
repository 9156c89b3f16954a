#include "scheduler/serve/http_guard.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "scheduler/serve/infer_texts.h"

#define GUARD_HOST_BYTES 256   // of a name in the domain name system, with the 0 behind it
#define GUARD_TOKEN_BYTES 4352 // name and token, decoded
#define GUARD_BASIC "Basic "
#define GUARD_BEARER "Bearer "

// ---- hosts

// Whether a text is nothing, or a port: ":8080".
static bool guard_is_port(const char *text) {
    if (*text == '\0') return true;
    if (*text != ':') return false;
    const size_t digits = strspn(text + 1, "0123456789");
    return digits <= 5 && text[1 + digits] == '\0';
}

bool pen_http_host_is_allowed(const char *header, const char *own) {
    char host[GUARD_HOST_BYTES];
    unsigned char address[sizeof(struct in6_addr)];
    if (header == NULL) return false;
    const bool is_bracketed = *header == '[';
    const char *begin = header + (is_bracketed ? 1 : 0);
    const size_t length = strcspn(begin, is_bracketed ? "]" : ":");
    if (length == 0 || length >= sizeof host) return false;
    if (is_bracketed && begin[length] != ']') return false;
    if (!guard_is_port(begin + length + (is_bracketed ? 1 : 0))) return false;
    memcpy(host, begin, length);
    host[length] = '\0';
    if (is_bracketed) return inet_pton(AF_INET6, host, address) == 1;
    if (inet_pton(AF_INET, host, address) == 1) return true;
    if (strcasecmp(host, "localhost") == 0) return true;
    return own != NULL && strcasecmp(host, own) == 0;
}

// ---- tokens

static int guard_digit(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    if (letter == '+') return 62;
    return letter == '/' ? 63 : -1;
}

// Decodes base64 up to its padding. False: it is none, or there is no room.
static bool guard_decode(const char *text, char out_bytes[GUARD_TOKEN_BYTES], size_t *out_length) {
    uint32_t bits = 0, bit_count = 0;
    size_t length = 0;
    for (; *text != '\0' && *text != '='; text++) {
        const int digit = guard_digit(*text);
        if (digit < 0) return false;
        bits = (bits << 6 | (uint32_t)digit) & 0xffff;
        bit_count += 6;
        if (bit_count < 8) continue;
        bit_count -= 8;
        if (length == GUARD_TOKEN_BYTES) return false;
        out_bytes[length++] = (char)(bits >> bit_count & 0xff);
    }
    *out_length = length;
    return text[strspn(text, "=")] == '\0';
}

// A password goes where a bearer's token would, so that one function compares both.
bool pen_http_token_is_allowed(const char *token, const char *header) {
    char decoded[GUARD_TOKEN_BYTES], bearer[sizeof GUARD_BEARER + GUARD_TOKEN_BYTES] = GUARD_BEARER;
    const size_t basic_length = strlen(GUARD_BASIC), bearer_length = strlen(GUARD_BEARER);
    size_t length;
    if (token == NULL) return true;
    if (header == NULL) return false;
    if (strncmp(header, GUARD_BASIC, basic_length) != 0) {
        return pen_infer_is_allowed(token, header, strlen(header));
    }
    if (!guard_decode(header + basic_length, decoded, &length)) return false;
    const char *colon = memchr(decoded, ':', length);
    if (colon == NULL) return false;
    const size_t password_length = length - (size_t)(colon + 1 - decoded);
    memcpy(bearer + bearer_length, colon + 1, password_length);
    return pen_infer_is_allowed(token, bearer, bearer_length + password_length);
}
