"""`backstory spend`: what synthesis cost, by day and by session, and what is left of the day's cap."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, time, timedelta
from typing import Any

from rich.text import Text

from backstory import config
from backstory.store import spend as spends
from backstory.store.file.connection import Connection
from backstory.surfaces.cli import output, terminal, worker_status
from backstory.synthesis.runner import midnight

PIPE_WIDTH = 100
NARROWEST = 10  # a bar shorter than this shows nothing; columns give way to it
COLUMNS = {"requests": 8, "sent": 6, "cached": 6, "received": 8, "cost": 8}
GIVE_WAY = ("requests", "cached", "received")
SHORTEST_REQUEST = 20
NOTE = 12  # ' 100% of cap'
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True)
class Cost:
    """What was used in a day or for a session."""

    requests: int = 0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cost:
        return cls(*(row[field.name] for field in fields(cls)))

    @property
    def sent(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def cells(self) -> dict[str, str]:
        if self == Cost():
            return dict.fromkeys(COLUMNS, "-")
        return {
            "requests": f"{self.requests:,}",
            "sent": short(self.sent),
            "cached": f"{self.cache_read_tokens / self.sent:.0%}" if self.sent else "-",
            "received": short(self.output_tokens),
            "cost": f"${self.usd:,.4f}",
        }


def show(db: Connection, now: int, days: int, most: int, as_json: bool) -> None:
    """The last so many days, and the sessions that cost the most in them."""
    chosen = worker_status.synthesizer(os.environ)
    cap = config.number("spend.daily_usd", os.environ)
    today = datetime.fromtimestamp(now / 1000).date()
    first = datetime.combine(today - timedelta(days=days - 1), time.min)  # midnight where the user is
    since = int(first.timestamp() * 1000)
    by_day = {row["day"]: Cost.of(row) for row in spends.by_day(db, since)}
    by_session = spends.by_session(db, since, most)
    spent = spends.since(db, midnight(now))
    ever = spends.since(db, 0)
    seen = worker_status.look(db, now)
    listed = [(today - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    if as_json:
        output.as_json(
            {
                "synthesizer": asdict(chosen),
                "cap": cap,
                "today": {"usd": spent, "left": max(0.0, cap - spent)},
                "days": [{"day": day, **asdict(by_day.get(day, Cost()))} for day in listed],
                "sessions": by_session,
                "troubles": worker_status.plain_troubles(seen.troubles),
            }
        )
        return
    out = terminal.console()
    out.print(Text(output.visible(f"{chosen}; {_left(spent, cap)}")))
    for line in worker_status.troubles_told(seen, now):
        out.print(Text(output.visible(line), style="yellow"))
    out.print()
    if not by_day:
        period = "today" if days == 1 else f"in the last {days} days"
        further = "; --days looks further back" if ever else f". {_advice(chosen, cap)}"
        out.print(Text(output.visible(f"Nothing was spent {period}{further}")))
        return
    is_terminal = sys.stdout.isatty()
    plain = not is_terminal or "utf" not in (sys.stdout.encoding or "").lower()
    chart = [(day, by_day.get(day, Cost())) for day in listed]
    width = out.width if is_terminal else PIPE_WIDTH
    for row in rows(chart, cap, width, plain=plain):
        terminal.one_row(out, row)
    if by_session:
        out.print()
        for row in session_rows(by_session, width):
            terminal.one_row(out, row)


def _left(spent: float, cap: float) -> str:
    told = f"{dollars(spent)} of {dollars(cap)} spent today"
    if cap <= 0:
        return f"{told}: {never_asked()}"
    if spent >= cap:
        return f"{told}: the cap is reached, {raises_it(spent, cap)}"
    return f"{told}, {dollars(cap - spent)} left"


def never_asked() -> str:
    allows = "`backstory config spend.daily_usd 1` allows a dollar a day"
    return f"with spend.daily_usd 0 the model is never asked; {allows}"


def raises_it(spent: float, cap: float) -> str:
    """A command that may be typed as it stands."""
    return f"`backstory config spend.daily_usd {max(2 * cap, math.floor(spent) + 1):g}` raises it"


def _advice(chosen: worker_status.Chosen, cap: float) -> str:
    """Why that may be, and what to do about it if it should be otherwise."""
    if chosen.setting in ("off", "local"):
        return "`backstory config synthesizer auto` lets a model observe."
    if chosen.why:
        return f"No model can be asked: {chosen.why}."
    if cap <= 0:
        return "The cap allows nothing."
    return "What a session does is observed when a turn ends; `backstory worker --status` shows what waits."


def rows(days: Sequence[tuple[str, Cost]], cap: float, width: int, *, plain: bool) -> Iterable[Text]:
    """The chart, a row a day, oldest first; the last day is today. Where it is narrow, columns give way."""
    names = list(COLUMNS)
    for name in GIVE_WAY:
        if width - _fixed(names) - 2 - NOTE < NARROWEST:
            names.remove(name)
    bar = width - _fixed(names) - 2 - NOTE
    is_noted = bar >= NARROWEST
    bar = bar if is_noted else max(1, bar + NOTE)
    most = max(cost.usd for _, cost in days)
    scale = max(cap, most)  # a full bar is the cap: hardly anything of it looks like hardly anything

    def line(first: str, cells: Mapping[str, str]) -> str:
        return f"{first:<10}" + "".join(f"  {cells[name]:>{COLUMNS[name]}}" for name in names)

    yield Text(line("day", {name: name for name in names}), style="bold")
    for at, (day, cost) in enumerate(days):
        is_today = at == len(days) - 1
        style = "bold default" if is_today else "default" if cost.usd else "dim"
        row = Text(line("today" if is_today else day, cost.cells()), style=style)
        drawn = drawn_bar(cost.usd, scale, bar, plain)
        over = is_today and cost.usd >= cap
        colour = "not bold red" if over else "not bold not dim green"
        if is_today:
            drawn = _marked(drawn, round(bar * cap / scale) if scale else 0, bar, plain)
        row.append(f"  {drawn}" if drawn else "", style=colour)
        if is_today and is_noted:
            note = f"{cost.usd / cap:.0%} of cap" if cap else "cap is 0"
            row.append(f" {note}", style="red" if over else "default")
        yield row
    total = Cost(*(sum(getattr(cost, field.name) for _, cost in days) for field in fields(Cost)))
    yield Text(line("total", total.cells()), style="bold")


def _fixed(names: Iterable[str]) -> int:
    return 10 + sum(2 + COLUMNS[name] for name in names)


def drawn_bar(value: float, scale: float, width: int, plain: bool) -> str:
    """So much of the width as the value is of the scale; something is never drawn as nothing."""
    eighths = min(round(8 * width * value / scale), 8 * width) if scale else 0
    if plain:
        return "#" * (max(1, round(eighths / 8)) if value else 0)
    eighths = max(1, eighths) if value else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def _marked(bar: str, at: int, width: int, plain: bool) -> str:
    """The bar with the cap's place marked."""
    at = min(max(at, 1), width) - 1
    whole = bar.ljust(at + 1)
    return whole[:at] + ("|" if plain else "┃") + whole[at + 1 :]


