"""The worker as a process: when it is started, how it leaves, and what is left when it is killed or the model
fails. Whatever happens, every event ends up observed once or skipped with a reason, and no process stays.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from backstory.intake import checkouts
from backstory.store.file import backup
from backstory.surfaces.hook import START_WORKER
from backstory.surfaces.opened import open_drained
from backstory.synthesis.prompt import OBSERVATION, SUMMARY
from tests.conftest import HOOK
from tests.helpers.backups import with_backup
from tests.helpers.chaos import (
    DAY,
    SECONDS,
    Json,
    assert_sound,
    at_once,
    bash,
    event,
    eventually,
    log_text,
    prompt,
    put,
    rows,
    run_hook,
    spooled,
)
from tests.helpers.claude import environment
from tests.helpers.processes import (
    EACH,
    GO,
    Household,
    WorkerForks,
    awaited_pid,
    children,
    descendants,
    household,
    is_running,
    listening,
    queue_of,
    settled,
    stat,
    worker_forks,
)
from tests.helpers.scripted_model import ScriptedModel, Step, fail, say, together, use

pytestmark = pytest.mark.slow

STOP = event("Stop", last_assistant_message="done")
OBSERVE, SUMMARISE = f"mcp__memory__{OBSERVATION}", f"mcp__memory__{SUMMARY}"


def milliseconds() -> int:
    return int(time.time() * 1000)


def happened(data: Path, session: str, *payloads: Json) -> None:
    """In the spool, a few milliseconds ago, in this order."""
    now = milliseconds()
    for number, payload in enumerate(payloads):
        put(data, {**payload, "session_id": session}, at=now - len(payloads) + number)


def drained(data: Path) -> None:
    with open_drained(str(data), now=milliseconds()):
        pass


def with_known_checkout(data: Path) -> None:
    """One whose history was looked at: a worker has nothing to learn there."""
    put(data, event("SessionStart", source="startup"))
    with open_drained(str(data), now=milliseconds()) as db:
        checkouts.learn(db, milliseconds())


def hook(mode: str, payload: Json) -> None:
    """As Claude Code runs it: nobody waits for what it leaves in the background."""
    raw = json.dumps(payload).encode()
    ran = subprocess.run(["sh", str(HOOK), mode], input=raw, capture_output=True, timeout=SECONDS, check=True)
    assert ran.stdout == ran.stderr == b""


@pytest.fixture(scope="module", name="forks")
def one_parent_of_workers() -> Iterator[WorkerForks]:
    with worker_forks() as found:
        yield found


@pytest.fixture
def house(forks: WorkerForks) -> Iterator[Household]:
    with household() as found:
        yield found


def assert_each_seen_once(data: Path, *, may_skip: str = "") -> None:
    """Every item was observed exactly once, or skipped for this reason."""
    found = queue_of(data)
    assert found and spooled(data) == []
    seen = Counter(row["title"] for row in rows(data, "SELECT title FROM memories WHERE kind = 'discovery'"))
    for row in found:
        assert row["processed_at_epoch"] is not None and row["leased_until"] == 0, row
        if row["skipped"] is None:
            assert (seen.pop(f"Item {row['id']}"), row["processed_by"]) == (1, "local"), row
        else:
            assert may_skip and may_skip in row["skipped"] and f"Item {row['id']}" not in seen, row
    assert not seen, "observed, and not in the queue"
    # One that is stored again is only reinforced, so look at that as well.
    again = rows(data, "SELECT title FROM memories WHERE kind = 'discovery' AND access_count > 0")
    assert again == []
    observed = sum(row["skipped"] is None for row in found)
    paid = rows(data, "SELECT sum(input_tokens) AS items FROM spend")[0]["items"]
    assert (paid or 0) >= observed, "what was asked twice was paid twice"
    reinforced = rows(data, "SELECT id FROM memories WHERE kind = 'tool' AND access_count > 1")
    assert reinforced == [], "a trace was cited by an observation that was stored twice"
    assert_sound(data)


# --- when a worker is started -------------------------------------------------------------------------------


def test_a_hook_starts_a_worker_when_a_turn_has_ended(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "60")
    run_hook(bash("make"))
    hook("drain", STOP)
    pid = awaited_pid(data)
    assert house.workers() == [pid]
    assert os.getsid(pid) == pid and os.getcwd() != os.readlink(f"/proc/{pid}/cwd") == str(data)
    assert {os.readlink(f"/proc/{pid}/fd/{n}") for n in range(3)} == {os.devnull}
    assert eventually(lambda: settled(data))
    assert listening(pid) == []
    hook("drain", {**STOP, "session_id": "another"})
    assert eventually(lambda: spooled(data) == [] and house.orphans() == [pid]), "there is one already"
    os.kill(pid, signal.SIGTERM)
    assert house.is_empty()
    assert (data / "worker.lock").read_bytes() == b"", "it ended well"


@pytest.mark.parametrize(
    "payload", [prompt("mend it please"), event("PostCompact", compact_summary="so far")]
)
def test_a_hook_starts_no_worker_when_there_is_nothing_to_do(
    payload: Json, data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "60")
    with_backup(data)
    with_known_checkout(data)
    run_hook(payload, "drain")
    assert len(queue_of(data)) == 1
    assert house.is_empty(20) and not (data / "worker.lock").exists()


def test_a_hook_starts_no_worker_where_nobody_is_to_observe(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "60")
    with_backup(data)
    with_known_checkout(data)
    run_hook(STOP, "drain")
    assert house.is_empty(20) and not (data / "worker.lock").exists()


def test_a_tool_use_starts_no_worker_whatever_waits(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "60")
    happened(data, "s", bash("make"), STOP)
    drained(data)
    run_hook(bash("ls"))
    run_hook(event("PostToolUseFailure", tool_name="Bash", tool_input={}, error="no"))
    assert house.is_empty(20) and not (data / "worker.lock").exists()
    assert len(spooled(data)) == 2


def test_a_worker_of_ours_starts_no_worker(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own Claude Code would fire our hooks, were they installed."""
    happened(data, "s", bash("make"), STOP)
    drained(data)
    monkeypatch.setenv("BACKSTORY_WORKER", "1")
    run_hook(STOP, "drain")
    run_hook(event("SessionStart", source="startup"), "start")
    assert house.is_empty(20) and not (data / "worker.lock").exists()
    assert spooled(data) == []


