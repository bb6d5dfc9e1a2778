"""`backstory config`: what is set, where that comes from, and a careful way to change it.

config.toml belongs to the user, so a change touches one line and leaves comments and order alone. There is no
TOML writer behind it: a changed line is proposed, the whole file is read again, and only if exactly the one
setting differs is it written.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from backstory import config as settings
from backstory import errors, log, paths
from backstory.surfaces.cli import output, worker_status
from backstory.surfaces.cli.common import folder, prints, show, store, typed
from backstory.surfaces.shapes import WHOLE, WRAP, Line, Reply, Shown, number_of, one_line

ABOUT = {
    "brief.tokens": "how long the brief at a session's start may be, in tokens; 0: no brief",
    "capture.ignore": "paths and tools of which nothing is kept, as globs separated by commas",
    "claude.model": "which model observes: an alias like haiku, or a model's whole name",
    "claude_md.on_stop": "after a turn that edits files: auto (sync), agent (Claude is asked) or off",
    "claude_md.practices_url": "the page that best practices come from; empty: none",
    "display": "what a session's start shows you: line or quiet",
    "docs.folders": "folders beside the project from which documents may be read, separated by :",
    "embedder": "where vectors come from: static, onnx:MODEL, ollama:MODEL, openai:MODEL or off",
    "embedding.key": "the key of the embedder's server",
    "embedding.url": "the embedder's server",
    "log.level": f"what the log tells: {', '.join(log.LEVELS)}",
    "permissions": "its own tools that Claude may use unasked: write, read (searches alone) or ask (none)",
    "recall.everywhere": "whether a model may also search in other projects: on or off",
    "recall.files": "whether a model is told what is known of a rarely edited file or failing test: on, off",
    "recall.prompt": "whether a session's first prompt brings back what earlier ones know of it: on or off",
    "retention.days": "sessions older than this are forgotten, and erased 30 days later; 0: never",
    "spend.daily_usd": "what the model may cost a day, in US dollars; at the cap, rules observe instead",
    "synthesizer": "who observes: auto (the model, else rules), claude, local (rules) or off",
    "worker.idle_seconds": "how long a worker without work waits for more",
}
SECRET = frozenset({"embedding.key"})
MASK = "********"
LONGEST_VALUE = 24  # in the list
NARROW = 140  # in a terminal below that, what a setting does has a row of its own


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str | float
    source: str  # default, config.toml, environment
    variable: str
    about: str
    problem: str | None = None  # why the value cannot be used


def _names_and_values(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """What the shell's completion offers: names of settings, then the values of one that has a few."""
    name = context.params.get("name")
    if param.name == "value":
        offered = sorted(ABOUT) if name == "unset" else settings.CHOICES.get(str(name), ())
    else:
        offered = [*sorted(ABOUT), "unset"]
    return [one for one in offered if one.startswith(begun)]


@click.command(context_settings={"ignore_unknown_options": True})  # -1 is a value, if a wrong one
@click.argument("name", required=False, shell_complete=_names_and_values)
@click.argument("value", required=False, shell_complete=_names_and_values)
@prints
def config(name: str | None, value: str | None) -> Reply:
    """List the settings, tell one, set one or unset one.

    \b
      backstory config                        all of them, and where each value comes from
      backstory config spend.daily_usd        one value alone
      backstory config spend.daily_usd 0.5    set it
      backstory config unset spend.daily_usd  back to the default
      backstory config embedding.key -        read the value from standard input

    They are kept in config.toml in the data folder, of which nothing but the one line is changed. An
    environment variable such as BACKSTORY_SPEND_DAILY_USD wins over the file."""
    if name is None:
        return _every()
    if name != "unset":
        return _one(name) if value is None else _change(name, value)
    if value is None:
        raise errors.BadInput("name the setting: backstory config unset NAME; `backstory config` lists all")
    return _unset(typed([value]))


def _every() -> Reply:
    every = [_look(name, _path(folder())) for name in sorted(ABOUT)]
    unread = settings.unknown(os.environ)
    notes = [f"backstory: config.toml sets {name}, which nobody reads" for name in unread]
    return Reply(every, _shown(every), notes)


def _shown(every: list[Setting]) -> Iterator[Shown]:
    is_narrow = 0 < output.columns() < NARROW
    wide = min(LONGEST_VALUE, max(len(str(one.value)) for one in every))
    longest = max(len(one.name) for one in every)
    for one in every:
        value = one_line(str(one.value), LONGEST_VALUE)
        source = (f"  {one.source:<11}", "dim" if one.source == "default" else "green")
        head = ((f"{one.name:<{longest}}", "cyan"), (f"  {value:<{wide}}", "bold"), source)
        about = (one.problem or one.about, "red" if one.problem else "")
        if is_narrow:
            yield Line(head)
            yield Line(("    ", about), WRAP, 4)
        else:
            yield Line((*head, "  ", about))


