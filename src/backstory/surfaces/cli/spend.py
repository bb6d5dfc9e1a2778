"""`backstory spend`: what synthesis cost, by day and by session, and what is left of the day's cap."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, time, timedelta
from typing import Any

import click

from backstory import config
from backstory.store import spend as spends
from backstory.surfaces.cli.common import prints, store
from backstory.surfaces.shapes import Column, Reply, Shown, Table, plain, when

BAR = 24
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

    @property
    def cached(self) -> str:
        return f"{self.cache_read_tokens / self.sent:.0%}" if self.sent else ""


SESSIONS = (
    Column("session", lambda row: (row["session_id"] or "gone")[:8]),
    Column("date", lambda row: when(row["started_at"] or row["last_at"])[:10], gives_way=4),
    Column("project", lambda row: (row["project"] or "")[:16], gives_way=2),
    Column("sent", lambda row: short(Cost.of(row).sent), right=True, gives_way=3),
    Column("received", lambda row: short(row["output_tokens"]), right=True, gives_way=1),
    Column("cost", lambda row: f"${row['usd']:,.4f}", right=True),
    Column("asked for", lambda row: row["request"], least=20),
)


@click.command()
@click.option("--days", default=14, show_default=True, type=click.IntRange(1, 366), help="How many days.")
@click.option(
    "--sessions",
    "most",
    default=10,
    show_default=True,
    type=click.IntRange(0, 1000),
    help="How many sessions.",
)
@prints
def spend(days: int, most: int) -> Reply:
    """Show what the model that writes memories cost.

    By day, with a bar chart, and by session, the dearest first. `backstory config spend.daily_usd` is the
    cap of a day."""
    from backstory.synthesis.runner import midnight

    cap = config.number("spend.daily_usd", os.environ)
    with store() as (db, now):
        today = datetime.fromtimestamp(now / 1000).date()
        first = datetime.combine(today - timedelta(days=days - 1), time.min)  # midnight where the user is
        since = int(first.timestamp() * 1000)
        costs = {row["day"]: Cost.of(row) for row in spends.by_day(db, since)}
        sessions = spends.by_session(db, since, most)
        spent, ever = spends.since(db, midnight(now)), spends.since(db, 0)
    dates = [(today - timedelta(days=back)).isoformat() for back in reversed(range(days))]
    chart = [(day, costs.get(day, Cost())) for day in dates]
    value = {
        "cap": cap,
        "today": {"usd": spent, "left": max(0.0, cap - spent)},
        "days": [{"day": day, **plain(cost)} for day, cost in chart],
        "sessions": sessions,
    }
    if costs:
        return Reply(value, _shown(chart, sessions, spent, cap))
    period = "today" if days == 1 else f"in the last {days} days"
    further = "--days looks further back" if ever else "`backstory status` says who makes memories, and how"
    return Reply(value, [_left(spent, cap), f"Nothing was spent {period}; {further}."])


def _shown(
    chart: Sequence[tuple[str, Cost]], sessions: Sequence[Mapping[str, Any]], spent: float, cap: float
) -> Iterator[Shown]:
    yield _left(spent, cap)
    yield ""
    yield _chart(chart, cap)
    if sessions:
        yield ""
        yield Table(sessions, SESSIONS)


def _left(spent: float, cap: float) -> str:
    sentence = f"{dollars(spent)} of {dollars(cap)} spent today"
    if cap <= 0:
        return f"{sentence}: {never_asked()}"
    if spent >= cap:
        return f"{sentence}: the cap is reached, {raises_it(spent, cap)}"
    return f"{sentence}, {dollars(cap - spent)} left"


def never_asked() -> str:
    allows = "`backstory config spend.daily_usd 1` allows a dollar a day"
    return f"with spend.daily_usd 0 the model is never asked; {allows}"


def raises_it(spent: float, cap: float) -> str:
    """A command that may be typed as it stands."""
    return f"`backstory config spend.daily_usd {max(2 * cap, math.floor(spent) + 1):g}` raises it"


def _chart(days: Sequence[tuple[str, Cost]], cap: float) -> Table:
    """A row a day, oldest first; the last day is today."""
    scale = max(cap, *(cost.usd for _, cost in days))  # hardly anything of the cap looks like hardly anything
    total = Cost(*(sum(getattr(cost, field.name) for _, cost in days) for field in fields(Cost)))
    rows = [*days[:-1], ("today", days[-1][1]), ("total", total)]

    def amount(show: Any) -> Any:
        return lambda row: show(row[1]) if row[1].requests else ""

    def of_cap(row: tuple[str, Cost]) -> str:
        return f"{row[1].usd / cap:.0%}" if cap > 0 and row[1].requests and row[0] != "total" else ""

    def drawn(row: tuple[str, Cost]) -> str:
        return "" if row[0] == "total" else bar(row[1].usd, scale)

    columns = (
        Column("day", lambda row: row[0], style=lambda row: ""),
        Column("requests", amount(lambda cost: cost.requests), right=True, gives_way=1),
        Column("sent", amount(lambda cost: short(cost.sent)), right=True, gives_way=5),
        Column("cached", amount(lambda cost: cost.cached), right=True, gives_way=2),
        Column("received", amount(lambda cost: short(cost.output_tokens)), right=True, gives_way=3),
        Column("cost", amount(lambda cost: f"${cost.usd:,.4f}"), right=True),
        Column("of cap", of_cap, right=True, gives_way=6, empty=""),
        Column("", drawn, gives_way=4, empty="", style=lambda row: "red" if row[1].usd >= cap else "green"),
    )
    return Table(rows, columns, lambda row: "bold" if row[0] in ("today", "total") else "")


def bar(value: float, scale: float) -> str:
    """So much of the width as the value is of the scale; something is never drawn as nothing."""
    eighths = min(round(8 * BAR * value / scale), 8 * BAR) if scale else 0
    eighths = max(1, eighths) if value else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def short(tokens: int) -> str:
    """45,210 as 45.2k."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= 0.99995 * size:
            return f"{tokens / size:.1f}{sign}"
    return str(tokens)


def dollars(usd: float) -> str:
    """To the cent, or more exactly where a cent would be too coarse."""
    return f"${usd:,.2f}" if usd == 0 or usd >= 0.995 or round(usd, 2) == round(usd, 4) else f"${usd:.4f}"
