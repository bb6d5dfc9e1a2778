"""Only talk; among questions that pass, two wishes that stay."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, say, turn

SCENARIO = Scenario(
    project="tidepool",
    began="2026-05-11T09:00:00",
    files={"main.go": 'package main\n\nfunc main() {\n\tprintln("tide")\n}\n', "README.md": "# tidepool\n"},
    turns=(
        turn(
            "hey, what's the difference between a mutex and a semaphore again?",
            say(
                "A mutex has one owner: whoever locked it must unlock it, and only one may be inside. A semaphore is a counter "
                "with no owner: up to N may pass, and anybody may signal. So a mutex protects data, a semaphore limits how many "
                "do something at once.\n\n- mutex: lock / unlock, same goroutine\n- semaphore: acquire / release, any goroutine\n"
                "- in Go: sync.Mutex, and a buffered channel as semaphore"
            ),
        ),
        turn(
            "ok. shorter please, from now on two or three sentences at most unless I ask for more, and skip the bullet lists",
            say("Will do."),
        ),
        turn(
            "would you write `tidepool` with modules per package or one big package? just curious",
            bash("ls", "How big is it?"),
            say(
                "It's a single file so far, so one package. I'd split it only when a second program needs a part of it."
            ),
        ),
        turn(
            "makes sense. before I forget, Makefiles and everything else in this repo is indented with tabs, my editor config "
            "got lost. bear that in mind when you edit something here",
            say("Tabs everywhere, got it."),
        ),
        turn("do you always answer that fast? :)", say("On short questions, yes.")),
    ),
)
