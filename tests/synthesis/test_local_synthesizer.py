"""The rules of the local synthesizer: what they find, what they leave alone, and that they find it once."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import local_synthesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.capture.event import read_event
from backstory.intake.item import item_of
from backstory.model import Batch, Item, Memory, Observation, Project, Session, Summary
from backstory.store.queue import CHECKPOINT, COMPACT, FINALIZE, MARKS, PROMPT
from backstory.synthesis.local import Local, observe
from backstory.synthesis.rules import shell
from backstory.synthesis.rules.decisions import decisions
from backstory.synthesis.rules.prompts import is_request
from backstory.synthesis.rules.replaced import replaced
from backstory.synthesis.rules.wishes import is_about_user, wishes
from backstory.synthesis.rules.words import sentences, shorten
from tests.helpers.items import item

ROOT = "/home/dev/shop"
PROJECT = Project("p", 1, "shop", ROOT)

RED = "FAILED tests/test_cart.py::test_total - AssertionError: 3 != 4\n1 failed, 5 passed in 0.10s"
GREEN = "6 passed in 0.10s"


class Script:
    """A session, written down step by step."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    def add(self, tool: str, given: dict[str, Any], output: Any) -> Script:
        number = len(self.items) + 1
        self.items.append(item(tool, given, output, id=number, session_id="s", at=number * 1000))
        return self

    def ask(self, prompt: str) -> Script:
        return self.add(PROMPT, {"prompt": prompt}, {})

    def say(self, text: str) -> Script:
        return self.add(FINALIZE, {}, {"last_message": text})

    def bash(self, command: str, stdout: str = "", **more: Any) -> Script:
        return self.add("Bash", {"command": command}, {"stdout": stdout, "stderr": "", **more})

    def fail(self, command: str, error: str) -> Script:
        return self.add("Bash", {"command": command}, {"error": f"Exit code 1\n{error}"})

    def edit(self, file: str, old: str = "old", new: str = "new") -> Script:
        path = f"{ROOT}/{file}"
        return self.add("Edit", {"file_path": path, "old_string": old, "new_string": new}, {"filePath": path})

    def write(self, file: str, content: str = "x = 1\n") -> Script:
        path = f"{ROOT}/{file}"
        return self.add(
            "Write", {"file_path": path, "content": content}, {"type": "create", "filePath": path}
        )

    def read(self, file: str, content: str = "") -> Script:
        path = f"{ROOT}/{file}"
        return self.add(
            "Read", {"file_path": path}, {"type": "text", "file": {"filePath": path, "content": content}}
        )


def session(**changes: Any) -> Session:
    given: dict[str, Any] = {"status": "active", "user_prompt": None, **changes}
    return Session("s", "p", given["status"], 0, 0, None, given["user_prompt"], None, None, None)


def memory(number: int, kind: str, title: str, text: str, files: Sequence[str] = (), of: str = "s") -> Memory:
    return Memory(
        f"m{number}", number, "p", of, kind, "semantic", "project", title, text, (), tuple(files), (), (), None,
        0.6, 0.6, 0, number, None, None,
    )  # fmt: skip


class Store:
    """What would be in the store after some batches: superseded observations are gone."""

    def __init__(self) -> None:
        self.living: dict[str, Observation] = {}
        self.count = 0
        self.summary: Summary | None = None

    def take(
        self, items: Sequence[Item], earlier: Sequence[Item], *, over: bool = False
    ) -> list[Observation]:
        marked = any(item.tool in MARKS for item in items)
        known = [
            memory(int(key[1:]), one.kind, one.title, one.text, one.files) for key, one in self.living.items()
        ]
        batch = Batch(
            session(status="completed" if over else "active"),
            PROJECT,
            tuple(items),
            tuple(earlier),
            self.summary,
            tuple(known),
            marked or over,
        )
        found = observe(batch)
        self.summary = found.summary or self.summary
        for observation in found.observations:
            for old in observation.supersedes:
                self.living.pop(old, None)
            self.count += 1
            self.living[f"m{self.count}"] = observation
        return list(found.observations)


def lived(items: Sequence[Item], cuts: Sequence[int] | None = None) -> Store:
    """The session in batches: cut after each Stop, as in life, or wherever it is said."""
    stops = [place + 1 for place, item in enumerate(items) if item.tool == FINALIZE]
    bounds = sorted({0, *(stops if cuts is None else cuts), len(items)})
    store = Store()
    for start, end in itertools.pairwise(bounds):
        store.take(items[start:end], items[:start])
    return store


def found(script: Script) -> list[Observation]:
    return list(lived(script.items).living.values())


def one(script: Script) -> Observation:
    (observation,) = found(script)
    return observation


def summary_of(script: Script) -> Summary:
    summary = lived(script.items).summary
    assert summary is not None
    return summary


# --- wishes -------------------------------------------------------------------------------------------------

