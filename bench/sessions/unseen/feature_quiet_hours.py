"""Quiet hours in a notification sender in JavaScript: polite people, long answers, a rule about dependencies."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, together, turn, write

ROOT = "/home/dev/nudge"

PACKAGE = """
{
  "name": "nudge",
  "version": "0.9.2",
  "type": "module",
  "scripts": {"test": "node --test test/"}
}
"""
DISPATCH = """
// Sends what is due. `send` is the transport, `now` a Date.
export function dispatch(queue, recipients, send, now) {
  const left = [];
  for (const message of queue) {
    const recipient = recipients.get(message.to);
    if (!recipient) continue;
    if (message.notBefore && message.notBefore > now) {
      left.push(message);
      continue;
    }
    send(recipient, message);
  }
  return left;
}
"""
RECIPIENTS = """
export function recipient(id, { timezone = null, workspace = null, quiet = null } = {}) {
  return { id, timezone, workspace, quiet };
}
"""
TEST = """
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { dispatch } from '../src/dispatch.js';
import { recipient } from '../src/recipients.js';

const noon = new Date('2026-02-10T12:00:00Z');

function run(messages, people, now = noon) {
  const sent = [];
  const left = dispatch(messages, new Map(people.map((p) => [p.id, p])), (who, m) => sent.push(m.id), now);
  return { sent, left: left.map((m) => m.id) };
}

test('a message that is due is sent', () => {
  assert.deepEqual(run([{ id: 1, to: 'a' }], [recipient('a')]), { sent: [1], left: [] });
});

test('a message for later stays', () => {
  const later = { id: 1, to: 'a', notBefore: new Date('2026-02-10T13:00:00Z') };
  assert.deepEqual(run([later], [recipient('a')]), { sent: [], left: [1] });
});
"""
QUIET = """
// Is it one of the hours in which this person wants to be left alone?
export function isQuiet(recipient, now) {
  if (!recipient.quiet) return false;
  const { from, to } = recipient.quiet;
  const hour = hourIn(recipient.timezone ?? 'UTC', now);
  return hour >= from && hour < to;
}

function hourIn(timeZone, now) {
  return Number(new Intl.DateTimeFormat('en-GB', { hour: '2-digit', hourCycle: 'h23', timeZone }).format(now));
}
"""
QUIET_TEST = """
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isQuiet } from '../src/quiet.js';
import { recipient } from '../src/recipients.js';

const night = { from: 22, to: 7 };
const at = (time) => new Date(`2026-02-10T${time}:00Z`);

test('nobody is quiet who did not ask for it', () => {
  assert.equal(isQuiet(recipient('a'), at('03:00')), false);
});

test('the night goes past midnight', () => {
  const lisbon = recipient('a', { timezone: 'Europe/Lisbon', quiet: night });
  assert.equal(isQuiet(lisbon, at('23:30')), true);
  assert.equal(isQuiet(lisbon, at('06:59')), true);
  assert.equal(isQuiet(lisbon, at('07:00')), false);
});

test('the hour is that of the recipient', () => {
  const tokyo = recipient('a', { timezone: 'Asia/Tokyo', quiet: night });
  assert.equal(isQuiet(tokyo, at('14:00')), true);
  assert.equal(isQuiet(tokyo, at('23:30')), false);
});
"""

SCENARIO = Scenario(
    project="nudge",
    began="2026-02-10T13:20:00",
    first_commit="Publish 0.9.2",
    files={
        "package.json": PACKAGE,
        "src/dispatch.js": DISPATCH,
        "src/recipients.js": RECIPIENTS,
        "test/dispatch.test.js": TEST,
        "README.md": "# nudge\n\nSends push notifications.\n",
    },
    turns=(
        turn(
            """
Hello! A number of our customers have asked not to be woken up by notifications, so I would like us to support
quiet hours: between, say, 22:00 and 07:00 in the recipient's own time zone, pushes should be held back and go
out in the morning. The settings UI already stores `quiet: {from, to}` on the recipient. Anything that is marked
urgent should of course go out regardless.

