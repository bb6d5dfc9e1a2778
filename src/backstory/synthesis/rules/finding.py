"""What a rule hands on: an observation, the item by which it was complete, and what it makes obsolete."""

from __future__ import annotations

from dataclasses import dataclass

from backstory.model import Observation


@dataclass(frozen=True, slots=True)
class Finding:
    observation: Observation
    done_by: int  # the item with which it was known
    replaces: tuple[tuple[int, str], ...] = ()  # earlier ones of the same session: done by, title
    learned: str = ""  # the cause in it, for the summary

    @property
    def key(self) -> tuple[int, str]:
        return self.done_by, self.observation.title