STANDING = [
    "Always run the linter before committing",
    "please always use type hints",
    "never push to main directly",
    "we use pnpm here, not npm",
    "great find! but we use conventional commits in this repo, can you reword",
    "From now on, write commit messages in English",
    "please don't add comments to obvious code",
    "don't ever force push",
    "I prefer short answers",
    "I hate emojis in commit messages",
    "prefer composition over inheritance",
    "we never mock the database in tests",
    "no please, no dependencies in shop. It has to run from a plain checkout",
    "Never use floats for money in this codebase please, it bit us before. can you change that one as well",
    "answer in German please",
    "use pnpm, not npm any more",
    "Remember that the staging database is read only",
    "in this project all timestamps are UTC",
    "we don't use default exports",
    "our convention is one class per file",
    "stop adding docstrings everywhere",
    "don't commit without asking me",
    "you should always run the tests before you say you're done",
    "I don't like abbreviations in variable names",
    "we only support Python 3.11 and newer",
    "thanks! one more thing: we squash all commits before merging, always",
    "before you commit, run make check",
    "fix the login please. and in general, never swallow exceptions",
    "whenever you change the schema, add a migration",
    "No new dependencies please",
    "nobody pushes to main without a review",
    "commit messages should be in English",
    "tests go next to the code, not in a separate folder",
    "I'm not a fan of ORMs",
    "no emojis please",
    "stick to the standard library please",
    "ask me before you install anything",
    "run the tests after every change",
    "branch names start with the ticket number",
    "hey, general rule: no force pushes",
    "add a delete endpoint. soft delete only, we never really delete rows here",
    "could you always run the tests before committing?",
    "pls use async everywhere",
    "every file needs a license header",
    # what the surroundings ask for, with the reason
    "no lodash or ramda please, keep the dependencies down",
    "posix sh only please, the router has no bash",
    "ascii only, the label printer can't do anything else",
    "add a cleanup job. python 3.9 only pls, the cluster has nothing newer",
    "it has to run on busybox, so plain sh",
    "the build must work without network, so vendor everything",
    "the core has no third party imports and we'd like to keep it that way",
    "this library has zero runtime dependencies, let's keep it that way",
    # rules that are stated: things in general, what must be, and where or how long it holds
    "tests here don't sleep, ever - pass the clock in",
    "log messages here never contain user data",
    "print statements are a no go in this codebase, use the logger",
    "raw SQL is not allowed in handlers, go through the repository layer",
    "nothing gets merged here without a test",
    "all money amounts are integers in cents in this codebase, no floats",
    "functions longer than 40 lines get rejected in review here",
    "logs must be json, our collector can't parse anything else",
    "our API responses are always snake_case",
    "strings shown to users go through i18n, always",
    "just give me the diff next time, no explanations",
    "house rule: no business logic in controllers",
    "for the future: ask before adding a dependency",
    "one commit per logical change, that's how we do it here",
    "dates in this project are stored as UTC, keep that in mind",
    "Makefiles in this repo are indented with tabs, my editor config got lost. bear that in mind when you edit something",
    "everything that talks to the network has a timeout, that's non negotiable for us",
    "we're a pnpm shop, please don't run npm",
    "I'd rather you ask before deleting anything",
    "please stop summarizing what you did at the end",
    "You don't need to ask me before running tests",
    "no more default exports please",
    "I usually want two options with pros and cons before you start coding",
    "dont reformat files you didnt touch",
]
PASSING = [
    "never mind",
    "Never seen this before",
    "I always get confused by the inner function",
    "why do I never see the inner function's name in the traceback then?",
    "what about the hosting, isn't postgres always a pain to operate?",
    "it always fails on CI",
    "we use redis here to cache sessions, why is it slow?",
    "do we use pytest or unittest?",
    "should we always use UTC?",
    "Don't change any code yet, I just want to know.",
    "please don't do that",
    "no change in behaviour pls",
    "we always get this error on Mondays",
    "we never got this to work",
    "don't worry about the tests for now",
    "I prefer the second option",
    "I hate this bug",
    "I hate it when this happens",
    "we use this function in three places and it breaks",
    "no problem, thanks",
    "No idea why",
    "can you always be this fast?",
    "don't touch the tests in this PR",
    "do you remember the auth bug?",
    "Two senders per host should be possible in future.",
    "always the same error",
    "we never find out which one it was",
    "we want to add a login page",
    "use sqlite instead of json for the cache",
    "Please add a --json option to the export command",
    "the total is never right",
    "we use tabs here, right?",
    "```\nnever use eval\n```",
    "> always answer in German",
    "/model never",
    "When you're done, run the tests",
    "explain in detail how it works",
    "reply with yes or no",
    "stop the server when you are done",
    "don't change anything in the tests",
    "Always good to know",
    "we use Postgres. Write me a query for the top ten customers",
    "I want all errors to be logged again",
    "by default show 20 rows",
    "remember to update the changelog",
    "make sure it always returns a list",
    "we should never get here",
    "tests should pass now",
    "nobody pushed anything",
    "you can always look at the logs",
    "the docs say you should always call close()",
    "Ich nehme immer den Zug",
    # the same words, said of one thing, of a problem or of what a program should do
    "the tests here don't pass",
    "tests here are slow, why?",
    "everything in this repo is broken after the merge",
    "all tests in this repo fail on my machine",
    "nobody here knows why it works",
    "rows here are sorted by date, I want them sorted by name",
    "please make sure the api never returns null here",
    "users must confirm their email, please add that",
    "the header must stay visible when scrolling",
    "all rows should have an id, but some don't",
    "our users always complain about the search",
    "we use kafka, maybe that's the problem",
    "four seconds is a no go",
    "convert lib/ to async pls. tests must stay as they are",
    "bear with me, I have to look it up",
    "next time slot should be highlighted",
    "we always did it like that in my old company",
    "emails only, no sms. add the sender",
    "it must work on mobile: make the table scroll",
    "the app has to run on windows, so check the paths please",
    "happens on ios only, android is fine",
    "the first page only, there's no need for the rest",
    "show admins only, there is no need for the others",
    "the page is blue now, let's keep it that way",
    "it works now. let's keep it that way",
    "no wait, that keeps the dependency",
    "does it have to run on windows, so with backslashes?",
    "keep that function, delete the other one",
]


@pytest.mark.parametrize("prompt", STANDING)
def test_a_standing_wish_becomes_a_preference(prompt: str) -> None:
    (preference,) = found(Script().ask(prompt).say("All right."))
    assert preference.kind == "preference"
    assert preference.cites == (1,)


@pytest.mark.parametrize("prompt", PASSING)
def test_what_is_only_said_in_passing_is_no_wish(prompt: str) -> None:
    assert found(Script().ask(prompt).say("All right.")) == []


def test_a_wish_is_kept_in_the_users_own_words_with_the_reason() -> None:
    preference = one(
        Script().ask("no please, no dependencies in shop. It has to run from a plain checkout").say("Ok.")
    )
    assert preference.title == "No dependencies in shop"
    assert preference.text == "No dependencies in shop. It has to run from a plain checkout."


def test_the_text_of_a_wish_is_all_that_the_user_said_of_it() -> None:
    alone = one(Script().ask("never push to main").say("Ok."))
    assert (alone.title, alone.text) == ("Never push to main", "Never push to main.")
    with_work = one(Script().ask("why is CI red? and always run the linter before you commit").say("Ok."))
    assert "CI" not in with_work.text
    long = "raw SQL is not allowed in handlers here, go through the repository layer because of the audit log"
    explained = one(Script().ask(long).say("Ok."))
    assert explained.title == "Raw SQL is not allowed in handlers here"
    assert explained.text == f"{long[0].upper()}{long[1:]}."


def test_where_a_wish_was_said_does_not_hide_that_it_was_taken_back() -> None:
    script = Script().ask("why is the build slow? we use npm in this repo").say("Ok.")
    script.ask("please look at the login form. and use pnpm, not npm any more").say("Ok.")
    assert [one.title for one in found(script)] == ["Use pnpm, not npm any more"]


def test_a_request_behind_a_wish_does_not_belong_to_it() -> None:
    ((wish, _),) = wishes("we use tabs in this repo, can you fix that")
    assert wish == "we use tabs in this repo"


@pytest.mark.parametrize(
    ("wish", "about_user"),
    [
        ("I prefer short answers", True),
        ("answer in German please", True),
        ("I can't stand long explanations", True),
        ("call me Alex", True),
        ("I prefer tabs over spaces", False),
        ("I hate emojis in commit messages", False),
        ("we use pnpm here, not npm", False),
        ("never push to main directly", False),
    ],
)
def test_a_wish_about_the_user_holds_in_every_project(wish: str, about_user: bool) -> None:
    assert is_about_user(wish) is about_user
    assert one(Script().ask(wish).say("Ok.")).is_global is about_user


