"""Settings, read once at the edge: the environment wins over config.toml, which wins over the default.

The file lies in the data folder and nowhere else: a cloned repository must not redirect anyone's memory.
"""

from __future__ import annotations

import os

from backstory import paths
from backstory.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULTS: dict[str, str] = {
    "capture.ignore": "",
    "claude.model": "haiku",
    "claude_md.on_stop": "auto",
    "claude_md.practices_url": "https://docs.claude.com/en/docs/claude-code/best-practices",
    "display": "line",
    "docs.folders": "",
    "embedder": "static",
    "embedding.key": "",
    "embedding.url": "",
    "log.level": "info",
    "permissions": "write",
    "recall.everywhere": "off",
    "recall.files": "on",
    "recall.prompt": "on",
    "synthesizer": "auto",
}
NUMBERS: dict[str, float] = {
    "brief.tokens": 1500,
    "retention.days": 0,
    "spend.daily_usd": 1.0,
    "worker.idle_seconds": 30,
}
# Settings that are one of a few words.
CHOICES: dict[str, tuple[str, ...]] = {
    "claude_md.on_stop": ("agent", "auto", "off"),
    "display": ("line", "quiet"),
    "permissions": ("ask", "read", "write"),
    "recall.everywhere": ("on", "off"),
    "recall.files": ("on", "off"),
    "recall.prompt": ("on", "off"),
    "synthesizer": ("auto", "claude", "local", "off"),
}


def setting(name: str, env: Mapping[str, str]) -> str:
    """`log.level` comes from BACKSTORY_LOG_LEVEL, else from `level` under `[log]` in config.toml."""
    value = _given(name, DEFAULTS[name], env)
    if not isinstance(value, str):
        raise BadInput(f"config.toml: {name} should be a string like {DEFAULTS[name]!r}; correct that line")
    return value


def number(name: str, env: Mapping[str, str]) -> float:
    """A setting that counts something; none of them can be negative."""
    value = _given(name, NUMBERS[name], env)
    try:
        found = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise BadInput(f"{name} is {value!r}; it should be a number like {NUMBERS[name]:g}, 0 or more")
    return found


def choice(name: str, env: Mapping[str, str]) -> str:
    chosen = setting(name, env).strip().lower() or DEFAULTS[name]
    if chosen not in CHOICES[name]:
        raise BadInput(f"{name} is {chosen[:40]!r}; it is one of {', '.join(CHOICES[name])}")
    return chosen


def synthesizer(env: Mapping[str, str]) -> str:
    return choice("synthesizer", env)


def on_stop(env: Mapping[str, str]) -> str:
    """What the end of a turn does about changed files."""
    return choice("claude_md.on_stop", env)


def may_recall_everywhere(env: Mapping[str, str]) -> bool:
    """Whether a model may look into other projects than the one it works in. Only who says `on` allows it."""
    try:
        return choice("recall.everywhere", env) == "on"
    except BadInput:
        return False  # `backstory doctor` tells


def variable_of(name: str) -> str:
    return "BACKSTORY_" + name.upper().replace(".", "_")


def _given(name: str, default: str | float, env: Mapping[str, str]) -> object:
    override = env.get(variable_of(name))
    if override is not None:
        return override
    value: object = _read(env)
    for part in name.split("."):
        value = value.get(part, default) if isinstance(value, dict) else default
    return value


def unknown(env: Mapping[str, str]) -> list[str]:
    """What config.toml sets that nobody reads: most likely misspelt."""
    found = []
    for section, value in _read(env).items():
        names = [f"{section}.{name}" for name in value] if isinstance(value, dict) else [section]
        found += [name for name in names if name not in DEFAULTS and name not in NUMBERS]
    return found


def _read(env: Mapping[str, str]) -> dict[str, object]:
    folder = paths.data_folder(env)
    path = os.path.join(folder, "config.toml") if folder else ""
    if not os.path.exists(path):
        return {}
    import tomllib  # here: a hook without a config file must not pay for the parser

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError) as error:  # not TOML, or not UTF-8
        raise BadInput(f"{path} cannot be read ({error}); correct it or move it away") from error
