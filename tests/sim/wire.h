/* SPDX-License-Identifier: Apache-2.0 */
/* A wire between two stations in virtual time. From one seed it draws for each frame whether it is
 * lost, doubled, damaged in one byte, and how long it takes; delays that differ make frames
 * overtake each other. ARP frames are never damaged: they carry no checksum of their own, and on a
 * real wire the frame check sequence guards them.
 *
 * Limits: WIRE_SLOT_COUNT frames under way, what is more is lost; frames up to WIRE_FRAME_BYTES. */
#pragma once

#include "base.h"

#define WIRE_SLOT_COUNT  4096
#define WIRE_FRAME_BYTES 2048
#define WIRE_PER_MILLION 1000000

/* A small generator; the same seed gives the same numbers everywhere. */
struct wire_random {
    uint64_t state;
};

/* Draws 64 bits. */
uint64_t wire_random_next(struct wire_random *random);

/* Draws a number below bound; 0 when bound is 0. */
uint64_t wire_random_below(struct wire_random *random, uint64_t bound);

struct wire_config {
    uint64_t seed;
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t damage_ppm;
    uint32_t delay_ppm; /* of frames that take up to delay_ns_max more */
    uint64_t delay_ns_min;
    uint64_t delay_ns_max;
};

enum wire_side {
    WIRE_STACK = 0,
    WIRE_PEER = 1,
};

struct wire_slot {
    uint64_t arrival_ns;
    uint64_t order;
    uint32_t bytes;
    enum wire_side to;
    uint8_t data[WIRE_FRAME_BYTES];
};

struct wire {
    struct wire_config config;
    struct wire_random random;
    struct wire_slot *slots;
    uint16_t heap[2][WIRE_SLOT_COUNT]; /* by receiver, the first to arrive at 0 */
    uint32_t heap_count[2];
    uint16_t free_slots[WIRE_SLOT_COUNT];
    uint32_t free_count;
    uint64_t order;
    uint64_t sent_count;
    uint64_t lost_count;
};

/* Allocates the slots. */
void wire_init(struct wire *wire);

/* Frees them. */
void wire_fini(struct wire *wire);

/* Empties the wire and starts a new run. */
void wire_reset(struct wire *wire, const struct wire_config *config);

/* Puts a frame on the wire; from is the sender. */
void wire_send(struct wire *wire, enum wire_side from, struct span frame, uint64_t now_ns);

/* Takes the next frame that has arrived.
 * returns  its bytes copied into out (WIRE_FRAME_BYTES of room), 0 for none */
uint32_t wire_receive(struct wire *wire, enum wire_side side, uint64_t now_ns, uint8_t *out);

/* When the next frame arrives anywhere; UINT64_MAX for never. */
uint64_t wire_next_ns(const struct wire *wire);
