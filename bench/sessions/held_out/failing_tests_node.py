"""Tests that fail after an upgrade of Node: one is mended, one is put off, on the user's word."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/gridlock"

PARSE = """
export class LayoutError extends Error {}

export function parse(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    const position = /at position (\\d+)/.exec(error.message);
    throw new LayoutError(`broken layout at ${Number(position[1])}`);
  }
  if (!Array.isArray(found.cells)) throw new LayoutError("no cells");
  return found;
}
"""
LAYOUT = """
export function place(cells, width) {
  let x = 0;
  let y = 0;
  return cells.map((cell) => {
    if (x + cell.w > width) {
      x = 0;
      y += 1;
    }
    const placed = { ...cell, x, y };
    x += cell.w;
    return placed;
  });
}

export function settle(cells, done) {
  setTimeout(() => done(cells.length), 5 + Math.random() * 20);
}
"""
PARSE_TEST = """
import assert from "node:assert/strict";
import { test } from "node:test";
import { LayoutError, parse } from "../src/parse.js";

test("a layout is read", () => {
  assert.deepEqual(parse('{"cells": []}'), { cells: [] });
});

test("a broken layout says where", () => {
  assert.throws(() => parse('{"cells": [}'), (error) => error instanceof LayoutError && /broken layout at 11/.test(error.message));
});

test("a truncated layout is a LayoutError as well", () => {
  assert.throws(() => parse('{"cells": ['), LayoutError);
});
"""
LAYOUT_TEST = """
import assert from "node:assert/strict";
import { test } from "node:test";
import { place, settle } from "../src/layout.js";

test("cells wrap at the width", () => {
  const placed = place([{ w: 2 }, { w: 2 }], 3);
  assert.deepEqual(placed.map(({ x, y }) => [x, y]), [[0, 0], [0, 1]]);
});

test("settling takes less than five milliseconds", (_, done) => {
  const started = performance.now();
  settle([1, 2], () => {
    assert.ok(performance.now() - started < 5);
    done();
  });
});
"""

SCENARIO = Scenario(
    project="gridlock",
    began="2026-05-04T14:22:00",
    first_commit="gridlock",
    files={
        "package.json": '{\n  "name": "gridlock",\n  "version": "1.9.2",\n  "type": "module",\n'
        '  "engines": { "node": ">=18" },\n  "scripts": { "test": "node --test" }\n}\n',
        "src/parse.js": PARSE,
        "src/layout.js": LAYOUT,
        "test/parse.test.js": PARSE_TEST,
        "test/layout.test.js": LAYOUT_TEST,
    },
    turns=(
        turn(
            "we moved the build image from node 18 to node 20 and now `npm test` has failures. make it green again please",
            bash(
                "node --version && npm test --silent 2>&1 | grep -E '^(not )?ok|^# (pass|fail)'",
                "Which ones fail?",
            ),
            bash("npm test", "The whole output"),
            read(f"{ROOT}/src/parse.js"),
            bash(
                'node -e \'try { JSON.parse("{\\"cells\\": [}") } catch (e) { console.log(e.message) }\'',
                "What does node 20 say?",
            ),
            bash(
                'node -e \'try { JSON.parse("{\\"cells\\": [") } catch (e) { console.log(e.message) }\'',
                "And for one that ends too early?",
            ),
            read(f"{ROOT}/test/parse.test.js"),
            edit(f"{ROOT}/src/parse.js", "/at position (\\d+)/", "/position (\\d+)/"),
            bash("node --test test/parse.test.js", "Does a looser pattern help?"),
            edit(
                f"{ROOT}/src/parse.js",
                "    const position = /position (\\d+)/.exec(error.message);\n"
                "    throw new LayoutError(`broken layout at ${Number(position[1])}`);\n",
                "    // What V8 says differs from version to version, and often there is no position in it.\n"
                '    throw new LayoutError("broken layout", { cause: error });\n',
            ),
            edit(
                f"{ROOT}/test/parse.test.js",
                'test("a broken layout says where", () => {\n'
                "  assert.throws(() => parse('{\"cells\": [}'), (error) => error instanceof LayoutError && "
                "/broken layout at 11/.test(error.message));",
                'test("a broken layout carries the reason", () => {\n'
                "  assert.throws(() => parse('{\"cells\": [}'), (error) => error instanceof LayoutError && "
                "error.cause instanceof SyntaxError);",
            ),
            bash("node --test test/parse.test.js", "Run these"),
            bash("npm test --silent 2>&1 | grep -E '^(not )?ok|^# (pass|fail)'", "And all of them?"),
            read(f"{ROOT}/test/layout.test.js"),
            bash(
                "git stash -q; node --test test/layout.test.js 2>&1 | grep -E '^not ok'; git stash pop -q",
                "Did that one fail before?",
            ),
            say(
                """parse.js is mended: it read the position out of the message of `JSON.parse`, and Node 20 words these messages
differently (`Unexpected token '}', "{"cells": [}" is not valid JSON`, without a position), so the match was null
and parse() died with a TypeError instead of a LayoutError. It no longer looks at the message; the original error is the
`cause` of the LayoutError.

One test is still red: "settling takes less than five milliseconds" in layout.test.js. That has nothing to do with Node.
`settle` waits 5 to 25 ms at random, so the test can hardly ever have passed. What should it be? I haven't touched it."""
            ),
        ),
        turn(
            "ah that one. it's the old animation stuff, gets rewritten in the summer anyway. skip it for now with a comment",
            edit(
                f"{ROOT}/test/layout.test.js",
                'test("settling takes less than five milliseconds", (_, done) => {',
                "// settle() is going to be rewritten together with the animations; until then its timing means nothing.\n"
                'test("settling takes less than five milliseconds", { skip: true }, (_, done) => {',
            ),
            bash("npm test --silent 2>&1 | grep -E '^# (pass|fail|skipped)'", "Run them all"),
            bash(
                'git commit -qam "Do not read positions out of messages of JSON.parse, Node 20 words them differently" && '
                "git show --stat | tail -4",
                "Commit",
            ),
            say("Green: 4 pass, 1 skipped, with a comment that says why. Committed together with the fix."),
        ),
    ),
)
