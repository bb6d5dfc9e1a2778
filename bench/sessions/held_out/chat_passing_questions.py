"""Only talk that sounds like wishes and decisions, and is neither."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, say, turn

SCENARIO = Scenario(
    project="sandbox",
    began="2026-05-13T20:41:00",
    files={"a.txt": "a\n"},
    turns=(
        turn(
            "Why does `git pull` always want to merge? I never know which option it wants from me",
            say(
                "Since 2.27 git asks what to do when both sides have commits. `git config pull.rebase true` replays yours on "
                "top, `false` merges, `pull.ff only` refuses. If you work alone on a branch, rebase is usually the quiet choice."
            ),
        ),
        turn(
            "and in a hypothetical company with 50 people, monorepo or many repos, what should one use?",
            say(
                "It depends on how often changes cross the borders. If most features touch several services, a monorepo saves "
                "a lot of coordination; if teams release on their own, many repositories are simpler. With 50 people I'd choose a "
                "monorepo as long as one build tool fits all."
            ),
        ),
        turn(
            "interesting. we used svn at my first job, never again lol",
            say("Many people have that memory! At least nobody ever had to explain a detached HEAD."),
        ),
        turn("ok enough, good night", say("Good night!")),
    ),
)
