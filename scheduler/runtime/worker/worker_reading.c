// Examples that a worker's run reads by itself: what its core asks for, and where it goes.

#include "scheduler/runtime/worker/worker_device.h"
#include "scheduler/runtime/worker/worker_staging.h"

static void reading_done(void *context, const pen_reading *reading) {
    pen_worker_run *run = context;
    const pen_worker_event event = {.kind = PEN_WORKER_EVENT_READ,
                                    .form = reading->form,
                                    .channel = reading->channel,
                                    .sequence = reading->sequence};
    pen_worker_run_note_read(run, reading);
    const pen_status status = pen_worker_run_step(run, &event, NULL);
    if (status != PEN_OK) pen_worker_run_fail(run, status);
}

static void reading_failed(void *context, pen_status take_status) {
    pen_worker_run_fail(context, take_status);
}

// A device that the host does not see may still copy what was in this place before.
static pen_status reading_await(void *context, const pen_reading *reading) {
    const pen_worker_run *run = context;
    const worker_send frame = {reading->form, reading->channel, reading->sequence};
    if (!pen_worker_staging_holds(run, reading->form, reading->channel)) return PEN_OK;
    return pen_worker_staging_await_in(run, &frame);
}

// A worker without such channels opens nothing, whatever the others do.
pen_status pen_worker_run_prepare_reading(pen_worker_run *run) {
    uint32_t places = 0;
    for (uint32_t f = 0; f < run->table->form_count; f++) {
        const pen_run_form *form = &run->table->forms[f];
        for (uint32_t c = 0; c < form->channel_count; c++) {
            const bool is_here = form->channels[c].target_worker == run->options.worker;
            if (is_here && pen_run_channel_is_read(&form->channels[c])) {
                places += form->channels[c].capacity;
            }
        }
    }
    if (places == 0) return PEN_OK;
    if (run->options.reads_nothing) {
        return pen_error(PEN_INVALID_INPUT,
                         "the job has data.read_on: workers, but this worker was started without "
                         "--data FOLDER, which says what it may read");
    }
    const pen_worker_reader_options options = {.data = run->spec->data,
                                               .folder = run->options.data_folder,
                                               .asked_limit = places,
                                               .context = run,
                                               .done = reading_done,
                                               .failed = reading_failed,
                                               .await = reading_await};
    return pen_worker_reader_create(&options, &run->reader);
}

// Under the run's lock, so that a channel's frames are read in the order in which they were asked
// for; the reader's own is a leaf below it.
void pen_worker_run_read(pen_worker_run *run, const pen_worker_action *action) {
    const pen_run_form *form = &run->table->forms[action->form];
    const pen_run_channel *channel = &form->channels[action->channel];
    const pen_run_spec_channel *spec = &run->spec->forms[action->form].channels[action->channel];
    const worker_device *device = &run->devices[run->local_of_device[channel->target_device]];
    const uint64_t microbatch = pen_run_microbatch(form, channel, action->sequence);
    const worker_staging *arriving = &run->channels[action->form][action->channel].arriving;
    const pen_run_round *round = &run->rounds[action->round % WORKER_ROUND_RING];
    const pen_reading reading = {
        .form = action->form,
        .channel = action->channel,
        .sequence = action->sequence,
        .round = action->round,
        .field = spec->field,
        .epoch = round->epoch,
        .first = round->first_example + microbatch * form->microbatch_size,
        .count = form->microbatch_size,
        .bytes = channel->bytes,
        .memory =
            arriving->memory != NULL
                ? pen_worker_staging_place(arriving, microbatch, channel->capacity)
                : pen_executor_address(device->executors[action->form], spec->to, microbatch)};
    pen_worker_reader_ask(run->reader, &reading);
}
