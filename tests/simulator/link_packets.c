#include "tests/simulator/link_packets.h"

#include <stddef.h>
#include <string.h>

#include "base/checksum.h"

#define HEAD_WORDS 13u
#define FRAME_WORDS 8u

// ---- bytes

static void packet_put(link_packet *packet, uint64_t word) {
    memcpy(packet->bytes + packet->count, &word, sizeof word);
    packet->count += (uint32_t)sizeof word;
}

static uint64_t packet_get(const uint8_t *bytes, uint32_t index) {
    uint64_t word;
    memcpy(&word, bytes + 8 * index, sizeof word);
    return word;
}

static void packet_put_head(link_packet *packet, const pen_link_head *head, uint64_t epoch) {
    packet_put(packet, head->id.caller);
    packet_put(packet, head->id.callee);
    packet_put(packet, epoch);
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        packet_put(packet, head->ack.lanes[i].number);
        packet_put(packet, head->ack.lanes[i].pieces);
    }
    packet_put(packet, head->has_content);
    packet_put(packet, head->lane);
    packet_put(packet, head->number);
    packet_put(packet, head->piece);
    packet_put(packet, head->piece_count);
    packet_put(packet, head->bytes);
}

static pen_link_head packet_get_head(const uint8_t *bytes, uint64_t *out_epoch) {
    pen_link_head head = {.id = {packet_get(bytes, 0), packet_get(bytes, 1)}};
    *out_epoch = packet_get(bytes, 2);
    for (uint32_t i = 0; i < PEN_LINK_LANE_COUNT; i++) {
        head.ack.lanes[i].number = packet_get(bytes, 3 + 2 * i);
        head.ack.lanes[i].pieces = (uint32_t)packet_get(bytes, 4 + 2 * i);
    }
    head.has_content = packet_get(bytes, 7) != 0;
    head.lane = (pen_link_lane)packet_get(bytes, 8);
    head.number = packet_get(bytes, 9);
    head.piece = (uint32_t)packet_get(bytes, 10);
    head.piece_count = (uint32_t)packet_get(bytes, 11);
    head.bytes = packet_get(bytes, 12);
    return head;
}

static void packet_put_frame(link_packet *packet, const link_frame *frame) {
    packet_put(packet, frame->kind);
    packet_put(packet, frame->generation);
    packet_put(packet, frame->incarnation);
    packet_put(packet, frame->form);
    packet_put(packet, frame->channel);
    packet_put(packet, frame->sequence);
    packet_put(packet, frame->checksum);
    packet_put(packet, frame->words);
}

static link_frame packet_get_frame(const uint8_t *bytes) {
    return (link_frame){.kind = (uint32_t)packet_get(bytes, 0),
                        .generation = packet_get(bytes, 1),
                        .incarnation = packet_get(bytes, 2),
                        .form = (uint32_t)packet_get(bytes, 3),
                        .channel = (uint32_t)packet_get(bytes, 4),
                        .sequence = packet_get(bytes, 5),
                        .checksum = (uint32_t)packet_get(bytes, 6),
                        .words = (uint32_t)packet_get(bytes, 7)};
}

// ---- arriving

static void packet_take_data(process *p, link_packet *packet) {
    world *w = p->world;
    const uint32_t length = packet->count - 4;
    uint32_t checksum;
    memcpy(&checksum, packet->bytes + length, sizeof checksum);
    if (pen_checksum(packet->bytes, length) != checksum) {
        WORLD_NOTE(w, p, "packet is damaged", packet->from->index, 0, 0);
        return;
    }
    uint64_t epoch;
    const pen_link_head head = packet_get_head(packet->bytes, &epoch);
    link_end *l = link_find_id(p, head.id);
    if (l == NULL) {
        const link_end *calling = link_find_id(p, (pen_link_id){.caller = head.id.caller});
        if (calling != NULL && calling->state == LINK_CALLING) return; // too early
        link_answer_packet(p, packet, LINK_PACKET_UNKNOWN, 0);
        return;
    }
    if (l->is_stream && (epoch != l->epoch || (l->is_broken && l->broken_epoch == epoch))) return;
    link_content content = {.bytes = packet->bytes + 8 * HEAD_WORDS,
                            .count = length - 8 * HEAD_WORDS,
                            .piece = head.piece};
    if (head.has_content && head.lane == PEN_LINK_FRAMES) {
        if (head.piece == 0) {
            content.frame = packet_get_frame(content.bytes);
            content.bytes += 8 * FRAME_WORDS;
        }
        content.word = packet_get(content.bytes, 0);
    }
    link_on_data(l, &head, &content);
}

