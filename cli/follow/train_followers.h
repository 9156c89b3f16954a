// Whoever is told of a training while it runs: the JSON log (--log), TensorBoard's event file
// (--tensorboard), the figures for Prometheus (--metrics), and the page that shows it while it runs
// (--live). The verb tells each event once.
//
// Lifetime: open to close, in one place. One of zeros takes everything and tells nobody.
// Threads:  one.
#ifndef PEN_CLI_FOLLOW_TRAIN_FOLLOWERS_H
#define PEN_CLI_FOLLOW_TRAIN_FOLLOWERS_H

#include "cli/command.h"
#include "cli/follow/event_file.h"
#include "cli/follow/gauge_file.h"
#include "cli/follow/live_page.h"
#include "cli/train_log.h"
#include "scheduler/report/training_history.h"

// As a verb's options have it; NULL: not asked for.
typedef struct pen_cli_follow {
    const char *log;
    const char *tensorboard;
    const char *metrics;
    const char *live;
    const char *live_token;
} pen_cli_follow;

#define PEN_CLI_FOLLOW_OPTIONS(type, member)                                                       \
    PEN_CLI_VALUE(0, "log", "FILE", PATH, type, member.log,                                        \
                  "a JSON object a line for each step and event; -: to standard output"),          \
        PEN_CLI_VALUE(0, "tensorboard", "DIR", PATH, type, member.tensorboard,                     \
                      "an event file in this folder, for TensorBoard"),                            \
        PEN_CLI_VALUE(0, "metrics", "FILE", PATH, type, member.metrics,                            \
                      "how it goes, for Prometheus' node exporter (FILE.prom)"),                   \
        PEN_CLI_VALUE(0, "live", "HOST:PORT", TEXT, type, member.live,                             \
                      "the report while it runs, for browsers; port 0: any that is free; "         \
                      "https://HOST:PORT: with the certificate of the job's tls"),                 \
        PEN_CLI_VALUE(0, "live-token", "FILE", PATH, type, member.live_token,                      \
                      "the password for --live, which other machines need")

typedef struct pen_train_followers {
    pen_train_log log;
    pen_event_file events;
    pen_gauge_file gauges;
    pen_training_history *history; // for the report; NULL: nobody asks
    pen_live_page *live;           // NULL: nobody asks
    const char *title;             // of that page, set before it is opened
    pen_train_watch watch;         // for the trainer
    uint64_t step;                 // the last done, in this process or before
} pen_train_followers;

// INVALID_INPUT, IO, OUT_OF_MEMORY: the command line is wrong
PEN_NODISCARD pen_status pen_train_followers_open(pen_command_context *context, const pen_job *job,
                                                  const pen_cli_follow *follow, bool is_json,
                                                  bool adds, pen_train_followers *out_followers);
// As pen_train_log_close.
void pen_train_followers_close(pen_train_followers *followers, const char *hash, pen_status status,
                               int input_code);

// As the functions of the log; a step also tells the newest checkpoint.
void pen_train_followers_start(pen_train_followers *followers, const pen_job *job,
                               pen_trainer *trainer);
void pen_train_followers_step(pen_train_followers *followers, const pen_step_report *report,
                              const pen_trainer *trainer);
void pen_train_followers_checkpoint(pen_train_followers *followers, const pen_trainer *trainer);
void pen_train_followers_evaluation(pen_train_followers *followers, const pen_step_report *report,
                                    const pen_trainer *trainer);

#endif // PEN_CLI_FOLLOW_TRAIN_FOLLOWERS_H
