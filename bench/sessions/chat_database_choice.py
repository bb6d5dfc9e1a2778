"""Only talk, with one decision in it."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, say, turn

SCENARIO = Scenario(
    project="fieldnotes",
    began="2026-03-18T16:20:00",
    files={"README.md": "# fieldnotes\n\nNothing here yet.\n"},
    turns=(
        turn(
            "Quick architecture question before I start with fieldnotes: it's a web app for maybe 200 biologists, they enter "
            "observations with coordinates and photos, and want to see everything within some km of a point. which database "
            "would you take, sqlite, mysql or postgres?",
            say(
                """For "everything within some km of a point" the geographic part decides:

- **Postgres with PostGIS** is made for it: `ST_DWithin` with a spatial index, correct on the globe.
- **MySQL** has spatial indexes as well, but fewer functions and a few surprises with SRIDs.
- **SQLite** would carry 200 users easily; SpatiaLite exists, but you'd compile and ship it yourself.

I would lean towards Postgres here. Photos shouldn't be in any of them, keep them in object storage."""
            ),
        ),
        turn(
            "what about the hosting, isn't postgres always a pain to operate?",
            say(
                "Less than it used to be. A managed instance takes care of backups and minor upgrades; what remains is the "
                "major upgrade every few years. If you host it yourself, `pg_dump` in a nightly job is enough at your size."
            ),
        ),
        turn(
            "ok convinced, let's go with Postgres + PostGIS then, managed. and photos go to s3 like you said",
            say(
                "Good choice. When you set it up, enable the extension with `CREATE EXTENSION postgis` and use "
                "`geography(Point, 4326)` for the coordinates, then distances are in metres."
            ),
        ),
        turn("thanks, that's it for today", say("You're welcome, good luck with fieldnotes!")),
    ),
)
