"""Only talk: how releases are to be numbered, how notes are to be written, and questions that settle nothing."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, say, turn

SCENARIO = Scenario(
    project="sketchpad-desktop",
    began="2026-03-25T10:05:00",
    first_commit="v3.8.1",
    files={"CHANGELOG.md": "# Changes\n\n## 3.8.1\n\n- Brushes load faster.\n"},
    turns=(
        turn(
            """
Good morning. No code today, I would just like to think aloud for a moment. Our desktop application follows
semantic versioning, and every month we spend half an hour arguing whether something is a minor or a major. What
would speak for and against calendar versions?
""",
            say(
                """### In favour of calendar versions
- Nobody has to argue: the date decides.
- Users see at once how old their copy is, and support does too.

### Against
- A number no longer warns of a break, so anything that *depends* on you by version loses information.
- Skipping a month leaves a gap that someone will ask about.

For an application that people install and run, the second list is short. For something others build upon, it weighs more."""
            ),
        ),
        turn(
            "I see. Should we use something like changesets to produce the numbers, do you think?",
            say(
                "It is an option. Changesets shines when many packages are released together; with one application a three-line script may be enough. "
                "It depends on how much of the release you want to automate."
            ),
        ),
        turn(
            """
Never mind the tooling then. We have decided: calendar versions for the application, in the form YYYY.MM.patch, starting
with the April release. The plugin API stays on semantic versioning, since third parties build against it.
""",
            say(
                "Understood. The April release would be **2026.04.0**, and the plugin API goes on with its own semantic version. Shall we also think about how "
                "the update check compares 3.8.1 with 2026.04.0?"
            ),
        ),
        turn(
            "It compares numbers part by part, so that will work. Something else: whenever you draft release notes for us, please write "
            "them for the people who draw with it. No ticket numbers and no internal code names.",
            say(
                "Gladly: release notes in the words of the people who draw, without ticket numbers or code names."
            ),
        ),
        turn(
            "Thank you. QA always gets the builds too late, by the way, but that is a topic for another morning.",
            say("Whenever you like. Have a good day!"),
        ),
    ),
)