def test_the_start_of_a_session_picks_up_what_an_interrupted_one_left(data: Path, house: Household) -> None:
    happened(data, "killed", prompt("mend the parser please"), bash("make"))
    (data / "config.toml").write_text('synthesizer = "local"\n')
    assert run_hook(event("SessionStart", session_id="next", source="startup"), "start").code == 0
    assert eventually(lambda: settled(data))
    assert {row["session_id"] for row in queue_of(data)} == {"killed"}
    summaries = rows(data, "SELECT session_id FROM session_summaries")
    assert [row["session_id"] for row in summaries] == ["killed"]
    assert house.is_empty()


@pytest.mark.parametrize("mode", ["drain", "start"])
def test_what_is_chosen_for_one_session_holds_for_no_other(
    mode: str, data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that its hook starts serves all of them."""
    happened(data, "theirs", prompt("we always write tests first"), STOP)
    (data / "config.toml").write_text('synthesizer = "off"\n')
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "local")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "mine")
    happened(data, "mine", prompt("we never push on fridays"), {**STOP, "session_id": "mine"})
    run_hook(event("SessionStart", session_id="mine", source="resume"), mode)
    assert eventually(lambda: any(row["processed_by"] for row in queue_of(data)))
    assert house.is_empty()
    assert {(row["session_id"], row["processed_by"]) for row in queue_of(data)} == {
        ("theirs", None),
        ("mine", "local"),
    }


def test_a_session_that_nobody_is_to_observe_gives_up_nothing_of_another(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts a worker because a backup is due."""
    put(data, prompt("an old question about parsers", session_id="theirs"), at=milliseconds() - 10 * DAY)
    (data / "config.toml").write_text('synthesizer = "local"\n')
    monkeypatch.setenv("BACKSTORY_SYNTHESIZER", "off")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "mine")
    run_hook({**STOP, "session_id": "mine"}, "drain")
    assert house.is_empty()
    assert len(backup.listed(str(data))) == 1
    theirs = [row for row in queue_of(data) if row["session_id"] == "theirs"]
    assert [(row["skipped"], row["processed_by"]) for row in theirs] == [(None, "local")]