def session_rows(found: Sequence[Mapping[str, Any]], width: int) -> Iterable[Text]:
    """A row a session. Where it is narrow, columns give way to what was asked for."""
    project = min(16, max(len("project"), *(len(row["project"] or "-") for row in found)))
    wide = {"session": -8, "date": -10, "project": -project, "sent": 6, "received": 8, "cost": 8}
    for name in ("received", "project", "sent", "date"):
        if width - sum(2 + abs(size) for size in wide.values()) < SHORTEST_REQUEST:
            del wide[name]

    def row(cells: Mapping[str, str]) -> str:
        return "  ".join(
            f"{cells[name]:<{-size}}" if size < 0 else f"{cells[name]:>{size}}" for name, size in wide.items()
        )

    yield Text(f"{row({name: name for name in wide})}  asked for", style="bold")
    for one in found:
        cells = Cost.of(one).cells() | {
            "session": output.visible((one["session_id"] or "gone")[:8]),
            "date": output.when(one["started_at"] or one["last_at"])[:10],
            "project": output.one_line(one["project"] or "-", project),
        }
        line = Text(row(cells)).append(f"  {output.one_line(one['request'] or '-')}")
        line.stylize("cyan", 0, len(cells["session"]))
        yield line


def short(tokens: int) -> str:
    """45,210 as 45.2k."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= 0.99995 * size:
            return f"{tokens / size:.1f}{sign}"
    return str(tokens)


def dollars(usd: float) -> str:
    """To the cent, or more exactly where a cent would be too coarse."""
    return f"${usd:,.2f}" if usd == 0 or usd >= 0.995 or round(usd, 2) == round(usd, 4) else f"${usd:.4f}"
