"""Firmware in which the same debouncing stood three times."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, read, say, turn, write

ROOT = "/home/dev/thermo-fw"

PANEL_H = """
#ifndef PANEL_H
#define PANEL_H

#include <stdbool.h>
#include <stdint.h>

#define PIN_UP 0x01u
#define PIN_DOWN 0x02u
#define PIN_MODE 0x04u

enum mode { MODE_OFF, MODE_HEAT, MODE_AUTO, MODE_COUNT };

/* Called every millisecond with the state of the port. */
void panel_tick(uint8_t port);
void panel_reset(void);
int panel_target(void);
enum mode panel_mode(void);

#endif
"""
PANEL_C = """
#include "panel.h"

static int target = 20;
static enum mode mode = MODE_OFF;

static uint8_t up_count;
static bool up_down;
static uint8_t down_count;
static bool down_down;
static uint8_t mode_count;
static bool mode_down;

void panel_tick(uint8_t port)
{
    if (((port & PIN_UP) != 0) != up_down) {
        if (++up_count >= 5) {
            up_down = !up_down;
            up_count = 0;
            if (up_down && target < 30) target++;
        }
    } else {
        up_count = 0;
    }

    if (((port & PIN_DOWN) != 0) != down_down) {
        if (++down_count >= 5) {
            down_down = !down_down;
            down_count = 0;
            if (down_down && target > 5) target--;
        }
    } else {
        down_count = 0;
    }

    if (((port & PIN_MODE) != 0) != mode_down) {
        if (++mode_count >= 5) {
            mode_down = !mode_down;
            mode_count = 0;
            if (mode_down) mode = (mode + 1) % MODE_COUNT;
        }
    } else {
        mode_count = 0;
    }
}

void panel_reset(void)
{
    target = 20;
    mode = MODE_OFF;
    up_count = down_count = mode_count = 0;
    up_down = down_down = mode_down = false;
}

int panel_target(void) { return target; }
enum mode panel_mode(void) { return mode; }
"""
NEW_PANEL_C = """#include "panel.h"

#include "button.h"

static int target = 20;
static enum mode mode = MODE_OFF;

static struct button up = {.pin = PIN_UP};
static struct button down = {.pin = PIN_DOWN};
static struct button mode_button = {.pin = PIN_MODE};

void panel_tick(uint8_t port)
{
    if (button_pressed(&up, port) && target < 30) target++;
    if (button_pressed(&down, port) && target > 5) target--;
    if (button_pressed(&mode_button, port)) mode = (mode + 1) % MODE_COUNT;
}

void panel_reset(void)
{
    target = 20;
    mode = MODE_OFF;
    button_reset(&up);
    button_reset(&down);
    button_reset(&mode_button);
}

int panel_target(void) { return target; }
enum mode panel_mode(void) { return mode; }
"""
BUTTON_H = """#ifndef BUTTON_H
#define BUTTON_H

#include <stdbool.h>
#include <stdint.h>

#define DEBOUNCE_TICKS 5

struct button {
    uint8_t pin;
    uint8_t count;
    bool is_down;
};

/* True on the tick on which the button counts as pressed, and only then. */
bool button_pressed(struct button *button, uint8_t port);
void button_reset(struct button *button);

#endif
"""
BUTTON_C = """#include "button.h"

bool button_pressed(struct button *button, uint8_t port)
{
    bool level = (port & button->pin) != 0;

    if (level == button->is_down) {
        button->count = 0;
        return false;
    }
    if (++button->count < DEBOUNCE_TICKS) return false;
    button->count = 0;
    button->is_down = level;
    return level;
}

void button_reset(struct button *button)
{
    button->count = 0;
    button->is_down = false;
}
"""
TEST_C = """
#include <stdio.h>

#include "../src/panel.h"

static int failures;

