"""What was decided, by whom and why, and which older choice it replaces."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import pytest

from backstory.model import Batch, Observation
from backstory.synthesis.local import observe
from backstory.synthesis.rules.decisions import decisions
from backstory.synthesis.rules.replaced import replaced
from tests.helpers.scripted_session import PROJECT, Script, found, memory, one, session

# --- decisions ----------------------------------------------------------------------------------------------


OFFER = (
    "Two ways:\n\n1. **Redis** keeps it in memory.\n2. **SQLite** needs no server.\n\nI'd take the second."
)

KEPT = "One thing is left: `app.py` still re-exports `load`. I'd remove it in the next major version."

DECIDED = [
    ("ok convinced, let's go with Postgres then, managed. and photos go to s3", "", "Postgres, managed"),
    ("alright: sqlite it is, in WAL mode", "", "sqlite it is, in WAL mode"),
    ("let's go with the second one", OFFER, "SQLite needs no server"),
    ("agreed, keep them until 2.0", KEPT, "keep them until 2.0 (One thing is left: `app.py` still"),
    ("we decided to drop Python 3.9", "", "drop Python 3.9"),
    ("let's use FastAPI instead of Flask because of async", "", "use FastAPI instead of Flask"),
    ("we're switching from npm to pnpm", "", "we're switching from npm to pnpm"),
    ("yes, use UUIDs for the ids", "I'd use UUIDs or integers.", "use UUIDs for the ids"),
    ("sqlite please", "Both work. SQLite or Redis?", "sqlite (SQLite or Redis?)"),
    ("ok s3 then", "Disk is simpler, S3 scales. I'd take S3.", "s3"),
    ("let's go with a plain list", OFFER, "a plain list"),
    ("authlib then. emails change, so store the sub", "I'd take authlib, allauth is big.", "authlib"),
    ("Support for XML goes away with 3.0, until then it stays", "", "Support for XML goes away with 3.0"),
    ("the v1 endpoint will be removed in 5.0", "", "the v1 endpoint will be removed in 5.0"),
    ("use a queue instead of cron, because cron can't retry", "", "use a queue instead of cron"),
    ("we've switched from yarn to pnpm", "", "we've switched from yarn to pnpm"),
    ("we have decided: one repo for both apps, starting in May", "", "one repo for both apps"),
    ("the driver is only built for 3.11 so we have to stay on that", "", "the driver is only built for 3.11"),
    ("ok, prod still runs mysql 5.7, so we can't use window functions", "", "prod still runs mysql 5.7"),
    ("we're stuck on node 16 because of the old build image", "", "we're stuck on node 16"),
    ("we have to stick with webpack until the plugin is ported", "", "we have to stick with webpack until"),
    ("let's go with option B", "**Option A**: Redis.\n\n**Option B**: SQLite.", "Option B: SQLite"),
]

UNDECIDED = [
    ("let's go", ""),
    ("let's go with that", ""),
    ("should we go with redis?", ""),
    ("let's move on to the next thing", ""),
    ("tell me what it is", ""),
    ("let's take a look at the logs", ""),
    ("keep going", OFFER),
    ("yes, keep it", OFFER),
    ("we haven't decided yet", ""),
    ("the problem is that it is slow", ""),
    ("as it is now, the test fails", ""),
    ("I think it is the cache", ""),
    ("let's go with the fourth one", OFFER),
    ("yes, use UUIDs for the ids", "The ids are integers."),
    ("let's use a dropdown for the status and add a filter", ""),
    ("I chose the wrong branch", ""),
    ("we moved to Berlin last year", ""),
    ("go on with the flag", OFFER),
    ("sqlite?", "Both work. SQLite or Redis?"),
    ("no idea", "Both work. SQLite or Redis?"),
    ("we moved the image from node 18 to node 20 and now the tests have failures", ""),
    ("we switched from mysql to postgres and since then the import is broken", ""),
    ("the spinner stays until I reload the page", ""),
    ("why is it removed in 5.0?", ""),
    ("use the other endpoint instead", ""),
    ("i looked at the logs for an hour, so we need to use another approach here", ""),
    ("i can't use the search because it hangs", ""),
    ("we have to move the button to the left because it overlaps", ""),
    ("safari doesn't support that, so we can't use it", ""),
    ("why do we have to stay on 3.11?", ""),
    ("the page is not ready, so i have to go now", ""),
    ("nice", "I'd take authlib, allauth is big."),
]


@pytest.mark.parametrize(("prompt", "before", "what"), DECIDED)
def test_the_user_decides(prompt: str, before: str, what: str) -> None:
    ((decided, words),) = decisions(prompt, before)
    assert decided.startswith(what)
    assert words in prompt


@pytest.mark.parametrize(("prompt", "before"), UNDECIDED)
def test_nothing_was_decided(prompt: str, before: str) -> None:
    assert list(decisions(prompt, before)) == []


def test_a_decision_brings_the_reason_that_was_given_before() -> None:
    script = Script().ask("postgres or mysql for the shop?").say("Postgres, because PostGIS is made for it.")
    decision = one(script.ask("ok, let's go with Postgres").say("Good."))
    assert decision.kind == "decision"
    assert decision.title == "Decided: Postgres"
    assert "because PostGIS is made for it" in decision.text


ADVICE = "`sort -V` would be shorter, but it is a GNU extension, so I'd leave it like that."

QUESTION = "`settle` waits 5 to 25 ms, so the test can hardly pass. What should it be?"


@pytest.mark.parametrize(
    ("before", "prompt", "says"),
    [
        (ADVICE, "good, leave it. I'll commit it myself", "GNU extension"),
        ("Redis is faster, but it needs a server. I'd use SQLite.", "makes sense, do that", "needs a server"),
        ("I would keep the old names because plugins import them.", "agreed", "plugins import them"),
        (QUESTION, "that's old stuff, gets rewritten in summer anyway. skip it for now", "waits 5 to 25 ms"),
        ("Two rows have no date. Should they be dropped or kept?", "keep them, because finance needs all rows", "finance"),
        ("The test wants 7 days, the config 30. Which is right?", "30, legal needs a month since last year", "legal"),
        ("`eu` skips the cache. Is that on purpose?", "yes, eu sits behind the proxy of the bank", "bank"),
        ("It never sends mail to admins. Is that intended?", "no that's a leftover from the old portal", "portal"),
        ("Which port should it use?", "use 8123, otherwise it collides with the proxy", "8123"),
    ],
)  # fmt: skip
def test_agreeing_to_advice_or_answering_a_question_with_a_reason_decides(
    before: str, prompt: str, says: str
) -> None:
    decision = one(Script().ask("would that be simpler?").say(before).ask(prompt).say("Good."))
    assert decision.kind == "decision"
    assert says in decision.text


@pytest.mark.parametrize(
    ("before", "prompt"),
    [
        (ADVICE, "good, and what about the macs?"),
        (ADVICE, "thanks, bye"),
        ("I'd add an index, because the query is slow. Shall I?", "makes sense"),
        ("I'd use SQLite.", "makes sense"),  # nobody said why
        ("Shall I commit it?", "yes, commit it, but only the two files in src please"),
        ("Which port should it use?", "8123"),
        ("`eu` skips the cache. Is that on purpose?", "yes"),
        ("`eu` skips the cache. Is that on purpose?", "can you look at the git log to find out about that"),
        ("What should it be?", "add a page for users first, they never see the old one anyway"),
    ],
)
def test_thanks_and_tasks_decide_nothing(before: str, prompt: str) -> None:
    assert found(Script().ask("would that be simpler?").say(before).ask(prompt).say("Good.")) == []


def test_a_short_answer_to_a_comparison_decides() -> None:
    script = Script().ask("what are the pros and cons of calver?")
    script.say("Calver shows the age of a release. Semver warns of breaks.")
    decision = one(script.ask("calver then. yes, 2026.04").say("Good."))
    assert (decision.kind, decision.title) == ("decision", "Decided: calver")
    assert "2026.04" in decision.text


def test_naming_the_cause_again_decides_nothing() -> None:
    script = Script().ask("is it the cache or the database?").say("The cache is cold after a deploy.")
    assert found(script.ask("ah the cache").say("Yes.")) == []


@pytest.mark.parametrize(
    "said",
    [
        "I decided to retry only GET, because a POST may have been booked already.",
        "`index.js` still takes a callback. I kept that because `build` is the public interface.",
        "I deliberately left the table name alone, since the reporting job reads it.",
        "I used a window in Redis rather than in memory because there are three instances.",
    ],
)
def test_what_the_assistant_chose_with_a_reason_is_a_decision(said: str) -> None:
    script = (
        Script()
        .ask("retry requests")
        .edit("client.py", "", "x" * 400)
        .say(f"The client retries three times now. {said}")
    )
    decision = next(one for one in found(script) if one.kind == "decision")
    assert ("callback" in decision.text) == ("callback" in said)


@pytest.mark.parametrize(
    "said",
    [
        "I left the tests alone, because you asked for that.",
        "I kept the style of the file.",
        "I'd use Redis because there are three instances.",
        "I first tried a cache, because reads are slow, and took it out again.",
    ],
)
def test_what_was_no_choice_is_no_decision(said: str) -> None:
    script = (
        Script()
        .ask("retry requests")
        .edit("client.py", "", "x" * 400)
        .say(f"The client retries three times now. {said}")
    )
    assert [one.kind for one in found(script)] == ["feature"]


def test_the_users_word_takes_the_place_of_what_the_assistant_chose() -> None:
    script = Script().ask("convert lib to async").edit("lib/index.js", "", "x" * 400)
    script.say(
        "It is async now. `build` still takes a callback. I kept that because a callback is the public interface."
    )
    script.ask("fine. Callback support goes away with 3.0, until then it stays").say("Ok.")
    decisions_left = [one for one in found(script) if one.kind == "decision"]
    assert len(decisions_left) == 1
    assert "3.0" in decisions_left[0].text and "public interface" in decisions_left[0].text


def test_what_the_assistant_proposes_is_no_decision() -> None:
    script = Script().ask("a name for the cat?").say("Let's go with Semicolon. I'd choose it over Comma.")
    assert found(script) == []


def test_what_the_assistant_chose_is_a_decision() -> None:
    script = Script().ask("cache the results").edit("cache.py", "", "x" * 400)
    script.say("Results are cached for an hour. I chose SQLite over pickle because several processes write.")
    assert [one.kind for one in found(script)] == ["feature", "decision"]


def test_a_wish_that_sounds_like_a_decision_is_one_thing() -> None:
    assert one(Script().ask("from now on let's use pnpm instead of npm").say("Ok.")).kind == "preference"


# --- superseding --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "known", "gone"),
    [
        ("use pnpm, not npm any more", "We use npm in this repo", True),
        ("Decided: we're switching from npm to pnpm", "Always use npm to install", True),
        ("Decided: use Postgres instead of MySQL", "Decided: MySQL", True),
        ("Decided: use Postgres instead of MySQL", "Decided: mysql it is", True),
        ("The line length is 120 in this project", "The line length is 100 in this project", True),
        ("Don't run the linter before committing any more", "Run the linter before committing", True),
        ("use pnpm, not npm any more", "Never use npm", False),
        ("use pnpm, not npm any more", "use pnpm, not npm", False),
        ("use pnpm, not npm any more", "We use npm-run-all in scripts/npm-check", False),
        ("use pnpm, not npm any more", "We use tabs", False),
        ("We use tabs in this repo", "We use ruff in this repo", False),
        ("Never push to main", "Never push to main", False),
        ("Port 8081 is the admin", "Port 8080 is the shop", False),
        ("Never use floats for money", "Use Decimal for money", False),
    ],
)
def test_a_new_choice_replaces_the_old_one_only_where_that_is_sure(now: str, known: str, gone: bool) -> None:
    old = memory(1, "preference", known, f"{known}.", of="another")
    assert replaced(Observation("preference", now, f"{now}."), [old]) == (["m1"] if gone else [])


def test_only_decisions_and_preferences_are_replaced_and_replace() -> None:
    known = [
        memory(1, "discovery", "We use npm", "We use npm."),
        memory(2, "preference", "We use npm", "We use npm."),
    ]
    assert replaced(Observation("preference", "use pnpm, not npm", "use pnpm, not npm"), known) == ["m2"]
    assert replaced(Observation("feature", "use pnpm, not npm", "use pnpm, not npm"), known) == []


def test_superseding_reaches_the_findings() -> None:
    items = Script().ask("from now on use pnpm, not npm").say("Ok.").items
    known = memory(1, "preference", "We use npm in this repo", "We use npm in this repo.", of="another")
    (now,) = observe(Batch(session(), PROJECT, tuple(items), (), None, (known,), True)).observations
    assert now.supersedes == ("m1",)
