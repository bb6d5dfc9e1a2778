"""Standing wishes of the user, and what is only said in passing."""

# ruff: noqa: E501  what people and programs say is not wrapped

from __future__ import annotations

import pytest

from backstory.synthesis.rules.wishes import is_about_user, wishes
from tests.helpers.scripted_session import Script, found, one

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