static void packet_take(process *p, link_packet *packet) {
    link_end *l = link_find_id(p, packet->id);
    switch (packet->kind) {
    case LINK_PACKET_CALL:
        link_on_call(p, packet);
        return;
    case LINK_PACKET_TAKEN:
        link_on_taken(p, packet);
        return;
    case LINK_PACKET_REFUSED:
        link_on_refused(p, packet);
        return;
    case LINK_PACKET_DATA:
        packet_take_data(p, packet);
        return;
    case LINK_PACKET_UNKNOWN:
    case LINK_PACKET_BYE:
        if (l != NULL && l->state == LINK_UP) {
            WORLD_NOTE(p->world, p, "link is ended", l->peer, packet->kind, 0);
            link_on_lost(l);
        }
        return;
    case LINK_PACKET_RESUME:
    case LINK_PACKET_RESUMED:
        if (l == NULL || l->state != LINK_UP) {
            link_answer_packet(p, packet, LINK_PACKET_UNKNOWN, 0);
        } else if (packet->kind == LINK_PACKET_RESUME) {
            link_on_resume(l, packet);
        } else {
            link_on_resumed(l, packet);
        }
        return;
    }
}

static void packet_free(world *w, link_packet *packet) {
    if (packet->room != LINK_PACKET_ROOM) return;
    packet->next_spare = w->spare_packets;
    w->spare_packets = packet;
}

static void packet_arrive(process *nobody, void *context, uint64_t value) {
    link_packet *packet = context;
    world *w = packet->from->world;
    process *p = packet->to != NULL ? packet->to : w->hosts[packet->to_host].process;
    (void)nobody;
    (void)value;
    if (p != NULL && p->is_alive && (p->is_frozen || p->is_held)) {
        world_defer(p, NULL, packet_arrive, packet, 0);
        return;
    }
    if (p != NULL && p->is_alive) {
        packet_take(p, packet);
        if (p->is_alive && p->disk->has_crashed) process_crash(p, false);
    }
    packet_free(w, packet);
}

// ---- leaving

static link_packet *packet_new(world *w, uint32_t count) {
    link_packet *packet = w->spare_packets;
    if (packet != NULL && count <= LINK_PACKET_ROOM) {
        w->spare_packets = packet->next_spare;
        packet->count = 0;
        return packet;
    }
    const uint32_t room = count < LINK_PACKET_ROOM ? LINK_PACKET_ROOM : count;
    packet = world_allocate(w, 1, sizeof *packet + room);
    packet->room = room;
    return packet;
}

static bool packet_happens(world *w, uint32_t rate, simulation_fault fault) {
    if (rate == 0 || w->is_calm || chance_below(&w->chaos, 1000000) >= rate) return false;
    w->result->faults[fault] += 1;
    return true;
}

static uint64_t packet_latency(world *w) {
    const world_network *network = &w->network;
    uint64_t latency = chance_between(&w->chaos, network->latency_min, network->latency_max);
    if (packet_happens(w, network->delay, SIMULATION_FAULT_DELAYED)) {
        latency += chance_below(&w->chaos, network->delay_max);
    }
    return latency;
}

static bool packet_is_cut(world *w, const link_packet *packet) {
    if (!w->network.is_cut[packet->from->host][packet->to_host]) return false;
    w->result->faults[SIMULATION_FAULT_CUT] += 1;
    return true;
}

static void packet_flip(world *w, link_packet *packet, uint32_t from, uint32_t count) {
    packet->bytes[from + chance_below(&w->chaos, count)] ^=
        (uint8_t)(1u << chance_below(&w->chaos, 8));
}

static void packet_send_loose(world *w, link_packet *packet) {
    const world_network *network = &w->network;
    if (packet_is_cut(w, packet) || packet_happens(w, network->lose, SIMULATION_FAULT_LOST)) {
        packet_free(w, packet);
        return;
    }
    if (packet_happens(w, network->repeat, SIMULATION_FAULT_REPEATED)) {
        link_packet *copy = packet_new(w, packet->count);
        const uint32_t room = copy->room;
        memcpy(copy, packet, sizeof *packet + packet->count);
        copy->room = room;
        world_call_in(w, packet_latency(w), NULL, packet_arrive, copy, 0);
    }
    if (packet->kind == LINK_PACKET_DATA &&
        packet_happens(w, network->corrupt, SIMULATION_FAULT_CORRUPTED)) {
        packet_flip(w, packet, 0, packet->count);
    }
    world_call_in(w, packet_latency(w), NULL, packet_arrive, packet, 0);
}

