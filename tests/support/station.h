// One end of links, for tests of transports: keeps what arrives, and waits for it.
#ifndef PEN_TESTS_SUPPORT_STATION_H
#define PEN_TESTS_SUPPORT_STATION_H

#include "base/thread.h"
#include "tests/support/simulated_transport.h"

#define STATION_PEER_LIMIT 400
#define STATION_TEXT_LIMIT 1024

// Says whether a caller may come. It runs on the transport's thread.
typedef pen_status (*station_judge)(const pen_introduction *introduction);

typedef struct station {
    const pen_transport_kind *kind;
    pen_transport *transport;
    uint16_t port;                  // 0: does not listen
    bool frees_tokens;              // tokens are memory to be freed
    bool numbers_messages;          // messages are numbers of 8 bytes, from 0 on
    pen_simulated_network *network; // NULL: real time

    pen_mutex lock;
    pen_condition changed;
    // guarded by lock
    uint32_t up_count[STATION_PEER_LIMIT], down_count[STATION_PEER_LIMIT];
    pen_status_code down_code;
    char down_text[STATION_TEXT_LIMIT];    // of the last one
    station_judge judge;                   // NULL: takes all
    char introduction[STATION_TEXT_LIMIT]; // the last one, as text
    uint64_t message_count, message_bytes;
    uint64_t frames_at_message; // frames that had come before the last message
    char last_message[STATION_TEXT_LIMIT];
    uint64_t frame_count, frame_bytes, wrong_count; // wrong: order, checksum
    // frames that the transport has compared itself, and of these that are not as it says
    uint64_t compared_count, lie_count;
    uint64_t next_sequence[STATION_PEER_LIMIT]; // of frames that arrive
    uint64_t summed_count, let_go_count, token_sum;
    bool refuses_frames;             // begin refuses
    const pen_memory_domain *domain; // that frames go to; NULL: the host
    uint8_t *memory;                 // where frames go
    uint64_t memory_bytes;
    pen_frame last_frame;
} station;

// Creates it with room for frames of `memory_bytes`, and listens at `address` unless that is NULL.
PEN_NODISCARD pen_status station_open(station *s, const char *kind,
                                      const pen_transport_options *options, const char *address,
                                      uint64_t memory_bytes);
void station_close(station *s); // close, stop, destroy

// What the transport's thread asks. It may be changed while links are open.
void station_set_judge(station *s, station_judge judge);
void station_refuse_frames(station *s);
void station_set_domain(station *s, const pen_memory_domain *domain);

// Waits until *counter (a field of `s`) is at least `count`. False: 10 seconds have passed, or the
// simulated network is quiet.
bool station_wait(station *s, const uint64_t *counter, uint64_t count);
bool station_wait_up(station *s, uint32_t peer, uint32_t count);
bool station_wait_down(station *s, uint32_t peer, uint32_t count);

// Opens a link from one to the other, who is peer `to`; waits until both are up. False: it did not
// come up.
bool station_link(station *from, station *to, uint32_t from_peer, uint32_t to_peer);

#endif // PEN_TESTS_SUPPORT_STATION_H