def _one(name: str) -> Reply:
    """One value alone, for scripts."""
    setting = _look(_known(name), _path(folder()))
    reply = Reply(setting, [Line((str(setting.value),), WHOLE)])
    if setting.problem:
        show(reply)
        raise errors.BadInput(setting.problem)
    return reply


def _change(name: str, value: str) -> Reply:
    path, was_sent = _path(folder()), _is_sent()
    given = (sys.stdin.read().strip() if sys.stdin else "") if value == "-" else typed([value])
    put(folder(), name, given)
    return _changed(name, f"{name} = {MASK if name in SECRET else _now_in(path, name)}", was_sent)


def _unset(name: str) -> Reply:
    """Back to the default. Where the file does not set it, nothing is written."""
    path, was_sent = os.path.realpath(_path(folder())), _is_sent()
    sentence = f"{name} is not set in config.toml"
    if _now_in(path, _known(name)) is not None:
        _replace(path, name, without_setting(_read(path), name))
        sentence = f"{name} is no longer set in config.toml"
    return _changed(name, f"{sentence}; it is {_look(name, path).value or 'empty'}", was_sent)


def _changed(name: str, sentence: str, was_sent: bool) -> Reply:
    """What was done, and what follows from it."""
    setting = _look(name, _path(folder()))
    notes = []
    if setting.source == "environment":
        notes.append(f"backstory: {setting.variable} is set in your environment and wins")
    if name == "retention.days" and not setting.problem and float(setting.value) > 0:
        notes += _what_goes(float(setting.value))
    if not was_sent and _is_sent():
        notes.append(worker_status.what_is_sent(os.environ))
    return Reply(setting, [sentence], notes)


def _is_sent() -> bool:
    """Whether a model may be sent what was captured."""
    try:
        allowed = settings.number("spend.daily_usd", os.environ)
        return settings.synthesizer(os.environ) in ("auto", "claude") and allowed > 0
    except errors.BadInput:
        return False


def _what_goes(days: float) -> list[str]:
    from backstory.store import forgetting

    with store() as (db, now):
        old = forgetting.Conditions(before=now - int(days * forgetting.DAY_MS), is_retention=True)
        sessions = forgetting.preview(db, old).sessions
    count = number_of(sessions, "session is", "sessions are")
    sentence = (
        f"{count} older now. The next worker forgets that, and erases it 30 days later;"
        " until then `backstory forget --undo` brings it back."
    )
    return [sentence] if sessions else []


def is_set(folder: str, name: str) -> bool:
    return settings.variable_of(name) in os.environ or _now_in(_path(folder), name) is not None


def put(folder: str, name: str, given: str) -> None:
    _write(_path(folder), _known(name), _valid(name, {settings.variable_of(name): given}))


def problems(env: Mapping[str, str]) -> list[str]:
    """A sentence for every setting that cannot be used, or the one for a file that cannot be read."""
    found = []
    for name in sorted(ABOUT):
        try:
            _valid(name, env)
        except errors.BadInput as error:
            said = f"{name} cannot be used; set it again" if name in SECRET else str(error)
            variable = settings.variable_of(name)
            found.append(f"{said} (it comes from {variable})" if variable in env else said)
    return list(dict.fromkeys(found))


def _path(folder: str) -> str:
    return os.path.join(folder, "config.toml")


def _known(name: str) -> str:
    if name in ABOUT:
        return name
    near = difflib.get_close_matches(name, ABOUT, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(ABOUT))}"
    raise errors.BadInput(f"there is no setting {name!r}; {hint}")


def _look(name: str, path: str) -> Setting:
    variable, problem = settings.variable_of(name), None
    value: str | float
    try:
        value = _valid(name, os.environ)
    except errors.BadInput as error:
        value, problem = str(os.environ.get(variable, _now_in(path, name))), str(error)
    in_file = _now_in(path, name) is not None
    source = "environment" if variable in os.environ else "config.toml" if in_file else "default"
    if name in SECRET:
        value, problem = MASK if value else "", problem and "it cannot be used; set it again"
    return Setting(name, value, source, variable, ABOUT[name], problem)


def _valid(name: str, env: Mapping[str, str]) -> str | float:
    """A setting's value, or BadInput that says what is allowed."""
    if name in settings.NUMBERS:
        number = settings.number(name, env)
        return int(number) if number == int(number) else number
    if name in settings.CHOICES:
        return settings.choice(name, env)
    value = settings.setting(name, env)
    if name == "log.level":
        if value.lower() not in log.LEVELS:
            raise errors.BadInput(f"log.level is {value[:40]!r}; it is one of {', '.join(log.LEVELS)}")
        return value
    if name == "claude.model" and not re.fullmatch(r"[\w.:/@\[\]-]{1,200}", value):
        raise errors.BadInput(f"claude.model is {value[:40]!r}; it is a model's name, like haiku")
    if name == "capture.ignore":
        from backstory.capture import ignore

        ignore.parsed(value)
    if name == "docs.folders":
        strange = [one for one in value.split(os.pathsep) if one.strip() and not one.startswith(("/", "~"))]
        if strange:
            raise errors.BadInput(f"docs.folders names {strange[0][:80]!r}; give whole paths, separated by :")
    if name in ("embedding.url", "embedding.key"):
        from backstory.recall.embedders import remote

        url = value if name == "embedding.url" and value else remote.OLLAMA
        remote.check(url, value.strip() if name == "embedding.key" else "")
    if name == "embedder" and value not in ("", "static", "off"):
        from backstory.recall.embedders import choose

        choose.chosen({**env, "BACKSTORY_EMBEDDING_URL": "", "BACKSTORY_EMBEDDING_KEY": ""})
    return value


