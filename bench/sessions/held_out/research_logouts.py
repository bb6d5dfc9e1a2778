"""How do tokens get refreshed here, and why are people logged out at night? Only reading."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, read, say, turn

ROOT = "/home/dev/harbor"

SESSION_JS = """
const MARGIN = 30_000; // ms before expiry at which we refresh

let pending = null;

export async function token(store, now = Date.now()) {
  const current = store.get("token");
  if (current && current.expires - MARGIN > now) return current.value;
  pending ??= renew(store).finally(() => (pending = null));
  return pending;
}

async function renew(store) {
  const reply = await fetch("/auth/refresh", { method: "POST", credentials: "include" });
  if (reply.status === 401) {
    store.clear();
    location.assign("/login");
    return null;
  }
  const fresh = await reply.json();
  store.set("token", fresh);
  return fresh.value;
}
"""
LEGACY_JS = """
// Used by the scanner devices only, their browser has no fetch.
export function renewLegacy(done) {
  const request = new XMLHttpRequest();
  request.open("POST", "/v1/renew");
  request.onload = () => done(JSON.parse(request.responseText));
  request.send();
}
"""
AUTH_PY = '''
"""Access tokens live five minutes, refresh tokens thirty days."""

import hashlib
import hmac
import time

from server import keys

ACCESS = 5 * 60
REFRESH = 30 * 24 * 3600


def sign(user, lifetime, now=None):
    expires = int((now or time.time()) + lifetime)
    text = f"{user}:{expires}"
    return f"{text}:{hmac.new(keys.current(), text.encode(), hashlib.sha256).hexdigest()}"


def check(token, now=None):
    text, _, mac = token.rpartition(":")
    good = hmac.new(keys.current(), text.encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(mac, good) and int(text.rpartition(":")[2]) > (now or time.time())


def refresh(token):
    return sign(token.split(":")[0], ACCESS) if check(token) else None
'''
KEYS_PY = '''
"""The signing key. jobs/rotate_keys.sh writes a new one."""

from pathlib import Path

FILE = Path("/var/lib/harbor/signing.key")


def current():
    return FILE.read_bytes()


def previous():
    old = FILE.with_suffix(".old")
    return old.read_bytes() if old.exists() else None
'''
ROTATE = """
#!/bin/sh
# Security asked for a new key every week, see docs/security.md
cd /var/lib/harbor
cp signing.key signing.old
head -c 32 /dev/urandom > signing.key
"""

SCENARIO = Scenario(
    project="harbor",
    began="2026-04-21T10:30:00",
    first_commit="harbor",
    files={
        "web/session.js": SESSION_JS,
        "web/legacy.js": LEGACY_JS,
        "server/__init__.py": "",
        "server/auth.py": AUTH_PY,
        "server/keys.py": KEYS_PY,
        "jobs/rotate_keys.sh": ROTATE,
        "jobs/crontab": "# m h dom mon dow command\n15 3 * * 0 harbor /srv/harbor/jobs/rotate_keys.sh\n"
        "0 4 * * * harbor /srv/harbor/jobs/cleanup.sh\n",
        "docs/security.md": "# Security\n\nSigning keys are changed weekly. Tokens signed with the key before stay valid.\n",
    },
    turns=(
        turn(
            "I have to explain to a new collegue how login tokens are refreshed in harbor. Can you read the code and tell me how "
            "it works, front to back? just explaining, no changes",
            bash("git ls-files", "What is there?"),
            read(f"{ROOT}/web/session.js"),
            read(f"{ROOT}/server/auth.py"),
            bash(
                "grep -rn 'refresh\\|renew' web server --include=*.js --include=*.py",
                "Every place that renews",
            ),
            read(f"{ROOT}/web/legacy.js"),
            bash("ls server/routes", "Where are the routes?"),
            say(
                """Front to back:

1. Every request in the browser asks `token()` in web/session.js. An access token lives five minutes; `token()` uses the
   stored one until 30 seconds before it expires.
2. After that it POSTs to `/auth/refresh` with the refresh token in a cookie. Concurrent calls share one pending
   promise, so ten requests at once refresh only once.
3. `refresh()` in server/auth.py checks the signature and the expiry of the refresh token (thirty days) and signs a new
   access token. The refresh token itself isn't renewed, so everybody has to log in again after thirty days at the latest.
4. A 401 clears the store and sends the user to /login.

The scanner devices don't take part: web/legacy.js calls the older `/v1/renew` with XMLHttpRequest. I couldn't find the
routes in this checkout, so I don't know what the server does there."""
            ),
        ),
        turn(
            "thats helpful. while you're at it, any idea why ppl keep telling us they are logged out on monday mornings? "
            "not everyone but many",
            read(f"{ROOT}/server/keys.py"),
            bash("cat jobs/crontab jobs/rotate_keys.sh", "What runs at the weekend?"),
            bash("grep -rn previous server", "Who uses the previous key?"),
            read(f"{ROOT}/docs/security.md"),
            bash("git log --oneline -- server/keys.py server/auth.py", "Was it ever used?"),
            say(
                """I think so. jobs/crontab rotates the signing key every Sunday at 03:15. rotate_keys.sh keeps the old one as
signing.old and docs/security.md promises that tokens signed with it stay valid, but nothing calls `keys.previous()`:
`check()` in server/auth.py only tries the current key. So every refresh token from before Sunday is rejected, the browser
gets a 401 and goes to /login. Those who log in on Sunday after 03:15 don't notice, which is why it's not everyone.

The fix would be for `check()` to try `keys.previous()` as well. I haven't changed anything, as you asked."""
            ),
        ),
        turn(
            "wow ok. that's it for sure. I'll make a ticket, the auth team has to do that",
            say(
                "Good. Point them at `check()` in server/auth.py and `keys.previous()`, those two are all it takes."
            ),
        ),
    ),
)