# --- one a store --------------------------------------------------------------------------------------------

RUN = """
# the line
sys.exit(10 if worker.run(sys.argv[2]) else 11)
"""


def test_of_five_workers_that_start_at_once_one_works(
    data: Path, house: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "2")
    for number in range(6):
        happened(data, f"s{number}", bash(f"make {number}"), STOP)
    drained(data)
    assert sorted(at_once(EACH + RUN, 5, str(data))) == [10, 11, 11, 11, 11]
    assert_each_seen_once(data)
    assert {row["attempts"] for row in queue_of(data)} == {1}
    assert house.is_empty()


# --- how it leaves ------------------------------------------------------------------------------------------


def test_a_worker_leaves_after_its_idle_time(
    data: Path, house: Household, forks: WorkerForks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "1")
    happened(data, "s", bash("make"), STOP)
    with forks.started(EACH + GO) as worker:
        assert eventually(lambda: settled(data))
        since = time.monotonic()
        assert listening(worker.pid) == [] and descendants(worker.pid) == []
        happened(data, "s", bash("make more"), STOP)  # while it is idle
        assert eventually(lambda: len(queue_of(data)) == 4 and settled(data))
        assert worker.wait(SECONDS) == 0
        assert time.monotonic() - since >= 1
    assert_each_seen_once(data)
    assert (data / "worker.lock").read_bytes() == b""
    assert house.is_empty()


# The worker has looked for the last time and still holds the lock, or has just let go of it, when somebody's
# turn ends: the hook sees the lock taken and starts none.
LATE = """
import subprocess
real, times = {what}, 0
def late(*args, **kwargs):
    global times
    times += 1
    if times == {nth}:
        {before}
        subprocess.run(["sh", {hook!r}, "drain"], input={payload!r}, check=True)
        wait_for_the_hook()
        return {result}
    return real(*args, **kwargs)
def wait_for_the_hook():
    import glob, time
    deadline = time.monotonic() + 20
    waiting = os.environ["HOME"] + "/.local/share/backstory/spool/new/*"
    while glob.glob(waiting) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)  # it drains, and then looks for a worker
{what} = late
"""
WINDOWS = {
    "after its last look": ("worker.asyncio.run", 1, "done = real(*args, **kwargs)", "done"),
    "after it is sure to have ended well": ("os.ftruncate", 2, "done = real(*args, **kwargs)", "done"),
}


@pytest.mark.parametrize(("what", "nth", "before", "result"), WINDOWS.values(), ids=WINDOWS.keys())
def test_what_arrives_as_the_worker_leaves_is_not_lost(
    what: str, nth: int, before: str, result: str, data: Path, house: Household, forks: WorkerForks
) -> None:
    with_backup(data)
    happened(data, "early", bash("make"), STOP)
    payload = json.dumps({**STOP, "session_id": "late"}).encode()
    program = EACH + LATE.format(
        what=what, nth=nth, hook=str(HOOK), payload=payload, before=before, result=result
    )
    happened(data, "late", bash("make late"))
    with forks.started(program + GO) as worker:
        assert worker.wait(SECONDS) == 0
        assert house.workers() == [], "the hook saw the lock taken"
    assert {row["session_id"] for row in queue_of(data)} == {"early", "late"}
    assert_each_seen_once(data)
    assert house.is_empty()


