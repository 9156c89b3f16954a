// Pictures as training reads them: epochs through the loader, one for each line of the input.
//   loading_bench FOLDER BATCH THREADS   the folder has a folder of pictures for each class
// Prints a line of JSON for each: pictures, seconds, and seconds of processor time, from the end of
// batch AHEAD on: those before may have been loaded while nobody looked.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/machine.h"
#include "scheduler/data/batches.h"

#define AHEAD 4

static void check(pen_status status) {
    if (status == PEN_OK) return;
    char text[1024];
    pen_status_format(status, text, sizeof text);
    fprintf(stderr, "loading_bench: %s\n", text);
    _exit(1);
}

static void run_epoch(pen_batches *batches) {
    double started = 0, processor = 0;
    uint64_t count = 0;
    for (uint64_t b = 0; b < pen_batches_per_epoch(batches); b++) {
        const pen_batch *batch;
        check(pen_batches_next(batches, &batch));
        if (b >= AHEAD) count += batch->count;
        if (b + 1 != AHEAD) continue;
        started = pen_clock_seconds();
        processor = pen_machine_processor_seconds();
    }
    printf("{\"pictures\": %" PRIu64 ", \"seconds\": %.6f, \"processor\": %.6f}\n", count,
           pen_clock_seconds() - started, pen_machine_processor_seconds() - processor);
    fflush(stdout);
}

int main(int argc, char **argv) {
    static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    char line[16];
    if (argc != 4) return 2;
    const pen_dataset_options options = {.format = "images",
                                         .path = argv[1],
                                         .threads = (uint32_t)strtoul(argv[3], NULL, 10),
                                         .mean = mean,
                                         .mean_count = 3,
                                         .deviation = deviation,
                                         .deviation_count = 3};
    const pen_batches_options order = {
        .batch_size = strtoull(argv[2], NULL, 10), .shuffle = true, .drop_last = true, .seed = 1};
    pen_dataset *dataset;
    pen_batches *batches;
    check(pen_dataset_open(&options, &dataset));
    check(pen_batches_create(dataset, &order, &batches));
    while (fgets(line, sizeof line, stdin) != NULL)
        run_epoch(batches);
    pen_batches_destroy(batches);
    pen_dataset_close(dataset);
    return 0;
}