One request while you are at it: this package has no runtime dependencies and we would very much like to keep
it that way, so please do not reach for luxon or moment. Thank you so much!
""",
            together(read(f"{ROOT}/src/dispatch.js"), read(f"{ROOT}/src/recipients.js")),
            read(f"{ROOT}/test/dispatch.test.js"),
            bash("npm run lint 2>&1 | head -3; exit ${PIPESTATUS[0]}", "Check that the code is lint free"),
            write(f"{ROOT}/src/quiet.js", QUIET.lstrip()),
            write(f"{ROOT}/test/quiet.test.js", QUIET_TEST.lstrip()),
            bash("node --test test/", "Run the test suite"),
            edit(
                f"{ROOT}/src/quiet.js",
                "  return hour >= from && hour < to;\n",
                "  return from <= to ? hour >= from && hour < to : hour >= from || hour < to;\n",
            ),
            edit(
                f"{ROOT}/src/dispatch.js",
                "    send(recipient, message);\n",
                "    if (!message.urgent && isQuiet(recipient, now)) {\n      left.push(message);\n      continue;\n    }\n    send(recipient, message);\n",
            ),
            edit(
                f"{ROOT}/src/dispatch.js",
                "// Sends what is due.",
                "import { isQuiet } from './quiet.js';\n\n// Sends what is due.",
            ),
            bash(
                "cat >> test/dispatch.test.js <<'X'\n\ntest('only what is urgent is sent in quiet hours', () => {\n"
                "  const asleep = recipient('a', { quiet: { from: 11, to: 14 } });\n"
                "  const messages = [{ id: 1, to: 'a' }, { id: 2, to: 'a', urgent: true }];\n"
                "  assert.deepEqual(run(messages, [asleep]), { sent: [2], left: [1] });\n});\nX\nnode --test test/",
                "Add a test for urgent messages and run everything",
            ),
            bash(
                'git add . && git commit -q -m "Hold pushes during the recipient\'s quiet hours" && git show --stat HEAD | tail -5',
                "Commit the change",
            ),
            say(
                """## Quiet hours are in

**What changed**
- `src/quiet.js` is new: `isQuiet(recipient, now)` looks at the hour in the recipient's time zone. Ranges that go past midnight (22 to 7) work.
- `dispatch()` leaves a message in the queue while its recipient has quiet hours, so it goes out with the first run after they end.
- Urgent messages skip the check.

**How it was tested**
- Six tests with `node --test`, all green, among them Lisbon, Tokyo and the step over midnight.

**Dependencies**
- None added: `Intl.DateTimeFormat` knows the time zones.

**Open point**
- A recipient without a time zone is treated as if in UTC. Would you like something better there?"""
            ),
        ),
        turn(
            """
That is wonderful, thank you! Good question. Quite a few of the older accounts have no time zone of their own.
Let's go with the time zone of their workspace in that case, and UTC only as a last resort.
""",
            edit(
                f"{ROOT}/src/quiet.js",
                "recipient.timezone ?? 'UTC'",
                "recipient.timezone ?? recipient.workspace?.timezone ?? 'UTC'",
            ),
            bash(
                "cat >> test/quiet.test.js <<'X'\n\ntest('who has no time zone has that of the workspace', () => {\n"
                "  const old = recipient('a', { workspace: { timezone: 'Asia/Tokyo' }, quiet: night });\n"
                "  assert.equal(isQuiet(old, at('14:00')), true);\n});\nX\nnode --test test/ | tail -9",
                "Test the fallback",
            ),
            bash(
                'git commit -qam "Fall back to the workspace\'s time zone" && git status -sb',
                "Commit the change",
            ),
            say(
                """## Fallback added

- The order is now: the recipient's time zone, then the workspace's, then UTC.
- One more test, all seven green, committed.

Shall I also describe quiet hours in the README?"""
            ),
        ),
        turn(
            "Not now, marketing will want to have a say in how we call it. Have a lovely afternoon!",
            say("You too! The README stays as it is until marketing has picked a name."),
        ),
    ),
)