// In order; what is lost comes later, or breaks the stream.
static void packet_send_stream(link_end *l, link_packet *packet) {
    world *w = l->owner->world;
    const world_network *network = &w->network;
    uint64_t latency = packet_latency(w);
    bool breaks = packet_is_cut(w, packet);
    if (packet_happens(w, network->lose + network->corrupt, SIMULATION_FAULT_LOST)) {
        latency += chance_below(&w->chaos, 10 * WORLD_MILLISECOND);
        breaks = breaks || chance_one_in(&w->chaos, 16);
    }
    if (l->is_broken && l->broken_epoch == l->epoch) {
        packet_free(w, packet);
        return;
    }
    if (breaks) {
        w->result->faults[SIMULATION_FAULT_BREAK] += 1;
        link_break_stream(l);
        packet_free(w, packet);
        return;
    }
    l->last_due = w->now + latency > l->last_due ? w->now + latency : l->last_due + 1;
    world_call_in(w, l->last_due - w->now, NULL, packet_arrive, packet, 0);
}

void link_send_control(link_end *l, link_packet_kind kind, uint64_t value) {
    world *w = l->owner->world;
    link_packet *packet = packet_new(w, 0);
    packet->kind = kind;
    packet->from = l->owner;
    packet->to = l->other;
    packet->to_host = l->other_host;
    packet->is_stream = l->is_stream;
    packet->id = l->id;
    packet->epoch = l->epoch;
    packet->value = value;
    packet->introduction = l->self;
    if (kind == LINK_PACKET_RESUME || kind == LINK_PACKET_RESUMED) {
        packet->received = pen_link_received(&l->session);
    }
    // the first packet of a stream comes before what is sent over it
    const bool is_broken = l->is_broken && l->broken_epoch == l->epoch;
    if (l->is_stream && !is_broken && (kind == LINK_PACKET_RESUMED || kind == LINK_PACKET_TAKEN)) {
        packet_send_stream(l, packet);
    } else {
        packet_send_loose(w, packet);
    }
}

void link_answer_packet(process *p, const link_packet *packet, link_packet_kind kind,
                        uint64_t value) {
    link_packet *answer = packet_new(p->world, 0);
    answer->kind = kind;
    answer->from = p;
    answer->to = packet->from;
    answer->to_host = packet->from->host;
    answer->id = packet->id;
    answer->value = value;
    packet_send_loose(p->world, answer);
}

void link_send_data(link_end *l, const link_item *item, const pen_link_head *head) {
    world *w = l->owner->world;
    const bool is_frame = item != NULL && item->base.lane == PEN_LINK_FRAMES;
    const uint32_t content = item == NULL ? 0
                             : is_frame   ? 8 * (FRAME_WORDS + 1)
                                          : (uint32_t)item->base.bytes;
    link_packet *packet = packet_new(w, 8 * HEAD_WORDS + content + 4);
    packet->kind = LINK_PACKET_DATA;
    packet->from = l->owner;
    packet->to = l->other;
    packet->to_host = l->other_host;
    packet->id = l->id;
    packet_put_head(packet, head, l->epoch);
    if (is_frame) {
        if (head->piece == 0) packet_put_frame(packet, &item->frame);
        packet_put(packet, item->words[head->piece]);
        if (packet_happens(w, w->network.corrupt_deep, SIMULATION_FAULT_CORRUPTED_DEEP)) {
            packet_flip(w, packet, packet->count - 8, 8);
        }
    } else if (item != NULL) {
        memcpy(packet->bytes + packet->count, item->bytes, content);
        packet->count += content;
    }
    const uint32_t checksum = pen_checksum(packet->bytes, packet->count);
    memcpy(packet->bytes + packet->count, &checksum, sizeof checksum);
    packet->count += 4;
    if (l->is_stream) {
        packet_send_stream(l, packet);
    } else {
        packet_send_loose(w, packet);
    }
}