def test_a_worker_that_is_told_to_end_does_so_though_there_is_work(
    data: Path, house: Household, forks: WorkerForks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKSTORY_WORKER_IDLE_SECONDS", "60")
    happened(data, "s", bash("make"), STOP)
    with forks.started(EACH + "Each.seconds = 60\n" + GO) as worker:
        assert eventually(lambda: any(row["leased_until"] for row in queue_of(data)))
        worker.terminate()
        assert worker.wait(10) == 0
    assert [(row["attempts"], row["leased_until"]) for row in queue_of(data)] == [(0, 0)] * 2
    assert (data / "worker.lock").read_bytes() == b""
    assert forks.run(env={**os.environ, "BACKSTORY_WORKER_IDLE_SECONDS": "0"}) == 0
    assert_each_seen_once(data)
    assert house.is_empty()


# --- kill -9 at each step -----------------------------------------------------------------------------------

# Each replaces a function by one that dies, at its nth call.
STEPS = {
    "before it has the lock": "worker.locks.wait = die",
    "before the database is looked at": "worker.open_drained = die",
    "before the claim": "within.queue.claim = die",
    "in the claim": "within.queue.marks = die",
    "after the claim": "within.put_together = die",
    "before the model is asked": "within.Worker._observe = die",
    "while the model thinks": "Each.observe = die",
    "after the reply, before anything is stored": "within.Worker._keep = die",
    "while the findings are stored": "within.keep.__globals__['_keep_summary'] = die",
    "when the cost is stored": "within.spend.add = die",
    "before it is marked as observed": "within.queue.done = die",
    "before the transaction ends": "at_exit_of_the_transaction_with(within.queue.done)",
    "after the transaction": "within.log.write = lambda _, text: die() if 'observed by' in text else None",
    "when it leaves": "within.Worker.stopped = property(die)",
    "before it lets go of the lock": "os.ftruncate = lambda handle, size: None if alive() else die()",
}
NTH = """
alive_for = 1
def alive():
    global alive_for
    alive_for -= 1
    return alive_for >= 0

def at_exit_of_the_transaction_with(real):
    def then_die(*args):
        within.transaction.__exit__ = die
        return real(*args)
    within.queue.done = then_die
"""


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_a_worker_that_is_killed_at_any_step_leaves_everything_to_the_next(
    step: str, data: Path, house: Household, forks: WorkerForks
) -> None:
    happened(data, "one", prompt("mend the parser please"), bash("make"), STOP)
    happened(data, "two", bash("ls"), STOP)
    assert forks.run(EACH + NTH + step + GO) == -signal.SIGKILL, "the step is never reached"
    assert house.is_empty()
    if (data / "backstory.db").exists():
        assert_sound(data)
    assert forks.run() == 0
    assert_each_seen_once(data)
    assert len(rows(data, "SELECT 1 FROM session_summaries")) == 2
    assert len(rows(data, "SELECT 1 FROM memories WHERE kind = 'summary'")) == 2
    assert (data / "worker.lock").read_bytes() == b""
    assert house.is_empty()


def test_what_kills_every_worker_is_given_up_after_the_third_and_holds_up_nothing(
    data: Path, house: Household, forks: WorkerForks
) -> None:
    happened(data, "poison", bash("make poison"), STOP)
    happened(data, "sane", bash("make"), STOP)
    deadly = """
real = Each.observe
async def observe(self, batch):
    if batch.session.id == "poison":
        await asyncio.sleep(0.1)
        die()
    return await real(self, batch)
Each.observe = observe
"""
    assert [forks.run(EACH + deadly + GO) for _ in range(4)] == [-9, -9, -9, 0]
    assert_each_seen_once(data, may_skip="the worker ended three times while it was at it")
    assert {row["session_id"] for row in queue_of(data) if row["skipped"]} == {"poison"}
    assert house.is_empty()


def test_after_a_kill_the_next_worker_looks_at_the_database_first(
    data: Path, house: Household, forks: WorkerForks
) -> None:
    happened(data, "s", bash("make"), STOP)
    assert forks.run(EACH + STEPS["while the model thinks"] + GO) == -signal.SIGKILL
    assert (data / "worker.lock").read_bytes().strip().isdigit()
    assert forks.run() == 0
    assert "the last worker did not end well; checking the database" in log_text(data)
    assert forks.run() == 0
    assert log_text(data).count("did not end well") == 1
    assert house.is_empty()


# --- with the real Claude Code ------------------------------------------------------------------------------

# The worker as it is, but with less patience between two questions, and with a model that does not answer the
# first one. Later it has more: on a busy machine a Claude Code that is well takes as long.
IMPATIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.store import queue
from backstory.surfaces import worker
from backstory.synthesis.claude import Claude
queue.FIRST_WAIT_MS = 500
asked = set()
class Impatient(Claude):
    async def observe(self, batch):
        self._timeout = 3 if batch.session.id == "patience" and "patience" not in asked else 30
        asked.add(batch.session.id)
        return await super().observe(batch)
worker.Claude = Impatient
worker.main()
"""
# The worker as it is, with a Claude Code that waits a shorter time for its model.
HURRIED = """
import sys
sys.path.insert(0, sys.argv[1])
from backstory.surfaces import worker
from backstory.synthesis import claude
real = claude.environment
claude.environment = lambda env, timeout: real(env, 3)
worker.main()
"""


def healthy(title: str) -> Step:
    return together(
        use(OBSERVE, kind="discovery", title=f"Found {title}", text=f"It was {title}.", items=[1]),
        use(SUMMARISE, request=title, completed="seen", next_steps=""),
    )


class Sick(ScriptedModel):
    """Answers each session so often with its illness, and then well. A session is known by a word in its
    prompt, an illness is a step or an exception."""

    def __init__(self, **illnesses: tuple[Step | Exception, int]) -> None:
        super().__init__()
        self.illnesses = illnesses
        self.met: Counter[str] = Counter()

    def __enter__(self) -> Sick:
        super().__enter__()
        return self

    def answer(self, body: Json) -> Step:
        super().answer(body)
        whole = json.dumps(body.get("messages"))
        name = next((name for name in self.illnesses if f"about {name} please" in whole), "")
        if not name or not body.get("tools"):
            return say("ok")
        illness, times = self.illnesses[name]
        self.met[name] += 1
        if self.met[name] > times:
            return healthy(name)
        if isinstance(illness, Exception):
            raise illness
        return illness


def model_env(home: Path, model: ScriptedModel, **variables: str) -> dict[str, str]:
    path = f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"
    mine = {"BACKSTORY_SYNTHESIZER": "claude", "BACKSTORY_WORKER_IDLE_SECONDS": "0", "PATH": path}
    return {**environment(home, model.url), **mine, **variables}


def talk(data: Path, name: str) -> None:
    happened(data, name, prompt(f"tell me about {name} please"), bash(f"cat {name}"), STOP)


# A refusal (limits) and a line that breaks (wires) are met twice in a row. For the others that are waited for
# once is enough: all are `Away` to the queue, which does not ask why. To be of no use, a reply has to be put
# right in vain.
ONCE_SICK: dict[str, tuple[Step | Exception, int]] = {
    "limits": (fail(429, "rate_limit_error"), 2),
    "faults": (fail(500, "api_error"), 1),
    "logins": (fail(401, "authentication_error"), 1),
    "chatter": (say("Sure, I will remember that for you!"), 2),
    "silence": (say(""), 2),
    "patience": (say("too late").after(60), 1),
    "wires": (ConnectionResetError("scripted"), 2),
    "nonsense": (say("I would rather sing."), 1_000),
}


@pytest.mark.client
def test_a_model_that_fails_in_every_way_and_recovers_loses_nothing(
    home: Path, data: Path, house: Household, forks: WorkerForks
) -> None:
    for name in ONCE_SICK:
        talk(data, name)
    with Sick(**ONCE_SICK) as model:
        env = model_env(home, model, BACKSTORY_WORKER_IDLE_SECONDS="60")
        with forks.started(IMPATIENT, env=env) as worker:
            assert eventually(lambda: settled(data), 100), queue_of(data)
            assert listening(worker.pid) == []
            worker.terminate()
            assert worker.wait(SECONDS) == 0
        assert house.is_empty()
    found = {name: [row for row in queue_of(data) if row["session_id"] == name] for name in ONCE_SICK}
    for name, items in found.items():
        assert len(items) == 3
        if name == "nonsense":
            assert {row["processed_by"] for row in items} == {None}
            assert all("could not be used twice" in row["skipped"] for row in items)
        else:
            assert {(row["processed_by"], row["skipped"]) for row in items} == {("claude", None)}, name
    attempts = {name: items[0]["attempts"] for name, items in found.items()}
    waits = {name: items[0]["waits"] for name, items in found.items()}
    for name in ("limits", "faults", "logins", "patience", "wires"):
        assert attempts[name] == 1, f"{name} was waited for, and that is no attempt"
        assert waits[name] >= ONCE_SICK[name][1]
    assert waits["chatter"] == 0 and attempts["chatter"] == 2
    assert attempts["nonsense"] == 3
    titles = Counter(
        row["title"] for row in rows(data, "SELECT title FROM memories WHERE kind = 'discovery'")
    )
    assert titles == Counter(f"Found {name}" for name in ONCE_SICK if name != "nonsense")
    made = {row["session_id"] for row in rows(data, "SELECT session_id FROM session_summaries")}
    assert made == set(ONCE_SICK) - {"nonsense"}
    assert_sound(data)


@pytest.mark.client
def test_a_signal_during_a_model_call_ends_the_model_session_and_gives_the_lease_back(
    home: Path, data: Path, house: Household, forks: WorkerForks
) -> None:
    talk(data, "parsers")
    with Sick(parsers=(say("too late").after(60), 1)) as model:
        env = model_env(home, model, BACKSTORY_WORKER_IDLE_SECONDS="60")
        with forks.started(START_WORKER, env=env) as worker:
            assert eventually(lambda: model.met["parsers"] == 1)
            family = descendants(worker.pid)
            assert family, "Claude Code is a child of the worker"
            assert [pid for pid in family if stat(pid) == (worker.pid, "Z")] == []
            assert [port for pid in (worker.pid, *family) for port in listening(pid)] == []
            worker.terminate()
            assert worker.wait(15) == 0
        assert house.is_empty(2)
        assert [pid for pid in family if is_running(pid)] == []
        assert {(row["attempts"], row["leased_until"], row["waits"]) for row in queue_of(data)} == {(0, 0, 0)}
        assert (data / "worker.lock").read_bytes() == b""
        assert forks.run(START_WORKER, model_env(home, model)) == 0
    assert {row["processed_by"] for row in queue_of(data)} == {"claude"}
    assert len(rows(data, "SELECT 1 FROM session_summaries")) == 1
    assert house.is_empty()


@pytest.mark.client
def test_a_worker_that_is_killed_during_a_model_call_leaves_no_claude_behind(
    home: Path, data: Path, house: Household, forks: WorkerForks
) -> None:
    talk(data, "parsers")
    with Sick(parsers=(say("too late").after(60), 2)) as model:
        with forks.started(HURRIED, env=model_env(home, model)) as worker:
            assert eventually(lambda: model.met["parsers"] == 1)
            family = descendants(worker.pid)
            worker.kill()
            worker.wait()
        assert family
        assert house.is_empty(30), "Claude Code goes when nobody listens any more"
        model.met["parsers"] = 2
        assert forks.run(START_WORKER, model_env(home, model)) == 0
    assert [(row["processed_by"], row["attempts"]) for row in queue_of(data)] == [("claude", 2)] * 3
    assert len(rows(data, "SELECT 1 FROM memories WHERE kind = 'discovery'")) == 1
    assert_sound(data)
    assert house.is_empty()


@pytest.mark.client
def test_a_claude_that_is_killed_under_a_worker_costs_an_attempt_and_nothing_else(
    home: Path, data: Path, house: Household, forks: WorkerForks
) -> None:
    talk(data, "parsers")
    with (
        Sick(parsers=(say("too late").after(60), 1)) as model,
        forks.started(START_WORKER, env=model_env(home, model)) as worker,
    ):
        assert eventually(lambda: model.met["parsers"] == 1)
        os.kill(children(worker.pid)[0], signal.SIGKILL)
        assert worker.wait(SECONDS) == 0
    assert [(row["processed_by"], row["attempts"]) for row in queue_of(data)] == [("claude", 2)] * 3
    assert house.is_empty()
