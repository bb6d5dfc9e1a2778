"""What was found out, and what is only an answer or a proposal."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import pytest

from tests.helpers.scripted_session import GREEN, Script, found, one


def test_a_cause_that_was_looked_for_is_a_discovery() -> None:
    script = Script().ask("why is the import so slow?").read("jobs/import.py", "def normalize(): ...")
    script.say(
        "The import spends 45 s in `normalize()`, because `import.py` compiles the same pattern for each of 120,000 "
        "rows.\n\nMoving it out of the loop would be easy. Shall I do that?"
    )
    discovery = one(script)
    assert discovery.kind == "discovery"
    assert discovery.title.startswith("The import spends 45 s in `normalize()`")
    assert discovery.files == ("jobs/import.py",)
    assert "would be easy" not in discovery.text


def test_facts_that_were_looked_up_are_discoveries() -> None:
    script = Script().ask("what's the rate limit of the API?")
    script.add("WebFetch", {"url": "https://docs.example.org/limits"}, {"result": "100 requests per minute"})
    discovery = one(
        script.say("The API allows 100 requests per minute; `429` comes with a Retry-After of 30 seconds.")
    )
    assert discovery.kind == "discovery"


def test_what_was_missing_is_a_discovery_where_it_was_found_out() -> None:
    script = (
        Script()
        .ask("run the tests")
        .fail("pytest -q", "E   ModuleNotFoundError: No module named 'yaml'\n1 error")
    )
    script.bash("pip install pyyaml", "Successfully installed").bash("pytest -q", GREEN)
    discovery = one(script.say("All pass. PyYAML was missing; it is not listed in requirements.txt."))
    assert (discovery.kind, discovery.title) == (
        "discovery",
        "PyYAML was missing; it is not listed in requirements.txt",
    )


def test_an_experiment_that_was_taken_back_taught_something() -> None:
    script = (
        Script()
        .ask("try lru_cache on get_user")
        .edit("src/user.py", "", "x" * 400)
        .bash("python bench.py", "slower")
    )
    script.bash("git checkout src/user.py").say(
        "`lru_cache` makes it slower, because the arguments are dicts that have to be converted. I took it out again."
    )
    assert one(script).kind == "discovery"


def test_the_answer_to_one_question_is_one_discovery() -> None:
    script = Script().ask("can you tell me how tokens are refreshed?").read("web/session.js").read("auth.py")
    script.say(
        "Front to back:\n\n1. `token()` in session.js uses a token until 30 seconds before it expires.\n"
        "2. After that it posts to `/refresh`; concurrent calls share one promise.\n"
        "3. `refresh()` in auth.py signs a new one for 5 minutes.\n\n"
        "The scanners use `/v1/renew` in legacy.js, which takes 3 parameters. I couldn't find its route."
    )
    discovery = one(script)
    assert "30 seconds" in discovery.text and "5 minutes" in discovery.text


def test_things_with_names_of_their_own_are_discoveries_of_their_own() -> None:
    script = Script().ask("what is wrong with the nightly job?").read("jobs/nightly.sh").read("crontab")
    script.say(
        "- **Time**: the `crontab` runs at 02:30 local time, which does not exist on 1 day a year because of DST.\n"
        "- **Disk**: `nightly.sh` keeps 400 archives of 2 GB, because the rotation only looks at `*.tar`."
    )
    assert len(found(script)) == 2


@pytest.mark.parametrize(
    "script",
    [
        # out of the model's head
        Script().ask("why is NFS a problem for SQLite?").say("Because `fcntl` locks are not reliable on NFS, `WAL` needs shared memory."),
        # an answer, not a finding
        Script().ask("are they affected too?").read("a.py").say("No, they are fine: `amount()` is the total with the sign turned around."),
        Script().ask("where is the config?").bash("ls", "a.toml").say("It is in `a.toml`."),
        # proposals
        Script().ask("what does it cost to change?").read("a.py").say("We'd need about 40 lines in `a.py`, because `take()` would have to claim."),
        # what is left to do
        Script().ask("anything left to do?").read("a.py").say("The README does not mention `export` in 3 places, because nobody asked."),
    ],
)  # fmt: skip
def test_answers_and_proposals_are_no_discoveries(script: Script) -> None:
    assert found(script) == []
