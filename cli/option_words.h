// Options that other programs have, and what does the same here.
//
// Threads: any; constant.
#ifndef PEN_CLI_OPTION_WORDS_H
#define PEN_CLI_OPTION_WORDS_H

#include "base/text.h"

// Of every verb, without "--". Those that are keys of a job are in scheduler/job/job_words.h.
extern const pen_text_word pen_cli_words[];

// For pen_cli_table.words.
extern const pen_text_word pen_cli_train_words[];
extern const pen_text_word pen_cli_trained_words[]; // of verbs that take what training left
extern const pen_text_word pen_cli_worker_words[];
extern const pen_text_word pen_cli_serve_words[];
extern const pen_text_word pen_cli_export_words[];
extern const pen_text_word pen_cli_sweep_words[];

#endif // PEN_CLI_OPTION_WORDS_H
