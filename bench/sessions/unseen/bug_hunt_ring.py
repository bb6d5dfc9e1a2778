"""Samples that vanish in a daemon in C: a wrong suspect, the ring that looked empty when full, a size to keep."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/pulsed"

MAKEFILE = """
CFLAGS = -std=c99 -O1 -Wall

check: test_ring
	./test_ring

test_ring: test_ring.c ring.c flush.c ring.h flush.h
	$(CC) $(CFLAGS) -o $@ test_ring.c ring.c flush.c

clean:
	rm -f test_ring

.PHONY: check clean
"""
RING_H = """
#ifndef RING_H
#define RING_H

#define RING_SIZE 8

struct ring {
	double slot[RING_SIZE];
	unsigned head; /* next to write */
	unsigned tail; /* next to read */
};

void ring_push(struct ring *r, double v);
int ring_pop(struct ring *r, double *out);

#endif
"""
RING_C = """
#include "ring.h"

void ring_push(struct ring *r, double v)
{
	r->slot[r->head] = v;
	r->head = (r->head + 1) % RING_SIZE;
}

int ring_pop(struct ring *r, double *out)
{
	if (r->head == r->tail)
		return -1;
	*out = r->slot[r->tail];
	r->tail = (r->tail + 1) % RING_SIZE;
	return 0;
}
"""
FLUSH_H = """
#ifndef FLUSH_H
#define FLUSH_H

#include "ring.h"

#define FLUSH_BATCH 4

int flush(struct ring *r, double *out, int max);

#endif
"""
FLUSH_C = """
#include "flush.h"

/* Called once a second from the writer thread. */
int flush(struct ring *r, double *out, int max)
{
	int n = 0;
	while (n < max && n < FLUSH_BATCH && ring_pop(r, &out[n]) == 0)
		n++;
	return n;
}
"""
TEST_C = r"""
#include <stdio.h>
#include <string.h>

#include "flush.h"

static int failed;

static void expect(const char *what, int want, int got)
{
	if (want != got) {
		failed = 1;
		printf("FAIL %s: want %d, got %d\n", what, want, got);
	} else {
		printf("pass %s\n", what);
	}
}

static int drained_after(int pushed)
{
	struct ring r;
	double out[RING_SIZE];
	int n, total = 0;

	memset(&r, 0, sizeof r);
	for (int i = 0; i < pushed; i++)
		ring_push(&r, i);
	while ((n = flush(&r, out, RING_SIZE)) > 0)
		total += n;
	return total;
}

int main(void)
{
	expect("nothing in, nothing out", 0, drained_after(0));
	expect("three in, three out", 3, drained_after(3));
	expect("seven in, seven out", 7, drained_after(7));
	return failed;
}
"""
STATSD = """
#include <stdio.h>

int statsd_line(char *to, unsigned long size, const char *name, double v)
{
	return snprintf(to, size, "%s:%g|g", name, v);
}
"""

SCENARIO = Scenario(
    project="pulsed",
    began="2026-04-14T20:41:00",
    first_commit="PLS-1 import",
    files={
        "Makefile": MAKEFILE,
        "ring.h": RING_H,
        "ring.c": RING_C,
        "flush.h": FLUSH_H,
        "flush.c": FLUSH_C,
        "statsd.c": STATSD,
        "test_ring.c": TEST_C,
        ".gitignore": "test_ring\n",
    },
    turns=(
        turn(
            "graphs have holes, a bunch of samples gone at once, only on bussy boxes (PLS-118). prolly flush is too slow? pls look",
            bash("ls && make test", "List and run the tests"),
            bash("make check"),
            read(f"{ROOT}/flush.c"),
            read(f"{ROOT}/flush.h"),
            edit(f"{ROOT}/flush.h", "#define FLUSH_BATCH 4", "#define FLUSH_BATCH 64"),
            read(f"{ROOT}/test_ring.c"),
            edit(
                f"{ROOT}/test_ring.c",
                '	expect("seven in, seven out", 7, drained_after(7));\n',
                '	expect("seven in, seven out", 7, drained_after(7));\n'
                '	expect("eight in, eight out", 8, drained_after(8));\n'
                '	expect("eleven in, last eight out", 8, drained_after(11));\n',
            ),
            bash("make check"),
            bash("git checkout flush.h && splint ring.c", "Undo the batch size, look with splint"),
            read(f"{ROOT}/ring.c"),
            read(f"{ROOT}/ring.h"),
            edit(
                f"{ROOT}/ring.c",
                "	r->slot[r->head] = v;\n	r->head = (r->head + 1) % RING_SIZE;\n",
                "	if (r->head - r->tail == RING_SIZE) {\n		r->tail++; /* full: the oldest goes */\n		r->dropped++;\n	}\n"
                "	r->slot[r->head++ & (RING_SIZE - 1)] = v;\n",
            ),
            edit(
                f"{ROOT}/ring.c",
                "	*out = r->slot[r->tail];\n	r->tail = (r->tail + 1) % RING_SIZE;\n",
                "	*out = r->slot[r->tail++ & (RING_SIZE - 1)];\n",
            ),
            edit(
                f"{ROOT}/ring.h",
                "	unsigned tail; /* next to read */\n",
                "	unsigned tail; /* next to read */\n	unsigned dropped;\n",
            ),
            bash("make check"),
            bash("git commit -qam 'PLS-118 full ring looked empty' && git log --oneline | head -1"),
            say(
                "Not the flush. A full ring looked empty (head == tail meant both), so the 8th unread sample threw all 8 away.\n"
                "head and tail run free now and are masked on access; when full, the oldest sample goes and `dropped` counts it. make check is green, committed."
            ),
        ),
        turn(
            "ah nice. statsd.c got its own buffer too?",
            bash("grep -n 'ring_\\|slot\\[' *.c | grep -v test_"),
            say("No. statsd.c only formats a line, nothing buffered there."),
        ),
        turn(
            "k. masking means RING_SIZE has to stay a power of two tho, somebody will set it to 100. make it not compile then",
            edit(
                f"{ROOT}/ring.h",
                "#define RING_SIZE 8\n",
                "#define RING_SIZE 8 /* a power of two: indices are masked */\n"
                "#if RING_SIZE & (RING_SIZE - 1)\n#error RING_SIZE must be a power of two\n#endif\n",
            ),
            bash("make clean check && git commit -qam 'PLS-118 refuse odd ring sizes'"),
            say("Done, RING_SIZE 100 is now a compile error. Committed."),
        ),
    ),
)