def test_a_list_of_rules_is_a_list_of_wishes() -> None:
    prompt = "Our rules here:\n- tests next to the code\n- one class a file\n- snake_case for files"
    assert [wish for wish, _ in wishes(prompt)] == [
        "tests next to the code",
        "one class a file",
        "snake_case for files",
    ]


def test_the_same_wish_twice_in_a_session_is_one() -> None:
    script = Script().ask("never push to main").say("Ok.").ask("I said: never push to main").say("Sorry.")
    assert len(found(script)) == 1


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


# --- work ---------------------------------------------------------------------------------------------------


def test_a_failing_test_that_passes_after_edits_is_a_bugfix() -> None:
    script = Script().ask("the tests are red, please fix").fail("pytest -q", RED).edit("src/cart.py")
    script.bash("pytest -q", GREEN).say("The total left out the last line, because the loop ended early.")
    bugfix = one(script)
    assert bugfix.kind == "bugfix"
    assert "left out the last line" in bugfix.title + bugfix.text
    assert "test_total: AssertionError: 3 != 4" in bugfix.text
    assert bugfix.files == ("src/cart.py",)
    assert bugfix.cites == (2, 3, 4)


def test_a_commit_of_the_fix_is_not_a_second_observation() -> None:
    script = Script().ask("the tests are red, please fix").fail("pytest -q", RED).edit("src/cart.py")
    script.bash("pytest -q", GREEN).bash(
        "git commit -am 'Count the last line'", "[main 1234567] Count the last line"
    )
    bugfix = one(script.say("Done, committed."))
    assert (bugfix.kind, bugfix.title) == ("bugfix", "Count the last line")
    assert 5 in bugfix.cites


def test_two_bugs_with_two_commits_are_two_fixes_each_with_its_own_words() -> None:
    red = f"FAILED tests/test_mail.py::test_from - KeyError: 'from'\n{RED.replace('1 failed', '2 failed')}"
    script = Script().ask("CI is red").fail("pytest -q", red)
    script.edit("src/cart.py").bash("pytest -q tests/test_cart.py", "6 passed")
    script.bash("git commit -qam 'Totals count every line'")
    script.edit("src/mail.py").bash("pytest -q", "7 passed").bash("git commit -qam 'Mails have a sender'")
    script.say(
        "Two bugs:\n\n1. The cart skipped the last line, because of an off by one.\n"
        "2. The mail had no sender, because `from` was renamed."
    )
    cart, mail = found(script)
    assert (cart.kind, cart.title, cart.files) == ("bugfix", "Totals count every line", ("src/cart.py",))
    assert "off by one" in cart.text and "sender" not in cart.text
    assert (mail.kind, mail.title, mail.files) == ("bugfix", "Mails have a sender", ("src/mail.py",))
    assert "KeyError" in mail.text and "off by one" not in mail.text


def test_two_bugs_without_a_commit_are_told_apart_by_the_list_of_them() -> None:
    red = "not ok 3 - parses dates\n  error: 'off by an hour'\nnot ok 5 - sends mail\n  error: 'hang up'\n# pass 9\n# fail 2"
    script = (
        Script()
        .ask("tests fail since the upgrade")
        .fail("npm test", red)
        .edit("src/date.js")
        .edit("src/mail.js")
    )
    script.bash("npm test", "# pass 11\n# fail 0").say(
        "- **Dates**: `src/date.js` parsed days as local time.\n- **Mail**: `src/mail.js` kept sockets open."
    )
    assert [(one.kind, one.files) for one in found(script)] == [
        ("bugfix", ("src/date.js",)),
        ("bugfix", ("src/mail.js",)),
    ]


SUITE = "--- PASS: t_one\n--- {}: t_spaces\n--- {}: t_newest\n--- {}: t_default\n"
LIST = "- `t_newest`: names were sorted as text.\n- `t_spaces`: the path had lost its quotes.\n"


@pytest.mark.parametrize("commits", [False, True])
def test_bugs_in_one_file_are_told_apart_by_the_tests_that_failed(commits: bool) -> None:
    script = Script().ask("make the tests pass again").fail("./test.sh", SUITE.format("FAIL", "FAIL", "PASS"))
    script.bash("sed -i 's/sort/sort -n/' rotate.sh").edit("rotate.sh")
    script.bash("./test.sh | tail -4", SUITE.format("PASS", "PASS", "PASS"))
    if commits:
        script.bash("git commit -qam 'Make the tests pass'")
    newest, spaces = found(script.say(f"All green:\n\n{LIST}"))
    assert (newest.kind, newest.files, spaces.kind, spaces.files) == (
        "bugfix", ("rotate.sh",), "bugfix", ("rotate.sh",)
    )  # fmt: skip
    assert "sorted" in newest.text + newest.title and "quotes" not in newest.text + newest.title
    assert "quotes" in spaces.text + spaces.title and "sorted" not in spaces.text + spaces.title


@pytest.mark.parametrize(
    "said",
    [
        "- `t_newest` and `t_spaces` read the rate from the environment, which was not set.\n- There is a default now.",
        "The rate was not set, which broke:\n\n- `t_newest`\n- `t_spaces`\n\nThere is a default now.",
        "The rate was not set, which broke `t_newest`.\n\n- default added\n- `t_spaces` needed the same default",
    ],
)
def test_one_cause_of_two_failing_tests_is_one_bugfix(said: str) -> None:
    script = Script().ask("make the tests pass again").fail("./test.sh", SUITE.format("FAIL", "FAIL", "PASS"))
    script.edit("rotate.sh").bash("./test.sh", SUITE.format("PASS", "PASS", "PASS"))
    assert one(script.say(said)).kind == "bugfix"


def test_what_was_mended_is_told_though_one_test_is_left_to_ask_about() -> None:
    script = (
        Script().ask("make the tests pass again").fail("sh test.sh", SUITE.format("FAIL", "FAIL", "FAIL"))
    )
    script.edit("rotate.sh").edit("rotate.sh").fail("sh test.sh", SUITE.format("PASS", "PASS", "FAIL"))
    script.say(f"Two pass now:\n\n{LIST}\n`t_default` is left: 7 or 14 days, which one is right?")
    assert [one.kind for one in found(script)] == ["bugfix", "bugfix"]


def test_a_test_that_was_only_brought_up_to_date_is_no_bugfix() -> None:
    script = Script().ask("the test is old, bring it up to date").fail("pytest -q", RED)
    assert found(script.edit("tests/test_cart.py").bash("pytest -q", GREEN).say("All six pass.")) == []


