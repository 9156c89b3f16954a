// Fuzzes what strangers of this host may show: any text is a proof of the token file or an error,
// and one that was a proof is none a second time; addresses of any form are written in one.
#include <stdlib.h>
#include <string.h>

#include "scheduler/transport/admit/local_host.h"
#include "scheduler/transport/admit/token_file.h"
#include "tests/fuzz/fuzz.h"

#define NOW 1e9 // as in the seeds
#define PORT 4000

static void read_address(const char *text) {
    char once[PEN_LOCAL_HOST_BYTES], twice[PEN_LOCAL_HOST_BYTES];
    pen_local_host_write(text, once);
    pen_local_host_write(once, twice);
    fuzz_must(strcmp(once, twice) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const pen_token_file file = {.is_given = true}; // whose digest is all 0
    static pen_token_seen seen;
    char answer[PEN_TOKEN_ANSWER_BYTES], proof[PEN_TOKEN_PROOF_BYTES];
    if (size > 1024) return 0;
    char *text = malloc(size + 1);
    if (text == NULL) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    memset(&seen, 0, sizeof seen);
    if (fuzz_reads(pen_token_file_judge(&file, &seen, PORT, NOW, text, answer))) {
        fuzz_must(strlen(answer) == sizeof answer - 1 && strlen(text) < sizeof proof);
        fuzz_must(!fuzz_reads(pen_token_file_judge(&file, &seen, PORT, NOW, text, answer)));
    }
    read_address(text);
    free(text);
    return 0;
}
