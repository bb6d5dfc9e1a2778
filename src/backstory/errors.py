"""Every error that backstory raises on purpose.

    BackstoryError
    ├── BadPayload       a hook payload that cannot be read; it goes to failed/, redacted
    ├── BadInput         a person or a model asked for something impossible
    ├── NotFound         the thing asked for is not there
    ├── Conflict         somebody else changed it meanwhile
    ├── StoreError       the database cannot be used
    │   ├── SchemaTooNew     a newer backstory wrote it
    │   ├── SchemaTooOld     backstory 0.1 wrote it, and only that can read it
    │   ├── Damaged          what SQLite reads there is no database any more
    │   └── Unavailable      SQLite cannot read or write it now: the disk is full, the file is read-only
    │       └── Busy             another process has it locked
    ├── Away             the model cannot be asked now         (both in synthesis/protocol.py)
    ├── Malformed        its reply could not be used
    ├── ClientError      Claude Code is missing, or refused what we asked
    └── EmbedderAway     there are no vectors now; search goes by words

Each message is a sentence that says what to do next. Only the CLI turns them into exit codes.
"""


class BackstoryError(Exception):
    pass


class BadPayload(BackstoryError):
    pass


class BadInput(BackstoryError):
    pass


class NotFound(BackstoryError):
    pass


class Conflict(BackstoryError):
    pass


class StoreError(BackstoryError):
    pass


class SchemaTooNew(StoreError):
    pass


class SchemaTooOld(StoreError):
    pass


class Damaged(StoreError):
    pass


class Unavailable(StoreError):
    pass


class Busy(Unavailable):
    pass


class ClientError(BackstoryError):
    pass


class EmbedderAway(BackstoryError):
    """Something is not installed, not reachable, or not what it should be."""
