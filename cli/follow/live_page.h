// What `train --live HOST:PORT` serves: the report's page while the training runs, for browsers;
// over TLS where the address begins with https://.
//
//   GET /       the page: the model, its plan, and the curves so far
//   GET /data   what the page asks for every two seconds: curves, how far it is, how it goes
//
// The door opens before the model is read, so that a wrong address is told at once. Who asks then
// is told that the training is being prepared.
//
// Lifetime: open to close. A page of NULL takes everything and tells nobody.
// Threads:  one; libmicrohttpd's reads what that leaves.
#ifndef PEN_CLI_FOLLOW_LIVE_PAGE_H
#define PEN_CLI_FOLLOW_LIVE_PAGE_H

#include "cli/command.h"
#include "scheduler/train/train.h"

typedef struct pen_live_page pen_live_page;

// All borrowed.
typedef struct pen_live_page_options {
    const char *address;    // "host:port", "https://host:port"; NULL: no page
    const char *token_file; // with the token in its first line; NULL: there is none
    const char *title;      // of the page
    const pen_job *job;     // has the certificate
} pen_live_page_options;

// Listens. INVALID_INPUT, NOT_FOUND, UNSUPPORTED, UNAVAILABLE, IO, OUT_OF_MEMORY
PEN_NODISCARD pen_status pen_live_page_open(const pen_live_page_options *options,
                                            pen_live_page **out_page);
void pen_live_page_close(pen_live_page *page);

// Draws what is about to be trained: from then on there is a page. Where that fails it is warned
// of, and the training goes on without.
void pen_live_page_start(pen_live_page *page, pen_trainer *trainer);
void pen_live_page_step(pen_live_page *page, const pen_program *program,
                        const pen_step_report *report);
void pen_live_page_evaluation(pen_live_page *page, uint64_t step, const pen_step_report *report,
                              const pen_trainer *trainer);
void pen_live_page_checkpoint(pen_live_page *page, uint64_t step);
void pen_live_page_lost(pen_live_page *page, const char *text);
void pen_live_page_recovered(pen_live_page *page);

#endif // PEN_CLI_FOLLOW_LIVE_PAGE_H
