// Fuzzes the reading of ONNX: any bytes give a graph or an error. No file is opened: external data
// is refused of a model in memory.

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    // the length says what a job asks for
    const bool widens = (length & 1) != 0, trains = (length & 2) != 0;
    const pen_import_options asked = {.dropout_trains = trains,
                                      .unfreeze = (length & 4) != 0 ? "w|val_" : NULL,
                                      .train_batch_norm = trains,
                                      .widens_halves = widens,
                                      .widens_inputs = widens};
    fuzz_read_model(bytes, length, "fuzz", &asked);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t limit, unsigned seed) {
    return fuzz_change_message(bytes, length, limit, seed);
}
