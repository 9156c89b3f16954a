#include "tests/simulator/links.h"

#include <string.h>

#include "base/checksum.h"
#include "scheduler/transport/link_session.h"
#include "tests/simulator/link_packets.h"

// ---- ends of links

link_end *link_find(const process *p, uint32_t peer) {
    for (link_end *l = p->links; l != NULL; l = l->next) {
        if (l->peer == peer && l->state != LINK_ENDED) return l;
    }
    return NULL;
}

link_end *link_find_id(const process *p, pen_link_id id) {
    for (link_end *l = p->links; l != NULL; l = l->next) {
        if (l->id.caller == id.caller && (id.callee == 0 || l->id.callee == id.callee)) return l;
    }
    return NULL;
}

link_end *link_other_end(const link_end *l) {
    if (l->other == NULL || !l->other->is_alive) return NULL;
    return link_find_id(l->other, l->id);
}

bool link_is_up(const process *p, uint32_t peer) {
    const link_end *l = link_find(p, peer);
    return l != NULL && l->state == LINK_UP;
}

void *link_identity(const process *p, uint32_t peer) {
    return link_find(p, peer);
}

process *link_other_process(const process *p, uint32_t peer, uint32_t *out_peer) {
    const link_end *l = link_find(p, peer);
    const link_end *other = l == NULL ? NULL : link_other_end(l);
    if (other == NULL || l->state != LINK_UP || other->state != LINK_UP) return NULL;
    *out_peer = other->peer;
    return other->owner;
}

static link_end *link_new(process *p, uint32_t peer) {
    link_end *l = WORLD_NEW(p->world, link_end);
    l->owner = p;
    l->peer = peer;
    l->timer_at = WORLD_NEVER;
    l->next = p->links;
    p->links = l;
    return l;
}

static void link_unlist(link_end *l) {
    for (link_end **at = &l->owner->links; *at != NULL; at = &(*at)->next) {
        if (*at != l) continue;
        *at = l->next;
        return;
    }
}

static void link_begin_session(link_end *l) {
    const world *w = l->owner->world;
    const pen_link_session_options options = {
        .id = l->id,
        .is_stream = l->is_stream,
        .ack_delay = w->times.ack,
        .ack_messages = 8,
        .ack_frames = 4,
        .ack_bytes = 4096,
        .resend_after = l->is_stream ? 0 : w->times.resend,
        .windows = {(uint32_t)(32 + (l->id.caller % 32)), (uint32_t)(4 + (l->id.caller % 16))},
        .message_bytes_limit = UINT64_C(1) << 24};
    pen_link_init(&l->session, &options);
    l->state = LINK_UP;
}

// Gives back what is no longer kept.
static void link_give_back(link_end *l) {
    process *p = l->owner;
    for (;;) {
        link_item *item = (link_item *)(void *)pen_link_release(&l->session);
        if (item == NULL) return;
        const bool is_frame = item->base.lane == PEN_LINK_FRAMES;
        const uint64_t token = item->token;
        item->base.next = NULL;
        item->next_spare = l->spares;
        if (is_frame || item->room == LINK_ITEM_ROOM) l->spares = item;
        if (is_frame && p->is_alive) process_let_go(p, l->peer, token);
    }
}

// The link is no more, for this end. `tells`: the other end, too, if that gets through.
static void link_end_here(link_end *l, bool tells, bool calls_down, bool is_final) {
    if (l->state == LINK_ENDED) return;
    process *p = l->owner;
    const bool was_up = l->state == LINK_UP;
    l->state = LINK_ENDED;
    link_unlist(l);
    if (was_up) {
        p->world->result->resent += l->session.retransmitted;
        pen_link_drain(&l->session);
        link_give_back(l);
        if (tells) link_send_control(l, LINK_PACKET_BYE, 0);
    }
    if (calls_down) process_down(p, l->peer, is_final);
}

void link_disconnect(process *p, uint32_t peer) {
    link_end *l = link_find(p, peer);
    if (l != NULL) link_end_here(l, true, false, false);
}

// ---- going on

static void link_timer(process *p, void *context, uint64_t value);

static void link_arm(link_end *l) {
    const process *p = l->owner;
    const uint64_t deadline = pen_link_deadline(&l->session);
    if (deadline == PEN_LINK_NEVER) return;
    const uint64_t now = process_now(p);
    const uint64_t away = deadline > now ? deadline - now : 0;
    const uint64_t at = p->world->now + away + away / 32 + 1;
    if (l->timer_at <= at) return;
    l->timer_at = at;
    world_call_in(p->world, at - p->world->now, l->owner, link_timer, l, at);
}

