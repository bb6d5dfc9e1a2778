"""Only talk, and none of it about the project: nothing to keep, though 'always' and 'never' are said."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, say, turn

SCENARIO = Scenario(
    project="scratch",
    began="2026-05-02T22:47:00",
    git=False,
    files={"todo.txt": "buy coffee\n"},
    turns=(
        turn(
            "whats the differnce between rsync -a and cp -a again",
            say(
                "Both keep modes, owners, times and links. `rsync -a` skips files that look unchanged (size and mtime), `cp -a` copies everything again."
            ),
        ),
        turn(
            "then why does rsync always copy everything when its my usb stick",
            say(
                "Probably FAT: it stores times in steps of two seconds, so nearly every mtime looks different. `--modify-window=2` helps."
            ),
        ),
        turn(
            "lol ok. never had that on the old laptop. should i use exfat insted?",
            say(
                "It would help with the times, and with files over 4 GB. Older devices may not read it, though. Depends on where you plug it in."
            ),
        ),
        turn(
            "never mind found a bigger disk. we need to go with something fancy for dinner tho, quick what goes with leftover rice",
            say("Fried rice: egg, spring onions, soy sauce, whatever vegetables are left. Ten minutes."),
        ),
        turn("k thx, bye", say("Enjoy!")),
    ),
)