def test_what_is_touched_up_in_a_new_feature_belongs_to_it() -> None:
    script = Script().ask("mails should wait while somebody sleeps").write("src/quiet.js", "x" * 400)
    script.bash("git add -A && git commit -qm 'Hold mails in quiet hours'")
    script.say(
        "Mails wait while the recipient has quiet hours. The hour is that of the recipient's time zone."
    )
    script.ask("and who has no time zone?").edit("src/quiet.js", "zone", "zone ?? 'UTC'")
    script.bash("git commit -qam 'Fall back to UTC'").say("A recipient without a time zone has UTC now.")
    feature = one(script)
    assert feature.title == "Hold mails in quiet hours"
    assert "UTC" in feature.text


def test_a_second_option_is_a_feature_of_its_own() -> None:
    script = Script().ask("add a --json option to list").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Add --json to list'").say("`list --json` prints the list as JSON.")
    script.ask("and --csv to list as well").edit("cli.py", "a", "b" * 90)
    script.bash("git commit -qam 'Add --csv to list'").say("`list --csv` prints the list as CSV.")
    assert [one.title for one in found(script)] == ["Add --json to list", "Add --csv to list"]


@pytest.mark.parametrize(
    "asked",
    [
        "the invoice shows nearly double the tax since we moved to the new rates, can you check?",
        "station 4 should be at 20 degrees but it shows 68",
        "how come the april report has more rows than it should?",
    ],
)
def test_a_report_of_what_goes_wrong_makes_a_bugfix_even_with_the_test_first(asked: str) -> None:
    script = Script().ask(asked).edit("tests/test_cart.py", "", "x" * 200).fail("pytest -q", RED)
    script.edit("src/cart.py").bash("pytest -q", GREEN).bash("git commit -qam 'Count each row once'")
    said = "The loader added up rows that were sent again, so they counted twice. Now the later one counts."
    assert one(script.say(said)).kind == "bugfix"


def test_a_test_that_was_written_first_makes_a_feature() -> None:
    script = Script().ask("add a discount to the cart").write("tests/test_discount.py").fail("pytest -q", RED)
    script.write("src/discount.py").bash("pytest -q", GREEN)
    assert one(script.say("`discount()` takes ten percent off from ten pieces on.")).kind == "feature"


def test_a_test_that_was_written_first_for_a_bug_makes_a_bugfix() -> None:
    script = Script().ask("the total is wrong for order 12").edit("tests/test_cart.py").fail("pytest -q", RED)
    script.edit("src/cart.py").bash("pytest -q", GREEN)
    assert one(script.say("Found it. The last line was skipped; it is counted now.")).kind == "bugfix"


def test_what_breaks_in_the_middle_of_a_refactoring_is_no_bug() -> None:
    script = Script().ask("move the storage out of app.py, no change in behaviour").bash("pytest -q", GREEN)
    script.write("src/storage.py", "def load(): return 1\n").edit("src/app.py").fail("pytest -q", RED)
    script.edit("src/app.py").bash("pytest -q", GREEN).say("Loading and saving live in `src/storage.py` now.")
    refactor = one(script)
    assert refactor.kind == "refactor"
    assert "Failed before" not in refactor.text


def test_code_that_went_from_one_file_to_another_is_a_refactoring() -> None:
    body = "def first_thing():\n    return compute(1)\n\ndef second_thing():\n    return compute(2)\n"
    script = Script().ask("app.py does too much").write("src/render.py", body).edit("src/app.py", body, "")
    assert one(script.say("Both functions are in `src/render.py`.")).kind == "refactor"


def test_a_fix_without_any_test_is_told_where_the_cause_is() -> None:
    script = Script().ask("the login button doesn't do anything").edit("web/login.js")
    script.say(
        "Fixed. The handler was registered before the page was ready, because the script is in the head."
    )
    assert one(script).kind == "bugfix"


def test_a_command_that_fails_and_later_passes_counts_like_a_test() -> None:
    script = (
        Script().ask("the image does not build").fail("docker build -t shop .", "error: command 'gcc' failed")
    )
    script.edit("Dockerfile").bash("docker build -t shop . 2>&1 | tail -3", "Successfully tagged")
    bugfix = one(
        script.say("Alpine has no wheels for lxml, so pip tried to compile it. The base is slim now.")
    )
    assert bugfix.kind == "bugfix"
    assert "command 'gcc' failed" in bugfix.text


@pytest.mark.parametrize(
    "script",
    [
        Script().ask("rename x to y here").edit("src/a.py").say("Renamed `x` to `y` in the helper function."),
        Script().ask("fix the typo in the readme").edit("README.md", "a", "b" * 500).say("The typo is fixed now."),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).say("The plan: a cache. Shall I go on?"),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).say("It still fails, the key is wrong."),
        Script().ask("add a cache").edit("src/a.py", "", "x" * 500).fail("pytest", RED).say("The cache is in now."),
        Script().ask("try it").write("scratch/t.py").bash("rm -r scratch").say("The scratch script is deleted again."),
        Script().ask("try it").edit("src/a.py", "", "x" * 500).bash("git checkout src/a.py").say("I took it back."),
        Script().ask("look").add("Edit", {"file_path": f"{ROOT}/a.py"}, {"error": "not found"}).say("It is not there."),
        Script().ask("where is it?").fail("ls nowhere", "No such file").say("There is no such folder."),
        Script().ask("is it used?").fail("grep -r foo .", "").say("No, nothing uses it."),
        Script().ask("commit this").bash("git commit -am wip", "[main 1234567] wip").say("Committed as wip."),
        Script().ask("merge it").bash("git merge x && git commit -m 'Merge x'", "Merge made").say("Merged the branch."),
        Script().ask("fix the lint errors").fail("ruff check .", "Found 3 errors").edit("src/a.py").bash("ruff check .").say("Three unused imports are gone now."),
        Script().ask("write tests for it").write("tests/test_a.py").bash("git commit -qam 'Tests of a'").say("There are four tests of `a` now."),
        Script().ask("bump").edit("pyproject.toml").bash("git commit -am 'Bump to 1.2'").say("The version is 1.2 now."),
        Script().ask("write a script").add(
            "Write", {"file_path": "/tmp/t.py", "content": "x" * 900}, {"type": "create"}
        ).say("The script prints the sizes of all tables."),
    ],
)  # fmt: skip
def test_what_is_small_unfinished_taken_back_or_elsewhere_is_not_told(script: Script) -> None:
    assert found(script) == []


def test_one_turn_of_edits_is_one_feature_told_in_the_assistants_words() -> None:
    script = Script().ask("implement retries in the client, 3 attempts").edit("src/http.py", "", "x" * 400)
    script.edit("src/http.py").edit("src/config.py")
    feature = one(script.say("`get()` now retries three times. Only connection errors are retried."))
    assert (feature.kind, feature.title) == ("feature", "`get()` now retries three times")
    assert feature.text == "Only connection errors are retried."
    assert feature.files == ("src/http.py", "src/config.py")
    assert "get" in feature.concepts