def _read(path: str) -> str:
    """The file as it is, line ends included. A file that is no TOML is left to its owner."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except ValueError as error:  # not TOML, or not UTF-8
        raise errors.BadInput(f"{path} cannot be read ({error}); correct it or move it away") from error
    return text


def _now_in(path: str, name: str) -> object:
    """What the file says; None where it says nothing."""
    value: object = tomllib.loads(_read(path))
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _write(path: str, name: str, value: str | float) -> None:
    """Into the file itself, also where config.toml is a link to it; whole or not at all."""
    path = os.path.realpath(path)
    _replace(path, name, with_setting(_read(path), name, value))


def _replace(path: str, name: str, text: str | None) -> None:
    if text is None:
        raise errors.BadInput(f"{path} sets {name} in a way that is not for us to edit; change it there")
    paths.make_folder(os.path.dirname(path))
    mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o600
    beside = f"{path}.{os.getpid()}"
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8", newline="") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def with_setting(text: str, name: str, value: str | float) -> str | None:
    """The text of a config.toml with one setting changed or added and every other line as it was; None where
    no such edit is found. Pure."""
    before = tomllib.loads(text)
    for proposed in _proposals(text, name, value):
        try:
            if tomllib.loads(proposed) == _set(before, name, value):
                return proposed
        except tomllib.TOMLDecodeError:
            continue
    return None


def without_setting(text: str, name: str) -> str | None:
    """The same with one setting taken out. Pure."""
    section, _, key = name.rpartition(".")
    before = tomllib.loads(text)
    rest: dict[str, object] = {other: value for other, value in before.items() if other != (section or key)}
    inside = before.get(section)
    if section and isinstance(inside, dict):
        # A dotted key leaves no section behind, a line below its heading leaves the heading.
        left = {other: value for other, value in inside.items() if other != key}
        wanted = [{**before, section: left}, *([] if left else [rest])]
    else:
        wanted = [rest]
    lines = _lines(text)
    for number, line in enumerate(lines):
        if _names(line) in (key, name):
            proposed = "".join([*lines[:number], *lines[number + 1 :]])
            try:
                if tomllib.loads(proposed) in wanted:
                    return proposed
            except tomllib.TOMLDecodeError:
                continue
    return None


def _lines(text: str) -> list[str]:
    """Of all that splitlines knows, TOML ends lines with this only."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _names(line: str) -> str:
    """The key that a line seems to set."""
    found = re.match(r"\s*([\w.\"' -]+?)\s*=\s*", line)
    return found[1].replace(" ", "").translate({34: None, 39: None}) if found else ""


def _set(document: Mapping[str, object], name: str, value: object) -> dict[str, object]:
    section, _, key = name.rpartition(".")
    if not section:
        return {**document, key: value}
    inside = document.get(section)
    return {**document, section: {**(inside if isinstance(inside, dict) else {}), key: value}}


def _proposals(text: str, name: str, value: str | float) -> Iterator[str]:
    """First the line that sets it already, wherever one seems to; then a new line in its section; then a new
    section. Which of them are right is for the caller to see."""
    section, _, key = name.rpartition(".")
    lines = _lines(text)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    # A JSON string is a TOML string, but for one sign that TOML wants escaped.
    written = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    for number, line in enumerate(lines):
        found = re.match(r"\s*[\w.\"' -]+?\s*=\s*", line)
        if found and _names(line) in (key, name):
            after = re.match(
                r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^#\r\n]*?)(\s*(?:#[^\n]*\n?)?)\Z", line[found.end() :]
            )
            if after:
                yield "".join([*lines[:number], found[0], written, after[1], *lines[number + 1 :]])
    new = f"{key} = {written}{end}"
    is_open = lines and not lines[-1].endswith("\n")
    whole = [*lines[:-1], lines[-1] + end] if is_open else lines
    headers = [number for number, line in enumerate(whole) if re.match(r"\s*\[", line)]
    if not section:
        for header in headers:
            at = header
            while at and whole[at - 1].lstrip().startswith("#"):
                at -= 1  # what is said above a section belongs to it
            yield "".join([*whole[:at], new, end, *whole[at:]])
        yield "".join([*whole, new])
        return
    for number in headers:
        if re.match(rf"\s*\[\s*[\"']?{re.escape(section)}[\"']?\s*\]", whole[number]):
            yield "".join([*whole[: number + 1], new, *whole[number + 1 :]])
    gap = [end] if whole else []
    yield "".join([*whole, *gap, f"[{section}]{end}", new])
