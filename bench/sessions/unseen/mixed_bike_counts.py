"""A day with a data script: a fix, an idle question, a feature, a fact about a sensor, a step back, a wish."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, edit, read, say, turn

ROOT = "/home/dev/bikecount"

LOAD = '''
"""Counts per station and hour, from the files that the sensors send."""

import csv


def load(paths):
    counts = {}
    for path in paths:
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                key = int(row["station"]), row["hour"]
                counts[key] = counts.get(key, 0) + int(row["bikes"])
    return counts
'''
SUMMARY = """
def by_station(counts):
    found = {}
    for (station, _), bikes in counts.items():
        found[station] = found.get(station, 0) + bikes
    return found
"""
CLI = """
import argparse

from bikecount.load import load
from bikecount.summary import by_station


def main(argv=None):
    parser = argparse.ArgumentParser(prog="bikecount")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args(argv)
    for name, bikes in sorted(by_station(load(args.files)).items()):
        print(name, bikes)


if __name__ == "__main__":
    main()
"""
TEST = """
import tempfile
import unittest
from pathlib import Path

from bikecount.load import load
from bikecount.summary import by_station


class LoadTest(unittest.TestCase):
    def files(self, *contents):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        paths = [folder / f"{n}.csv" for n in range(len(contents))]
        for path, content in zip(paths, contents):
            path.write_text("station,hour,bikes\\n" + content)
        return paths

    def test_two_hours(self):
        counts = load(self.files("12,2026-03-08T10,5\\n12,2026-03-08T11,6\\n"))
        self.assertEqual(by_station(counts), {12: 11})


if __name__ == "__main__":
    unittest.main()
"""

SCENARIO = Scenario(
    project="bikecount",
    began="2026-03-10T08:30:00",
    first_commit="Counting bikes",
    files={
        "bikecount/__init__.py": "",
        "bikecount/load.py": LOAD,
        "bikecount/summary.py": SUMMARY,
        "bikecount/cli.py": CLI,
        "tests/__init__.py": "",
        "tests/test_load.py": TEST,
        "sensors.yaml": "sensors:\n  7: {station: 12, lane: north}\n  8: {station: 12, lane: south}\n  9: {station: 14, lane: both}\n",
        "Dockerfile": 'FROM python:3.11-slim\nCOPY . /app\nWORKDIR /app\nENTRYPOINT ["python", "-m", "bikecount.cli"]\n',
        "data/2026-03-08.csv": "station,hour,bikes\n12,2026-03-08T10,40\n12,2026-03-08T11,55\n14,2026-03-08T10,9\n",
        "data/2026-03-08-backfill.csv": "station,hour,bikes\n12,2026-03-08T10,40\n12,2026-03-08T11,57\n12,2026-03-08T12,61\n",
        ".gitignore": "__pycache__/\n",
    },
    turns=(
        turn(
            "morning! station 12 has nearly twice the bikes it should have on sunday, since we ran the backfill. can you have a look?",
            bash("python -m bikecount.cli data/*.csv && grep -n T10 data/*.csv", "Reproduce"),
            read(f"{ROOT}/bikecount/load.py"),
            read(f"{ROOT}/tests/test_load.py"),
            edit(
                f"{ROOT}/tests/test_load.py",
                "\n\nif __name__",
                "\n    def test_an_hour_that_is_sent_again(self):\n"
                '        counts = load(self.files("12,2026-03-08T10,40\\n", "12,2026-03-08T10,42\\n"))\n'
                "        self.assertEqual(by_station(counts), {12: 42})\n\n\nif __name__",
            ),
            bash("python -m unittest -q", "Run the tests"),
            edit(
                f"{ROOT}/bikecount/load.py",
                'counts[key] = counts.get(key, 0) + int(row["bikes"])',
                'counts[key] = int(row["bikes"])  # sent again: the later file is right',
            ),
            bash(
                "python -m unittest -q && git commit -qam 'Count an hour once when the backfill sends it again'",
                "Run the tests and commit",
            ),
            say(
                "The loader added up every row it saw, and the backfill sends whole hours again that the daily file already has, so those counted twice. "
                "Now a later row for the same station and hour replaces the earlier one. There's a test for it and it's committed."
            ),
        ),
        turn(
            "cool. should we switch to polars? everyone talks about it",
            say(
                "For a few thousand rows a day you wouldn't notice. I'd think about it once loading takes longer than making coffee."
            ),
        ),
        turn(
            "haha ok. could you add a --by-weekday to the cli? the city council wants to compare mondays with sundays",
            read(f"{ROOT}/bikecount/cli.py"),
            bash(
                "cat >> bikecount/summary.py <<'X'\n\n\ndef by_weekday(counts):\n    found = {}\n    for (_, hour), bikes in counts.items():\n"
                "        day = datetime.fromisoformat(hour).strftime('%A')\n        found[day] = found.get(day, 0) + bikes\n    return found\nX",
                "Add by_weekday",
            ),
            edit(
                f"{ROOT}/bikecount/cli.py",
                "    args = parser.parse_args(argv)\n    for name, bikes in sorted(by_station(load(args.files)).items()):\n",
                '    parser.add_argument("--by-weekday", action="store_true")\n    args = parser.parse_args(argv)\n'
                "    summary = by_weekday if args.by_weekday else by_station\n"
                "    for name, bikes in sorted(summary(load(args.files)).items()):\n",
            ),
            edit(f"{ROOT}/bikecount/cli.py", "import by_station\n", "import by_station, by_weekday\n"),
            bash("python -m bikecount.cli --by-weekday data/*.csv", "Try it"),
            bash(
                "sed -i '1i from datetime import datetime\\n\\n' bikecount/summary.py && python -m bikecount.cli --by-weekday data/*.csv && python -m unittest -q"
                " && git commit -qam 'Add --by-weekday' && git log --oneline",
                "Import datetime, try again, commit",
            ),
            say(
                "`bikecount --by-weekday FILES` prints the bikes per weekday instead of per station. Committed. No test for it yet, tell me if you want one."
            ),
        ),
        turn(
            "later. fyi sensor 7 was remounted on 2026-03-02 and hangs upside down since, so in and out are swapped for it. note that in sensors.yaml. "
            "and always print dates as 2026-03-02, never 03/02, ops mixed up march and february last year",
            bash(
                "sed -i 's/7: {station: 12, lane: north}/7: {station: 12, lane: north, swapped_since: 2026-03-02}/' sensors.yaml && git commit -qam 'Sensor 7 is upside down' && cat sensors.yaml"
            ),
            say(
                "It's in sensors.yaml as `swapped_since: 2026-03-02`. Nothing reads that yet; the loader would have to swap the directions. And ISO dates everywhere, will do."
            ),
        ),
        turn(
            "fine for now. bump the docker image to 3.13",
            bash("sed -i 's/python:3.11-slim/python:3.13-slim/' Dockerfile && head -1 Dockerfile"),
            say("The Dockerfile says 3.13 now, not committed yet."),
        ),
        turn(
            "argh no wait, put it back. the geo library on the cluster only has wheels for 3.11 so we have to stay on that",
            bash("git checkout -q Dockerfile && head -1 Dockerfile"),
            say("Back on 3.11."),
        ),
    ),
)