def test_work_that_goes_on_and_is_committed_later_is_one_observation() -> None:
    script = Script().ask("move the storage out of app.py").write("src/storage.py").edit("src/app.py")
    script.say("Loading and saving live in `src/storage.py` now. Not committed yet.")
    script.ask("now the rendering too").write("src/render.py").edit("src/app.py")
    script.bash("git add -A && git commit -m 'Split app.py into storage and render'")
    script.say("app.py is down to `main()`.")
    refactor = one(script)
    assert refactor.title == "Split app.py into storage and render"
    assert set(refactor.files) == {"src/app.py", "src/render.py", "src/storage.py"}


def test_committing_what_was_told_already_tells_nothing_new() -> None:
    script = Script().ask("implement retries").write("src/retry.py").say("`retry()` tries three times now.")
    script.ask("commit it please").bash("git commit -am 'feat: retries'", "[main 1234567] feat: retries").say(
        "Done."
    )
    assert one(script).title == "`retry()` tries three times now"


def test_rewording_commits_tells_nothing_new() -> None:
    script = Script().ask("add a --json flag").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Json flag'").say("`--json` prints the result as JSON.")
    script.ask("please reword the commit").bash(
        "git reset -q --soft HEAD~1 && git commit -q -m 'feat: --json'"
    )
    script.bash("git commit --amend -m 'feat: a --json flag'", "[main 1234567] feat: a --json flag").say(
        "Reworded."
    )
    assert one(script).title == "Json flag"


def test_an_amended_commit_replaces_the_one_before() -> None:
    script = Script().ask("add a --json flag").edit("cli.py", "", "x" * 400)
    script.bash("git commit -qam 'Add json flag'").say("`--json` prints the result as JSON.")
    script.ask("also for lists please").edit("cli.py").bash(
        "git commit -q --amend -m 'Add --json, lists too'"
    )
    feature = one(script.say("Lists are printed as JSON as well."))
    assert feature.title == "Add --json, lists too"


def test_a_correction_of_the_last_work_replaces_it() -> None:
    script = (
        Script().ask("cache the prices").write("src/cache.py").say("Prices are cached in a global dict now.")
    )
    script.ask("no, use the database for that").edit("src/cache.py", "a", "x" * 400)
    assert one(script.say("Prices are cached in the table `prices` now.")).title.startswith(
        "Prices are cached in the table"
    )


def test_the_commits_of_one_piece_of_work_are_one() -> None:
    script = Script().ask("add a retry helper and use it in the client").write("src/retry.py", "x = 1\n" * 90)
    script.bash("git add -A && git commit -qm 'Add retry helper'").edit("src/client.py")
    script.bash("git commit -qam 'Use retry helper in the client'").write("tests/test_retry.py")
    script.bash("git add -A && git commit -qm 'Tests for it'").edit("src/log.py")
    script.bash("git commit -qam 'Log to stderr'").say(
        "`retry()` backs off; the client uses it. Logs go to stderr."
    )
    retry, log = found(script)
    assert (retry.title, log.title) == ("Add retry helper", "Log to stderr")
    assert retry.files == ("src/retry.py", "src/client.py", "tests/test_retry.py")


def test_an_interrupted_turn_waits_for_the_next_to_finish_it() -> None:
    script = Script().ask("add a dark mode").edit("web/app.css", "", "x" * 400).ask("in the header as well")
    feature = one(script.edit("web/header.css").say("Dark mode is in, the header included."))
    assert feature.files == ("web/app.css", "web/header.css")


def test_a_session_that_broke_off_still_tells_what_was_committed() -> None:
    script = Script().ask("fix the crash on empty input").edit("src/parse.py")
    script.bash("git commit -qam 'fix: empty input'")
    store = Store()
    assert [one.title for one in store.take(script.items, (), over=True)] == ["Empty input"]
    assert store.summary is not None and "Empty input." in store.summary.completed
    before = tuple(script.items)
    script.say("Empty input gives an empty list now.")
    assert store.take(script.items[len(before) :], before) == []


@pytest.mark.parametrize(
    ("subject", "kind", "title"),
    [
        ("feat(cli): a --json flag", "feature", "A --json flag"),
        ("fix!: empty input", "bugfix", "Empty input"),
        ("refactor: storage of its own", "refactor", "Storage of its own"),
        ("Add a --json flag", "feature", "Add a --json flag"),
        ("Fix crash on empty input", "bugfix", "Fix crash on empty input"),
        ("Extract the storage", "refactor", "Extract the storage"),
        ("export: --separator for Excel", "feature", "Export: --separator for Excel"),
    ],
)
def test_a_commit_says_what_it_is(subject: str, kind: str, title: str) -> None:
    script = Script().ask("go on with the flag, an option please").edit("cli.py")
    observation = one(script.bash(f'git commit -am "{subject}"', f"[main 1234567] {subject}").say("Done."))
    assert (observation.kind, observation.title) == (kind, title)


@pytest.mark.parametrize(
    "subject", ["docs: how to install", "chore: bump", "test: more of them", "style: black"]
)
def test_chores_are_not_told(subject: str) -> None:
    assert found(Script().ask("go on").edit("cli.py").bash(f"git commit -qam '{subject}'").say("Done.")) == []


@pytest.mark.parametrize(
    ("prompt", "said", "kind"),
    [
        ("the parser is 900 lines, can you break it up? keep the api", "`parser` is now three files.", "refactor"),
        ("the dashboard is slow, make it faster", "Customers are preloaded now.", "refactor"),
        ("the app hangs when I add an account", "The lock was taken twice, because `add` calls `save`.", "bugfix"),
        ("fold the four importers into one. the output must stay the same", "The four importers are one now.", "refactor"),
        ("these are copies of the same script", "`run.sh` reads the name from its settings. All outputs are identical.", "refactor"),
        ("it should be possible to export the list", "The list is written to a file, which was missing so far.", "feature"),
        ("search returns deleted articles", "Deleted rows were never filtered out. They are left out now.", "bugfix"),
        ("users see yesterday's data after midnight", "The cache kept the date of its start. It asks on each request now.", "bugfix"),
        ("the report page", "The report was in one big file. It is a page of its own now.", "feature"),
        ("get the hard coded urls out of the code", "All urls are read from `settings.toml`, nothing else changed.", "refactor"),
        ("set the session to 12 hours", "Sessions end after 12 hours now.", "feature"),
        ("the service is down now and then. let's have the client retry", "It tries four times now.", "feature"),
    ],
)  # fmt: skip
def test_the_kind_follows_from_what_was_asked_and_said(prompt: str, said: str, kind: str) -> None:
    script = Script().ask(prompt).edit("src/a.py").edit("src/b.py").edit("src/a.py").say(said)
    assert one(script).kind == kind


