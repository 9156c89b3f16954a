// libFuzzer: .npy headers.
#include <stdlib.h>

#include "base/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pen_npy_header header;
    const pen_status status = pen_npy_read_header(data, size, "fuzz", &header);
    if (status != PEN_OK) {
        pen_status_ignore(status, "most inputs are wrong");
        return 0;
    }
    if (header.data_offset + header.data_bytes != size) abort();
    if (header.data_bytes != header.element_count * pen_npy_element_bytes(header.element)) abort();
    return 0;
}
