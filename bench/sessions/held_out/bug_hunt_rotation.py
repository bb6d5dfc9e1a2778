"""A shell script deletes the wrong backups: a wrong suspicion, taken back, then the cause. The user commits."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/nightly"

ROTATE = """
#!/bin/sh
# rotate.sh FOLDER KEEP: leaves the newest KEEP of backup-1.tar, backup-2.tar, ...
set -eu
folder=$1
keep=$2

cd "$folder"
have=$(ls backup-*.tar | wc -l)
drop=$((have - keep))
[ "$drop" -gt 0 ] || exit 0
for file in $(ls backup-*.tar | sort | head -n "$drop"); do
    rm -- "$file"
done
"""
BACKUP = """
#!/bin/sh
# backup.sh SOURCE FOLDER: the next backup-N.tar
set -eu
last=$(ls "$2" | sed -n 's/^backup-\\([0-9]*\\)\\.tar$/\\1/p' | sort -n | tail -n 1)
tar -cf "$2/backup-$(( ${last:-0} + 1 )).tar" -C "$1" .
"""
TEST = """
#!/bin/sh
# sh tests/rotate_test.sh
here=$(cd "$(dirname "$0")/.." && pwd)
failed=0

check() { # NAME COUNT KEEP EXPECTED
    folder=$(mktemp -d)
    n=1
    while [ "$n" -le "$2" ]; do : > "$folder/backup-$n.tar"; n=$((n + 1)); done
    sh "$here/rotate.sh" "$folder" "$3"
    got=$(ls "$folder" | tr '\\n' ' ')
    if [ "$got" = "$4" ]; then
        echo "ok   $1"
    else
        echo "FAIL $1: expected '$4' got '$got'"
        failed=1
    fi
    rm -r "$folder"
}

check "nothing to drop" 2 3 "backup-1.tar backup-2.tar "
check "oldest goes" 4 3 "backup-2.tar backup-3.tar backup-4.tar "
exit $failed
"""
NEW_CHECK = 'check \\"ten and more\\" 11 3 \\"backup-10.tar backup-11.tar backup-9.tar \\"'

SCENARIO = Scenario(
    project="nightly",
    began="2026-04-02T06:48:00",
    first_commit="Nightly backups",
    files={
        "rotate.sh": ROTATE,
        "backup.sh": BACKUP,
        "tests/rotate_test.sh": TEST,
        "crontab": "5 2 * * * /opt/nightly\n",
    },
    turns=(
        turn(
            """
morning. the backup server kept the WRONG backups. there should be the newest 7, but in the folder are backup-3 to
backup-9 and everything after that is gone, so we have nothing newer than ten days. rotate.sh is the culprit I guess. it
worked fine the first week. please find out what happens, I need to be sure before tonight
""",
            read(f"{ROOT}/rotate.sh"),
            read(f"{ROOT}/backup.sh"),
            bash("sh tests/rotate_test.sh", "Run the tests that there are"),
            bash("cat /etc/cron.d/nightly", "How is it called?"),
            edit(
                f"{ROOT}/rotate.sh",
                'for file in $(ls backup-*.tar | sort | head -n "$drop"); do\n    rm -- "$file"\ndone',
                'ls backup-*.tar | sort | head -n "$drop" | while IFS= read -r file; do\n    rm -- "$file"\ndone',
            ),
            bash(
                "d=$(mktemp -d); for n in 1 2 3 4 5 6 7 8 9 10 11; do : > $d/backup-$n.tar; done; sh rotate.sh $d 7; ls $d",
                "Eleven backups, keep seven",
            ),
            bash("git checkout -- rotate.sh", "That was not it"),
            bash(
                "d=$(mktemp -d); for n in 1 2 3 9 10 11; do : > $d/backup-$n.tar; done; sh -x rotate.sh $d 3 2>&1 | "
                "grep -v '^+ :'; ls $d",
                "Trace it",
            ),
            bash(
                f'sed -i "s/^exit .failed/{NEW_CHECK}\\n&/" tests/rotate_test.sh && sh tests/rotate_test.sh',
                "Add a check with more than nine",
            ),
            read(f"{ROOT}/rotate.sh"),
            edit(
                f"{ROOT}/rotate.sh",
                "for file in $(ls backup-*.tar | sort | head",
                "# By number: as text, 10 comes before 9 and the newest would go first.\n"
                "for file in $(ls backup-*.tar | sort -t - -k 2 -n | head",
            ),
            bash("sh tests/rotate_test.sh", "Run the tests"),
            say(
                """I'm sure now. `rotate.sh` sorts the names as text, and as text `backup-10.tar` comes before `backup-2.tar`. Up
to nine backups that makes no difference, which is why the first week looked fine. From the tenth on, every new
backup sorts to the front and is deleted as "the oldest" in the night it was made.

The sort is numeric now (`sort -t - -k 2 -n`). I added a check with eleven backups to tests/rotate_test.sh; it failed
before and passes now. (I first suspected the word splitting in the for loop and rewrote it, but that made no
difference, so I took it back.)

The deleted backups are gone, rotate.sh used rm. I would run backup.sh by hand once before tonight."""
            ),
        ),
        turn(
            "uff ok, makes sense. would `sort -V` not be simpler? and does yours run on the macs in the office too",
            bash("printf 'backup-10.tar\\nbackup-9.tar\\n' | sort -t - -k 2 -n", "Once more, by itself"),
            say(
                "`sort -V` would be shorter, but it's a GNU extension; the older macOS versions don't have it. `-t`, `-k` and "
                "`-n` are POSIX and work the same on Linux and macOS, so I'd leave it like that."
            ),
        ),
        turn(
            "good, leave it. I'll commit it myself, want to write a longer message",
            say("Sure. Changed are `rotate.sh` and `tests/rotate_test.sh`, nothing else."),
        ),
    ),
)