def test_work_is_what_it_was_asked_for_at_first() -> None:
    script = Script().ask("let's have the client retry on 503. tests first").write("tests/test_retry.py")
    script.fail("pytest -q", RED).edit("src/client.py", "", "x" * 400).bash("pytest -q", GREEN)
    script.say("503 is tried again four times. Not committed yet.")
    script.ask("we must not ship a parcel twice!! leave POST alone").edit("src/client.py", "a", "b")
    script.bash("git commit -qam 'Retry transient errors'").say("POST is left alone.")
    assert one(script).kind == "feature"


def test_what_programs_make_is_nobodys_edit() -> None:
    made = [
        "src/__pycache__/a.pyc",
        "node_modules/x/index.js",
        "dist/app.js",
        "package-lock.json",
        ".coverage",
    ]
    changed = [f"{ROOT}/{file}" for file in ("src/cart.py", *made)]
    script = Script().ask("the tests are red").fail("pytest -q", RED)
    script.bash("sed -i s/a/b/ src/cart.py", bashEditDiff={"changedFiles": changed}).bash("pytest -q", GREEN)
    bugfix = one(script.say("The total left out the last line, because the loop ended early."))
    assert bugfix.files == ("src/cart.py",)


# --- reading Bash -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "output", "subjects"),
    [
        ("git commit -m 'One thing'", {"output": ""}, ["One thing"]),
        ('git add -A && git commit -qam "Say \\"hi\\""', {"output": ""}, ['Say "hi"']),
        (
            "git commit -m x",
            {"output": "[main (root-commit) 1234567] The truth\n 1 file changed"},
            ["The truth"],
        ),
        ("git commit -m a", {"error": "Exit code 1\n[main 1234567] A\nremote: rejected"}, ["A"]),
        ("git commit -m a", {"error": "Exit code 1\nhook failed"}, []),
        ("git commit -m a", {"output": "On branch main\nnothing to commit"}, []),
        ("git commit -F - <<'EOF'\nSubject\n\nBody.\nEOF", {"output": ""}, ["Subject"]),
        ("git commit -m \"$(cat <<'EOF'\nSubject\n\nBody.\nEOF\n)\"", {"output": ""}, ["Subject"]),
        ("git -C /x commit --message='One'", {"output": ""}, ["One"]),
        ("git commit -m A && git commit -m B", {"output": ""}, ["A", "B"]),
        ("python -m unittest -q && git commit -qam 'Once'", {"output": ""}, ["Once"]),
        ("git commit \\\n  -m 'Once' -- a.py && python -m pytest -m slow", {"output": ""}, ["Once"]),
        ("echo 'git commit -m no'", {"output": "git commit -m no"}, []),
        ("git log --grep commit -m", {"output": ""}, []),
        ("cat <<EOF\ngit commit -m 'no'\nEOF", {"output": ""}, []),
    ],
)
def test_commits_are_read_from_commands(command: str, output: dict[str, Any], subjects: list[str]) -> None:
    assert [commit.subject for commit in shell.read({"command": command}, output).commits] == subjects


def test_the_body_of_a_commit_is_read_without_its_trailers() -> None:
    command = "git commit -m 'One' -m 'Because of two.' -m 'Co-Authored-By: Claude <noreply@anthropic.com>'"
    (commit,) = shell.read({"command": command}, {"output": ""}).commits
    assert commit.body == "Because of two."


@pytest.mark.parametrize(
    ("command", "output", "passed", "names"),
    [
        ("pytest -q", {"output": "3 passed in 0.1s"}, True, ()),
        ("python -m pytest -q | tail -1", {"output": "1 failed, 3 passed"}, False, ("tests",)),
        ("uv run pytest tests", {"error": f"Exit code 1\n{RED}"}, False, ("tests/test_cart.py::test_total",)),
        ("npm test", {"output": "# pass 4\n# fail 0"}, True, ()),
        ("npm run test:unit", {"output": "not ok 2 - adds up\n# pass 1\n# fail 1"}, False, ("adds up",)),
        ("npx jest", {"error": "Exit code 1\n  ● cart › adds up\nTests: 1 failed, 2 passed"}, False, ("cart › adds up",)),
        ("go test ./...", {"output": "ok  \tshop/cart\t0.1s"}, True, ()),
        ("go test ./...", {"error": "Exit code 1\n--- FAIL: TestTotal (0.00s)\nFAIL"}, False, ("TestTotal",)),
        ("cargo test", {"output": "test cart::total ... FAILED\ntest result: FAILED. 1 passed; 1 failed"}, False, ("cart::total",)),
        ("python manage.py test", {"error": "Exit code 1\nFAIL: test_total (cart.Tests)\nFAILED (failures=1)"}, False, ("test_total (cart.Tests)",)),
        ("make check", {"error": "Exit code 2\nmake: *** [check] Error 2"}, False, ("tests",)),
        ("mix test", {"output": "12 tests, 0 failures"}, True, ()),
        ("mix test", {"error": "Exit code 2\n  1) test keeps rows (ImporterTest)\n2 tests, 1 failure"}, False, ("keeps rows",)),
        ("npm run build", {"error": "Exit code 1\nerror: no such module"}, False, ("npm run build",)),
    ],
)  # fmt: skip
def test_checks_are_read_from_commands(
    command: str, output: dict[str, Any], passed: bool, names: tuple[str, ...]
) -> None:
    check = shell.read({"command": command}, output).check
    assert check is not None
    assert (check.passed, check.names) == (passed, names)


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "cat x | grep y",
        "git status",
        "python -c 'import redis'",
        "which redis || echo none",
        "# pytest",
    ],
)
def test_what_only_looks_is_no_check(command: str) -> None:
    assert shell.read({"command": command}, {"error": "Exit code 1\nerror: no"}).check is None


# --- discoveries --------------------------------------------------------------------------------------------


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


# --- once only ----------------------------------------------------------------------------------------------