#define CHECK(what)                                              \\
    do {                                                         \\
        if (!(what)) {                                           \\
            printf("%s:%d: %s\\n", __FILE__, __LINE__, #what);    \\
            failures++;                                          \\
        }                                                        \\
    } while (0)

static void hold(uint8_t port, int ticks)
{
    while (ticks--) panel_tick(port);
}

int main(void)
{
    panel_reset();
    hold(PIN_UP, 4);
    hold(0, 1);
    CHECK(panel_target() == 20);
    hold(PIN_UP, 50);
    CHECK(panel_target() == 21);
    hold(0, 10);
    hold(PIN_DOWN, 10);
    CHECK(panel_target() == 20);
    hold(0, 10);
    hold(PIN_MODE, 10);
    CHECK(panel_mode() == MODE_HEAT);
    puts(failures ? "FAILED" : "ok");
    return failures != 0;
}
"""
MAKEFILE = """
CFLAGS = -std=c11 -Wall -Wextra -Werror -Os

test: build/test_panel
	./build/test_panel

build/test_panel: test/test_panel.c src/panel.c src/panel.h
	@mkdir -p build
	$(CC) $(CFLAGS) -o $@ test/test_panel.c src/panel.c

clean:
	rm -rf build

.PHONY: test clean
"""

SCENARIO = Scenario(
    project="thermo-fw",
    began="2026-05-18T13:05:00",
    first_commit="Panel of the thermostat",
    files={
        "src/panel.h": PANEL_H,
        "src/panel.c": PANEL_C,
        "test/test_panel.c": TEST_C,
        "Makefile": MAKEFILE,
        ".gitignore": "build/\n",
    },
    turns=(
        turn(
            """
panel.c has the same debounce code three times, once per button. We're getting a fourth button on the next board revision, so could you pull that out into something reusable first? Behaviour should stay exactly the same.
""",
            read(f"{ROOT}/src/panel.c"),
            bash("cat Makefile test/test_panel.c && make test", "See how it is built and tested"),
            write(f"{ROOT}/src/button.h", BUTTON_H),
            write(f"{ROOT}/src/button.c", BUTTON_C),
            write(f"{ROOT}/src/panel.c", NEW_PANEL_C),
            bash("make test 2>&1", "Build and test"),
            bash(
                "sed -i 's/src\\/panel.c src\\/panel.h/src\\/panel.c src\\/button.c src\\/panel.h src\\/button.h/; "
                "s/test_panel.c src\\/panel.c$/test_panel.c src\\/panel.c src\\/button.c/' Makefile && make test 2>&1",
                "Compile button.c as well",
            ),
            bash(
                "git add -A && git commit -q -m 'Move debouncing into button.c' && git show --stat HEAD",
                "Commit",
            ),
            say(
                """The debouncing lives in `src/button.c` now: a `struct button` per pin and `button_pressed()`, which is true on exactly one tick per press. `panel_tick()` is down to three lines and the fourth button will be one more. The threshold of 5 ticks has a name, `DEBOUNCE_TICKS`. The existing test passes unchanged."""
            ),
        ),
        turn(
            "Looks good. How much bigger/smaller is it?",
            bash(
                "mkdir -p build && git show HEAD~1:src/panel.c > build/old.c && cc -Os -Isrc -c build/old.c -o build/old.o && "
                "cc -Os -c src/panel.c -o build/panel.o && cc -Os -c src/button.c -o build/button.o && size build/*.o | cut -f1-3,6",
                "Compare the sizes",
            ),
            say(
                "Practically the same: 439 bytes of code before and 424 now, and 20 bytes of RAM instead of 16. That is the host compiler though, the cross compiler will have other numbers."
            ),
        ),
        turn(
            "Fine. One thing for when you add the fourth one: we don't do malloc in the firmware, everything is statically allocated. A colleague's PR had a heap allocated button list and I had to reject it.",
            bash("grep -rn 'malloc\\|calloc\\|free(' src", "Check that nothing allocates"),
            say(
                "Understood, static only. There is nothing on the heap in `src/` at the moment, the three buttons are static structs."
            ),
        ),
    ),
)
