"""Only talk, and nothing in it that anybody would look for again."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, say, turn

SCENARIO = Scenario(
    project="scratchpad",
    began="2026-03-20T11:02:00",
    files={"notes.txt": "nothing\n"},
    turns=(
        turn(
            "can you explain what a python decorator actually does? I always get confused by the inner function",
            say(
                "A decorator is a function that gets a function and returns another one to be used instead. `@timed` above "
                "`def f` is short for `f = timed(f)`. The inner function is that replacement: it closes over the original, "
                "does something before and after, and calls it in between. Always put `functools.wraps` on it, or the name "
                "and docstring of the original are lost."
            ),
        ),
        turn(
            "ah. and why do I never see the inner function's name in the traceback then?",
            say(
                "You do see it, tracebacks show the name of the code object, so it says `wrapper` even with `wraps`: that "
                "changes `__name__`, not `__code__.co_name`."
            ),
        ),
        turn(
            "lol ok. give me a name for a cat that belongs to a programmer",
            say(
                "Let's go with Semicolon. Quiet, easily overlooked, and everything breaks when it is missing."
            ),
        ),
        turn("haha perfect, bye", say("Bye!")),
    ),
)