STEPS = [
    lambda script: script.ask("the total is wrong, please fix it"),
    lambda script: script.ask("add a --json flag and never print to stderr"),
    lambda script: script.ask("ok, let's go with Postgres"),
    lambda script: script.ask("yes"),
    lambda script: script.ask("we use npm in this repo"),
    lambda script: script.ask("use pnpm, not npm any more"),
    lambda script: script.ask("no, not like that"),
    lambda script: script.ask("why is it slow?"),
    lambda script: script.edit("src/cart.py", "a\n", "x" * 400),
    lambda script: script.edit("tests/test_cart.py"),
    lambda script: script.write("src/new.py"),
    lambda script: script.read("src/cart.py", "def total(): ..."),
    lambda script: script.fail("pytest -q", RED),
    lambda script: script.bash("pytest -q", GREEN),
    lambda script: script.bash("git commit -qam 'Count the last line'"),
    lambda script: script.bash("git commit -qam 'Add a flag'", "[main 1234567] Add a flag"),
    lambda script: script.bash("git commit -q --amend -m 'Add a better flag'"),
    lambda script: script.bash("git checkout src/cart.py"),
    lambda script: script.add(CHECKPOINT, {}, {}),
    lambda script: script.add(COMPACT, {"summary": "We fixed the total."}, {}),
    lambda script: script.say("The total was wrong because `total()` in `cart.py` skipped 1 of 3 lines; it counts all now."),
    lambda script: script.say("`--json` prints the result as JSON now."),
    lambda script: script.say("Shall I go on?"),
    lambda script: script.say(""),
]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.sampled_from(range(len(STEPS))), max_size=30), data=st.data())
def test_wherever_a_session_is_cut_the_same_is_found(steps: list[int], data: st.DataObject) -> None:
    script = Script()
    for step in steps:
        STEPS[step](script)
    cuts = data.draw(st.lists(st.integers(0, len(script.items)), max_size=8))
    whole, cut = lived(script.items, []), lived(script.items, cuts)

    def told(store: Store) -> list[tuple[Any, ...]]:
        return sorted((one.kind, one.title, one.text, one.files, one.cites) for one in store.living.values())

    assert told(cut) == told(whole)


def test_nothing_is_told_before_the_turn_has_ended() -> None:
    script = (
        Script().ask("the tests are red").fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    )
    store = Store()
    before = tuple(script.items)
    assert store.take(before, ()) == []
    script.say("The total left out the last line, because the loop ended early.")
    assert len(store.take(script.items[len(before) :], before)) == 1
    assert store.take(Script().say("Anything else?").items, script.items) == []


# --- the summary --------------------------------------------------------------------------------------------


def test_the_summary_tells_the_session() -> None:
    script = Script().ask("/clear").ask("ok").ask("the tests are red since tonight, please fix them")
    script.read("src/cart.py").add(
        "Bash", {"command": "git log", "description": "What changed last?"}, {"stdout": "x"}
    )
    script.fail("pytest -q", RED).edit("src/cart.py").bash("pytest -q", GREEN)
    script.bash("git commit -qam 'Count the last line'")
    script.say(
        "The total left out the last line, because the loop ended early. It counts all lines now. All tests pass.\n\n"
        "The README still has the old numbers; I can change it if you like."
    )
    summary = summary_of(script.ask("thanks, bye").say("Bye!"))
    assert summary == Summary(
        request="the tests are red since tonight, please fix them.",
        investigated="Read src/cart.py. Ran: What changed last?.",
        learned="The total left out the last line, because the loop ended early.",
        completed="Count the last line. It counts all lines now.",
        next_steps="The README still has the old numbers; I can change it if you like.",
        files_read=(),
        files_edited=(),
        notes="",
    )


def test_the_summary_says_what_is_asked_now_as_well() -> None:
    script = Script().ask("explain the cart module please").say("It adds up.").ask("now add a discount to it")
    script.write("src/discount.py").say("`discount()` takes ten percent off.")
    assert summary_of(script).request == "explain the cart module please. Later: now add a discount to it."


def test_what_still_fails_is_noted() -> None:
    script = (
        Script()
        .ask("add pages")
        .edit("src/api.py")
        .fail("pytest -q", RED)
        .say("Pages are in, one test fails.")
    )
    assert (
        summary_of(script).notes == "Still failing: tests/test_cart.py::test_total: AssertionError: 3 != 4."
    )
    script.ask("fix it").edit("src/api.py").bash("pytest -q", GREEN).say("The test passes now.")
    assert summary_of(script).notes == ""


def test_what_is_left_to_do_is_found_in_answers_and_promises() -> None:
    script = (
        Script().ask("anything left to do?").say("Two things:\n\n- the README has no word on it\n- no icon")
    )
    assert summary_of(script).next_steps == "The README has no word on it."
    script.ask("I'll do that tomorrow, you can stop here").say("Remember to run the migration first.")
    assert summary_of(script).next_steps == (
        "The user: I'll do that tomorrow, you can stop here. Remember to run the migration first."
    )


def test_a_long_request_is_told_by_how_it_begins_and_what_it_asks() -> None:
    story = "I have a shop with many many articles and " + "some more of them and " * 12 + "so on. "
    request = summary_of(Script().ask(f"{story}Which database would you take?").say("Postgres.")).request
    assert request.startswith("I have a shop")
    assert request.endswith("Which database would you take?")
    assert len(request) <= 330


def test_what_an_earlier_summary_knows_is_not_forgotten_when_the_items_are_gone() -> None:
    known = Summary(
        "Split the app.", "Read app.py.", "Plugins import it.", "The app is split.", "Tell the users.",
        ("app.py",), ("app.py",), "",
    )  # fmt: skip
    items = Script().ask("and now the docs please").say("Which docs do you mean?").items
    summary = observe(Batch(session(), PROJECT, tuple(items), (), known, (), True)).summary
    assert summary is not None
    assert summary.request == "Split the app. Later: and now the docs please."
    assert (summary.investigated, summary.learned, summary.completed) == (
        "Read app.py.",
        "Plugins import it.",
        "The app is split.",
    )
    assert summary.next_steps == "Tell the users."
    assert summary.files_edited == ("app.py",)


def test_no_summary_is_made_where_there_is_nothing_to_tell() -> None:
    assert lived(Script().bash("ls").say("").items).summary is None
    assert lived(Script().ask("hi").say("Hello!").items).summary is None
    assert lived(Script().edit("src/a.py").say("").items).summary is not None
    assert lived(Script().ask("explain the cart module").say("It adds up.").items).summary is not None


def test_no_summary_is_made_unless_it_is_wanted() -> None:
    items = Script().ask("add a flag please").edit("cli.py").items
    assert observe(Batch(session(), PROJECT, tuple(items), (), None, (), False)).summary is None


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("fix the login", True),
        ("", False),
        ("/compact", False),
        ("/review src/a.py", False),
        ("yes", False),
        ("ok go ahead", False),
        ("thanks, that's it for today", False),
        ("haha perfect, bye", False),
        ("nice, thx! are credit notes affected too?", True),
        ("请添加一个导出为CSV的命令", True),
    ],
)
def test_commands_and_thanks_are_no_requests(prompt: str, asks: bool) -> None:
    assert is_request(prompt) is asks


# --- hostile, strange, long ---------------------------------------------------------------------------------


def test_other_languages_are_told_as_far_as_they_are_understood() -> None:
    script = Script().ask("bitte füge einen Export als CSV hinzu").write("src/csv.py")
    script.say("Der Befehl `export` schreibt jetzt CSV. Die Spalten sind id und titel.")
    script.ask("请添加一个导出为CSV的命令。谢谢").write("src/导出.py").say(
        "已添加导出命令。现在可以导出CSV文件了。"
    )
    assert all(one.kind == "feature" for one in found(script))
    assert summary_of(script).request.startswith("bitte füge einen Export als CSV hinzu.")


