#include "scheduler/runtime/run/peer_code.h"

#include "base/status.h"

bool pen_peer_code_is_plain(uint32_t code) {
    switch (code) {
    case PEN_UNSUPPORTED:
    case PEN_OUT_OF_MEMORY:
    case PEN_IO:
    case PEN_CORRUPT:
    case PEN_UNAVAILABLE:
    case PEN_DEADLINE:
    case PEN_INTERNAL:
        return true;
    default:
        return false;
    }
}
