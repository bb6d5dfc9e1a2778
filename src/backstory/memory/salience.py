"""How present a memory is. Pure arithmetic; the values are stored, the decay is computed when reading.

A job that multiplied the stored value again and again would compound the decay, so nothing does.
"""

import math

DECAY_PER_DAY = {  # lambda, by sector
    "emotional": 0.003,
    "semantic": 0.005,
    "reflective": 0.008,
    "procedural": 0.01,
    "episodic": 0.02,
}
FLOOR, CEILING = 0.05, 0.99
PROMOTED_ABOVE = 0.7
FADED_DAYS = 30
FADED_BELOW = 0.1  # present salience; a trace that nobody came back to is there after about a month
RECALLED, REINFORCED, DEEMPHASIZED = 0.02, 0.1, 0.2
DAY_MS = 24 * 3600 * 1000


def decayed(stored: float, sector: str, importance: float, last_accessed: int, now: int) -> float:
    """What is left of the salience stored at `last_accessed`."""
    days = max(0, now - last_accessed) / DAY_MS
    return stored * math.exp(-DECAY_PER_DAY[sector] * days / (importance + 0.1))


def present(decayed_salience: float, accesses: int) -> float:
    """The salience that counts: having been used often lifts it a little."""
    return min(CEILING, max(FLOOR, decayed_salience + (1 - decayed_salience) * lift(accesses)))


def lift(accesses: int) -> float:
    """The part of what is missing to 1 that use makes up for."""
    return min(0.1, 0.02 * math.log(1 + accesses))


def reinforced(salience: float, amount: float) -> float:
    """Each reinforcement closes a part of the gap to 1, so the returns diminish."""
    return salience + amount * (1 - salience)


def deemphasized(decayed_salience: float, accesses: int, amount: float) -> float:
    """What to store so that what is shown falls by the amount; never below the floor, so it can be found."""
    target = max(FLOOR, present(decayed_salience, accesses) - amount)
    lifted = lift(accesses)  # having been used lifts what is shown above what is stored
    return max(0.0, (target - lifted) / (1 - lifted))
