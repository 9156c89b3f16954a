#include "scheduler/transport/grpc/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static pen_status address_error(const char *text) {
    return pen_error(PEN_INVALID_INPUT,
                     "address '%.100s': expected host:port, as in 127.0.0.1:4000 or [::1]:4000",
                     text);
}

static pen_status address_read_port(const char *text, const char *digits, uint16_t *out_port) {
    uint32_t port = 0;
    if (*digits == '\0') return address_error(text);
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9') return address_error(text);
        port = port * 10 + (uint32_t)(*digits - '0');
        if (port > UINT16_MAX) {
            return pen_error(PEN_INVALID_INPUT, "address '%.100s': ports go up to 65535", text);
        }
    }
    *out_port = (uint16_t)port;
    return PEN_OK;
}

static bool address_is_host(const char *host) {
    for (; *host != '\0'; host++) {
        if ((unsigned char)*host <= ' ' || *host == '/' || *host == '[' || *host == ']') {
            return false;
        }
    }
    return true;
}

// HOST:PORT, with brackets around addresses that have colons. "*" is all addresses of the machine.
pen_status pen_address_read(const char *text, pen_address *out_address) {
    const char *colon = strrchr(text, ':'), *host = text;
    if (colon == NULL || colon == text) return address_error(text);
    size_t length = (size_t)(colon - text);
    const bool has_brackets = text[0] == '[' && colon[-1] == ']';
    if (has_brackets) {
        host += 1;
        length -= 2;
    }
    if (length == 0 || length >= sizeof out_address->host) return address_error(text);
    memcpy(out_address->host, host, length);
    out_address->host[length] = '\0';
    const bool has_colon = strchr(out_address->host, ':') != NULL;
    if (has_colon != has_brackets || !address_is_host(out_address->host)) {
        return address_error(text);
    }
    PEN_TRY(address_read_port(text, colon + 1, &out_address->port));
    if (strcmp(out_address->host, "*") == 0) {
        memcpy(out_address->host, "::", sizeof "::");
    }
    snprintf(out_address->text, sizeof out_address->text,
             strchr(out_address->host, ':') != NULL ? "[%s]:%u" : "%s:%u", out_address->host,
             out_address->port);
    return PEN_OK;
}

bool pen_address_is_loopback(const pen_address *address) {
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, address->host, &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, address->host, &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
    return strcmp(address->host, "localhost") == 0;
}