void link_pump(link_end *l) {
    if (l->state != LINK_UP) return;
    pen_link_item *item;
    pen_link_head head;
    while (pen_link_next(&l->session, process_now(l->owner), &item, &head)) {
        link_send_data(l, (link_item *)(void *)item, &head);
    }
    link_give_back(l);
    if (l->state == LINK_UP) link_arm(l);
}

static void link_timer(process *p, void *context, uint64_t value) {
    link_end *l = context;
    if (l->timer_at != value) return;
    l->timer_at = WORLD_NEVER;
    if (l->state != LINK_UP) return;
    pen_link_tick(&l->session, process_now(p));
    link_pump(l);
}

static link_item *link_take_item(link_end *l, uint32_t room) {
    link_item *item = l->spares;
    if (item != NULL && room <= LINK_ITEM_ROOM) {
        l->spares = item->next_spare;
        return item;
    }
    const uint32_t size = room < LINK_ITEM_ROOM ? LINK_ITEM_ROOM : room;
    item = world_allocate(l->owner->world, 1, sizeof *item + size);
    item->room = size;
    return item;
}

void link_send_message(process *p, uint32_t peer, const void *bytes, uint32_t count) {
    link_end *l = link_find(p, peer);
    if (l == NULL || l->state != LINK_UP) return; // `down` says it
    link_item *item = link_take_item(l, count);
    item->base = (pen_link_item){.lane = PEN_LINK_MESSAGES, .bytes = count, .piece_count = 1};
    memcpy(item->bytes, bytes, count);
    const bool is_taken = pen_link_offer(&l->session, &item->base);
    PEN_ASSERT(is_taken);
    link_pump(l);
}

void link_send_frame(process *p, uint32_t peer, const link_frame *frame, const uint64_t *words,
                     uint64_t token) {
    link_end *l = link_find(p, peer);
    if (l == NULL || l->state != LINK_UP) {
        process_let_go(p, peer, token);
        return;
    }
    link_item *item = link_take_item(l, 0);
    item->base = (pen_link_item){
        .lane = PEN_LINK_FRAMES, .bytes = 8 * frame->words, .piece_count = frame->words};
    item->frame = *frame;
    item->words = words;
    item->token = token;
    const bool is_taken = pen_link_offer(&l->session, &item->base);
    PEN_ASSERT(is_taken);
    link_pump(l);
}

static void link_notice(process *p, void *context, uint64_t value) {
    link_end *l = context;
    (void)p;
    if (l->epoch == value) link_suspend(l);
}

// ---- opening

static void link_call_again(process *p, void *context, uint64_t value) {
    link_end *l = context;
    if (l->state != LINK_CALLING || l->attempt != value) return;
    if (p->world->now >= l->give_up_at) {
        link_end_here(l, false, true, false);
        return;
    }
    l->attempt += 1;
    link_send_control(l, LINK_PACKET_CALL, 0);
    world_call_in(p->world, l->backoff, p, link_call_again, l, l->attempt);
    if (l->backoff < 40 * WORLD_MILLISECOND) l->backoff *= 2;
}

void link_call_peer(process *p, uint32_t peer, uint32_t host, const link_introduction *self,
                    uint64_t deadline) {
    world *w = p->world;
    link_disconnect(p, peer);
    link_end *l = link_new(p, peer);
    l->state = LINK_CALLING;
    l->is_caller = true;
    l->is_stream = chance_below(&w->chaos, 4) < w->network.stream_chance;
    l->other_host = host;
    l->self = *self;
    l->id.caller = chance_next(&w->chaos) | 1;
    l->backoff = 5 * WORLD_MILLISECOND;
    l->give_up_at = w->now + deadline;
    link_call_again(p, l, 0);
}

