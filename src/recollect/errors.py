"""Every error that recollect raises on purpose.

    RecollectError
    ├── BadPayload       a hook payload that cannot be read; it goes to failed/, never away
    ├── BadInput         a person or a model asked for something impossible
    ├── NotFound         the thing asked for is not there
    ├── Conflict         somebody else changed it meanwhile
    ├── StoreError       the database cannot be used
    │   ├── SchemaTooNew     a newer recollect wrote it
    │   └── Damaged          what SQLite reads there is no database any more
    ├── Away             the model cannot be asked now         (both in synthesis/protocol.py)
    ├── Malformed        its reply could not be used
    ├── ClientError      Claude Code is missing, or refused what we asked
    └── EmbedderAway     there are no vectors now; search goes by words

Each message is a sentence that says what to do next. Only the CLI turns them into exit codes.
"""


class RecollectError(Exception):
    pass


class BadPayload(RecollectError):
    pass


class BadInput(RecollectError):
    pass


class NotFound(RecollectError):
    pass


class Conflict(RecollectError):
    pass


class StoreError(RecollectError):
    pass


class SchemaTooNew(StoreError):
    pass


class Damaged(StoreError):
    pass


class ClientError(RecollectError):
    pass


class EmbedderAway(RecollectError):
    """Something is not installed, not reachable, or not what it should be."""