STRANGE: list[Any] = [None, "", "text", 7, [], [None], {}, {"error": None}, {"file": "x"}, {"stdout": 3}]


@pytest.mark.parametrize(
    "tool", ["Bash", "Edit", "MultiEdit", "Write", "Read", "WebFetch", PROMPT, FINALIZE, COMPACT, "X"]
)
def test_items_of_any_shape_are_taken(tool: str) -> None:
    script = Script()
    for value in STRANGE:
        given = dict.fromkeys(
            ("command", "file_path", "edits", "content", "prompt", "url", "new_string"), value
        )
        script.ask("why?").add(tool, given, value).add(tool, {}, value).say("Because of `x`.")
    lived(script.items)


LONG = 30_000
HOSTILE = {
    "words": "we use always never " * (LONG // 20),
    "one word": "a" * LONG,
    "backticks": "`" * LONG,
    "code": "`a " * (LONG // 3),
    "quotes": "\"'" * (LONG // 2),
    "escaped": '\\"' * (LONG // 2),
    "commits": "git commit -m \"\\" * (LONG // 16),
    "heredocs": "<<EOF\n" * (LONG // 6),
    "brackets": "[" * (LONG // 2) + "](" * (LONG // 4),
    "stops": ". " * (LONG // 2),
    "commas": "no, " * (LONG // 4),
    "lines": "\n" * LONG,
    "bullets": "- never \n" * (LONG // 9),
    "stars": "**a" * (LONG // 3),
    "spaces": " " * LONG + "x",
    "errors": "E   AError: b\nFAILED a::b - c\nnot ok 1 - x\n" * (LONG // 44),
    "because": "because so it was not only the " * (LONG // 31),
    "numbers": "1,1.1" * (LONG // 5),
    "lets": "let's go with let's use " * (LONG // 24),
    "it is": "a b c d it " * (LONG // 11),
    "underscores": "a_" * (LONG // 2),
    "signs": "\x00\u202e\ud7ff" * (LONG // 3),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    """Twice the text takes about twice the time. Four times is allowed; quadratic time would be sixteen."""

    def cost(text: str) -> float:
        script = (
            Script()
            .ask(text)
            .bash(text, text)
            .fail(text, text)
            .fail("pytest", text)
            .bash(f"git commit -m '{text}'")
        )
        script.edit("a.py", text, text).add(
            "Read", {"file_path": text[:4_000]}, {"file": {"content": text}}
        ).say(text)
        script.ask(f"why? {text}").read("a.py", text).say(f"{text}. Because {text}")
        start = time.process_time()
        lived(script.items)
        return time.process_time() - start

    text = HOSTILE[name]
    cost(text[:1_000])  # warm
    assert cost(text) < max(4 * cost(text[: LONG // 4]) * 4, 2.0)


def test_a_thousand_items_are_looked_through_quickly() -> None:
    script = Script()
    for number in range(125):
        script.ask(f"why is the total of order {number} wrong? please fix it, we use it for invoices")
        script.read("src/cart.py", "def total():\n    return 1\n" * 100).fail("pytest -q", RED * 5)
        script.edit("src/cart.py", "a\n" * 500, "b\n" * 500).bash("pytest -q", GREEN * 20)
        script.bash(f"git commit -qam 'Count line {number}'")
        script.say("The total left out a line, because `total()` ended early. " * 10)
    assert len(script.items) > 850
    start = time.process_time()
    Store().take(script.items[-7:], script.items[:-7])
    assert time.process_time() - start < 5  # 0.3 s; a Stop has five


def test_a_prompt_full_of_wishes_gives_a_few() -> None:
    prompt = "\n".join(f"Never use library number {number}." for number in range(500))
    assert len(found(Script().ask(prompt).say("Ok."))) == 8


def test_what_is_stored_is_short_and_on_one_line() -> None:
    text = "The total\x1b[31m left out\u202e a line, because " + "of this and that " * 60
    script = (
        Script()
        .ask("why is it wrong? never use " + "x" * 300)
        .read("a.py")
        .edit("a.py")
        .edit("a.py")
        .edit("a.py")
    )
    for observation in found(script.say(text)):
        assert len(observation.title) <= 120
        assert len(observation.text) <= 600
        assert observation.title.isprintable() and observation.text.isprintable()


def test_texts_are_cut_where_they_can_be_cut() -> None:
    assert sentences("One (e.g. two). Three `a. b` four... five. Six!") == [
        "One (e.g. two).",
        "Three `a. b` four... five.",
        "Six!",
    ]
    assert shorten("One two three. Four five six seven.", 20) == "One two three."
    assert shorten("one two three, four five six seven", 20) == "one two three …"
    assert shorten("x" * 50, 20) == "x" * 19 + "…"
    assert shorten("short", 20) == "short"


# --- the sessions it is measured by -------------------------------------------------------------------------


def recorded(file: Path) -> tuple[list[Item], str]:
    items: list[Item] = []
    payload: dict[str, Any] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
        payload = json.loads(line)
        at = payload.pop("at")
        event = read_event(json.dumps(payload).encode(), spool_name=str(number), at=at)
        if queued := item_of(event):
            tool, given, output = queued[0], json.loads(queued[1]), json.loads(queued[2])
            action = event.use.action if event.use else None
            items.append(Item(len(items) + 1, "s", tool, given, output, at, None, action))
    return items, payload["cwd"]


def test_the_recorded_sessions_are_remembered_as_a_colleague_would(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = told = right = 0
    for file in sorted(local_synthesis.HERE.glob("*.jsonl")):
        items, root = recorded(file)
        monkeypatch.setattr(f"{__name__}.PROJECT", Project("p", 1, root.rsplit("/", 1)[-1], root))
        wanted = json.loads(file.with_suffix(".expected.json").read_text(encoding="utf-8"))["observations"]
        expected = [local_synthesis._expected(each) for each in wanted]
        kept = [
            local_synthesis.Found(one.kind, one.title, one.text, one.files)
            for one in lived(items).living.values()
        ]
        asked, told = asked + len(expected), told + len(kept)
        right += len(local_synthesis.match(expected, kept))
    assert asked >= 15
    assert right / told >= local_synthesis.TARGETS["precision"]
    assert right / asked >= local_synthesis.TARGETS["recall"]


def test_it_is_a_synthesizer() -> None:
    local = Local()
    items = tuple(Script().ask("never push to main").say("Ok.").items)

    async def use() -> int:
        findings = await local.observe(Batch(session(), PROJECT, items, (), None, (), True))
        await local.close("s")
        await local.close()
        return len(findings.observations)

    assert local.name == "local"
    assert asyncio.run(use()) == 1