void link_on_call(process *p, const link_packet *packet) {
    link_end *l = link_find_id(p, (pen_link_id){.caller = packet->id.caller});
    const link_end *caller = link_find_id(packet->from, packet->id);
    if (l == NULL) {
        // three packets make a connection: one that is given up is not taken
        if (!packet->from->is_alive || caller == NULL || caller->state != LINK_CALLING) return;
        const link_answer answer = process_accept(p, &packet->introduction);
        if (!p->is_alive) return;
        if (answer != LINK_TAKE) {
            link_answer_packet(p, packet, LINK_PACKET_REFUSED, answer);
            return;
        }
        link_end *old = link_find(p, packet->introduction.peer);
        if (old != NULL) link_end_here(old, true, true, false);
        l = link_new(p, packet->introduction.peer);
        l->id =
            (pen_link_id){.caller = packet->id.caller, .callee = chance_next(&p->world->chaos) | 1};
        l->is_stream = packet->is_stream;
        l->other = packet->from;
        l->other_host = packet->from->host;
        link_begin_session(l);
        link_send_control(l, LINK_PACKET_TAKEN, 0);
        process_up(p, l->peer);
        return;
    }
    link_send_control(l, LINK_PACKET_TAKEN, 0);
}

void link_on_taken(process *p, const link_packet *packet) {
    link_end *l = link_find_id(p, (pen_link_id){.caller = packet->id.caller});
    if (l == NULL) {
        link_answer_packet(p, packet, LINK_PACKET_UNKNOWN, 0);
        return;
    }
    if (l->state != LINK_CALLING) return;
    l->id = packet->id;
    l->other = packet->from;
    link_begin_session(l);
    const link_end *other = link_other_end(l);
    if (other != NULL && other->is_broken) { // the stream broke before we knew of it
        l->is_broken = true;
        world_call_in(p->world, 0, p, link_notice, l, l->epoch);
    }
    process_up(p, l->peer);
    link_pump(l);
}

void link_on_refused(process *p, const link_packet *packet) {
    link_end *l = link_find_id(p, (pen_link_id){.caller = packet->id.caller});
    if (l == NULL || l->state != LINK_CALLING) return;
    if (packet->value == LINK_NEVER) link_end_here(l, false, true, true);
}

// ---- streams that break

static void link_try_resume(process *p, void *context, uint64_t value) {
    link_end *l = context;
    if (l->state != LINK_UP || !l->session.is_suspended || l->attempt != value) return;
    if (p->world->now >= l->give_up_at) {
        link_end_here(l, true, true, false);
        return;
    }
    if (!l->is_caller) { // waits to be called
        world_call_in(p->world, 5 * WORLD_MILLISECOND, p, link_try_resume, l, value);
        return;
    }
    l->attempt += 1;
    l->epoch += 1;
    link_send_control(l, LINK_PACKET_RESUME, 0);
    const uint64_t wait = WORLD_MILLISECOND + chance_below(&p->world->chaos, l->backoff);
    if (l->backoff < 20 * WORLD_MILLISECOND) l->backoff *= 2;
    world_call_in(p->world, wait, p, link_try_resume, l, l->attempt);
}

// This end has noticed that its stream is broken.
void link_suspend(link_end *l) {
    if (l->state != LINK_UP || l->session.is_suspended) return;
    process *p = l->owner;
    WORLD_NOTE(p->world, p, "stream breaks", l->peer, l->epoch, 0);
    pen_link_suspend(&l->session);
    l->give_up_at = p->world->now + p->world->times.resume;
    l->backoff = 2 * WORLD_MILLISECOND;
    l->attempt += 1;
    world_call_in(p->world, chance_below(&p->world->chaos, 3 * WORLD_MILLISECOND), p,
                  link_try_resume, l, l->attempt);
}

static void link_judge(link_end *l, pen_link_verdict verdict) {
    if (!pen_link_is_error(verdict)) return;
    world_wrong(l->owner->world, "session", "what came over a link %s",
                pen_link_verdict_text(verdict));
}

void link_on_resume(link_end *l, const link_packet *packet) {
    if (packet->epoch <= l->epoch || l->is_caller) return;
    pen_link_suspend(&l->session);
    l->epoch = packet->epoch;
    l->attempt += 1;
    link_send_control(l, LINK_PACKET_RESUMED, 0);
    link_judge(l, pen_link_resume(&l->session, process_now(l->owner), &packet->received));
    link_pump(l);
}

void link_on_resumed(link_end *l, const link_packet *packet) {
    if (packet->epoch != l->epoch || !l->is_caller || !l->session.is_suspended) return;
    if (l->is_broken && l->broken_epoch == l->epoch) return; // broken again: another one is tried
    l->attempt += 1;
    link_judge(l, pen_link_resume(&l->session, process_now(l->owner), &packet->received));
    link_pump(l);
}

