"""A ball that falls through a platform on slow machines, and one that jumps after a pause."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/hopper"

LOOP = """
// Turns animation frames into steps of the world.
export function createLoop(world, step) {
  let last = null;

  return {
    paused: false,
    frame(now) {
      if (this.paused) return;
      if (last === null) last = now;
      const dt = (now - last) / 1000;
      last = now;
      step(world, dt);
    },
  };
}
"""
PHYSICS = """
export const GRAVITY = 900; // px/s^2

function touches(ball, platform) {
  return (
    ball.y + ball.r >= platform.y &&
    ball.y - ball.r <= platform.y + platform.height &&
    ball.x >= platform.x &&
    ball.x <= platform.x + platform.width
  );
}

export function step(world, dt) {
  const { ball } = world;
  ball.vy += GRAVITY * dt;
  ball.y += ball.vy * dt;
  for (const platform of world.platforms) {
    if (ball.vy > 0 && touches(ball, platform)) {
      ball.vy = -0.8 * ball.vy;
      ball.y = platform.y - ball.r;
    }
  }
}
"""
TESTS = """
import assert from "node:assert";
import { test } from "node:test";
import { createLoop } from "../src/loop.js";
import { step } from "../src/physics.js";

export function level() {
  return {
    ball: { x: 50, y: 0, vy: 0, r: 4 },
    platforms: [{ x: 0, y: 400, width: 100, height: 8 }],
  };
}

function play(loop, ms, every) {
  for (let now = 0; now <= ms; now += every) loop.frame(now);
}

test("the ball bounces at 60 fps", () => {
  const world = level();
  play(createLoop(world, step), 1500, 1000 / 60);
  assert.ok(world.ball.y < 400, `ball is at ${world.ball.y}`);
});
"""
SLOW_TEST = """
test("the ball bounces at 12 fps too", () => {
  const world = level();
  play(createLoop(world, step), 3000, 1000 / 12);
  assert.ok(world.ball.y < 400, `ball is at ${world.ball.y}`);
});
"""
PAUSE_TEST = """
test("nothing moves on the first frame after a pause", () => {
  const world = level();
  const loop = createLoop(world, step);
  play(loop, 100, 10);
  const before = world.ball.y;
  loop.pause();
  loop.frame(5000);
  loop.resume();
  loop.frame(9000);
  assert.equal(world.ball.y, before);
});
"""

SCENARIO = Scenario(
    project="hopper",
    began="2026-05-11T18:40:00",
    first_commit="Playable prototype",
    files={
        "package.json": '{\n  "name": "hopper",\n  "version": "0.1.0",\n  "type": "module",\n  "scripts": {"test": "node --test"}\n}\n',
        "src/loop.js": LOOP,
        "src/physics.js": PHYSICS,
        "test/loop.test.js": TESTS,
        "README.md": "# hopper\n\nA ball, some platforms. `npm test` runs the tests.\n",
    },
    turns=(
        turn(
            """
On my old laptop the ball sometimes goes straight through the platforms, on the desktop it never happens. Any idea why? Please fix it if it's not too big.
""",
            read(f"{ROOT}/src/loop.js"),
            read(f"{ROOT}/src/physics.js"),
            bash(f"cat >> test/loop.test.js <<'X'\n{SLOW_TEST}X", "Add a test at a low frame rate"),
            bash("node --test 2>&1", "Run the tests"),
            edit(
                f"{ROOT}/src/loop.js",
                "const dt = (now - last) / 1000;",
                "const dt = Math.min((now - last) / 1000, 1 / 20);",
            ),
            bash("node --test 2>&1", "Run the tests with the frame time capped"),
            edit(
                f"{ROOT}/src/loop.js",
                "      const dt = Math.min((now - last) / 1000, 1 / 20);\n      last = now;\n      step(world, dt);\n",
                "      owed += Math.min((now - last) / 1000, LONGEST);\n      last = now;\n"
                "      for (; owed >= STEP; owed -= STEP) step(world, STEP);\n",
            ),
            edit(
                f"{ROOT}/src/loop.js",
                "export function createLoop(world, step) {\n  let last = null;\n",
                "const STEP = 1 / 120; // seconds\nconst LONGEST = 0.25; // seconds made up for in one frame\n\n"
                "export function createLoop(world, step) {\n  let last = null;\n  let owed = 0;\n",
            ),
            bash("node --test 2>&1", "Run the tests"),
            bash(
                "git commit -qam 'Step the physics at a fixed 120 Hz' && git log --oneline | head -1",
                "Commit",
            ),
            say(
                """The physics took one step per frame, as long as the frame was. The ball does about 850 px/s when it reaches the platform, so at 12 fps it moves some 70 px in one step, and the platform is only 8 px thick: it is above it in one frame and below it in the next, and the collision is never seen.

The loop now collects the elapsed time and runs the physics in fixed steps of 1/120 s, however long the frame took. I also tried just capping the frame time, but that still let the ball through and made the game run slow. There is a test at 12 fps and both tests pass."""
            ),
        ),
        turn(
            "Cool, works. What's the 0.25 for?",
            say(
                "If the tab was in the background for a minute, the loop would otherwise try to catch up on 7200 steps in one frame. With the limit it makes up for a quarter of a second at most and drops the rest."
            ),
        ),
        turn(
            "Ah makes sense. Possibly related: when I unpause, the ball makes a little jump. Can you look at that too?",
            bash("grep -rn paused src index.html", "Who sets paused"),
            edit(
                f"{ROOT}/src/loop.js",
                "    paused: false,\n",
                "    paused: false,\n    pause() {\n      this.paused = true;\n    },\n    resume() {\n      this.paused = false;\n      last = null;\n    },\n",
            ),
            bash(
                f"cat >> test/loop.test.js <<'X'\n{PAUSE_TEST}X\nnode --test 2>&1 | tail -12",
                "Test the pause",
            ),
            bash("git commit -qam 'Forget the time spent paused'", "Commit"),
            say(
                "Fixed. While paused, the loop kept the timestamp of the last frame before the pause, so the first frame afterwards counted the whole pause as elapsed time (up to the 0.25 s). `resume()` forgets that timestamp now. Whoever sets `loop.paused` directly should call `pause()` and `resume()` instead; in this repo nobody does."
            ),
        ),
    ),
)