// ---- what comes

// A piece of a frame, to where it belongs. False: the link goes down.
static bool link_take_piece(link_end *l, const link_content *content, bool is_whole) {
    process *p = l->owner;
    if (content->piece == 0) {
        bool is_refused = false;
        l->receiving = content->frame;
        l->memory = process_begin(p, l->peer, &content->frame, &is_refused);
        if (is_refused) {
            if (p->is_alive) link_end_here(l, true, true, false);
            return false;
        }
    }
    if (l->memory != NULL && content->piece < l->receiving.words) {
        l->memory[content->piece] = content->word;
    }
    if (is_whole && l->memory != NULL) {
        l->memory = NULL;
        process_end(p, l->peer, &l->receiving);
    }
    return true;
}

void link_on_data(link_end *l, const pen_link_head *head, const link_content *content) {
    process *p = l->owner;
    const pen_link_verdict verdict = pen_link_arrived(&l->session, process_now(p), head);
    link_judge(l, verdict);
    if (pen_link_is_error(verdict)) return;
    const bool is_used = verdict == PEN_LINK_TAKE || verdict == PEN_LINK_WHOLE;
    if (is_used && head->lane == PEN_LINK_MESSAGES) {
        process_message(p, l->peer, content->bytes, content->count);
    } else if (is_used) {
        link_take_piece(l, content, verdict == PEN_LINK_WHOLE);
    }
    if (p->is_alive) link_pump(l);
}

void link_on_lost(link_end *l) {
    link_end_here(l, false, true, false);
}

// ---- faults

static void link_lose(process *p, void *context, uint64_t value) {
    link_end *l = context;
    (void)value;
    if (l->state != LINK_UP) return;
    WORLD_NOTE(p->world, p, "link goes down", l->peer, 0, 0);
    link_end_here(l, false, true, false);
}

// Both ends will notice, sooner or later.
void link_break_stream(link_end *l) {
    world *w = l->owner->world;
    link_end *ends[2] = {l, link_other_end(l)};
    for (uint32_t i = 0; i < 2; i++) {
        if (ends[i] == NULL || ends[i]->state != LINK_UP) continue;
        if (ends[i]->epoch != l->epoch) continue; // it is at another stream
        ends[i]->is_broken = true;
        ends[i]->broken_epoch = ends[i]->epoch;
        world_call_in(w, chance_below(&w->chaos, 20 * WORLD_MILLISECOND), ends[i]->owner,
                      link_notice, ends[i], ends[i]->epoch);
    }
}

static link_end *link_choose(const process *p, uint64_t choice, bool is_stream) {
    uint32_t count = 0;
    for (link_end *l = p->links; l != NULL; l = l->next) {
        if (l->state == LINK_UP && (l->is_stream || !is_stream)) count++;
    }
    if (count == 0) return NULL;
    uint64_t at = choice % count;
    for (link_end *l = p->links; l != NULL; l = l->next) {
        if (l->state == LINK_UP && (l->is_stream || !is_stream) && at-- == 0) return l;
    }
    return NULL;
}

bool links_reset(process *p, uint64_t choice) {
    world *w = p->world;
    link_end *l = link_choose(p, choice, false);
    if (l == NULL) return false;
    link_end *other = link_other_end(l);
    world_call_in(w, chance_below(&w->chaos, WORLD_MILLISECOND), p, link_lose, l, 0);
    if (other != NULL) {
        world_call_in(w, chance_below(&w->chaos, WORLD_MILLISECOND), other->owner, link_lose, other,
                      0);
    }
    return true;
}

bool links_break(process *p, uint64_t choice) {
    link_end *l = link_choose(p, choice, true);
    if (l == NULL || l->session.is_suspended) return false;
    link_break_stream(l);
    return true;
}

void links_forget(process *p) {
    world *w = p->world;
    const bool is_told = !chance_one_in(&w->chaos, 4);
    for (link_end *l = p->links; l != NULL; l = l->next) {
        link_end *other = link_other_end(l);
        if (l->state == LINK_UP) w->result->resent += l->session.retransmitted;
        if (other == NULL || !is_told) continue;
        world_call_in(w, 100000 + chance_below(&w->chaos, WORLD_MILLISECOND), other->owner,
                      link_lose, other, 0);
    }
    p->links = NULL;
}
