"""Shares with their intervals: so many of so many, counted one by one or by the conversation."""

from __future__ import annotations

import math
from dataclasses import dataclass

Z = 1.959964
"""The normal quantile of 95 %, two-sided."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int
    independent: float | None = None
    """How many independent ones they are worth, where they are not: steps of one conversation come together."""

    @property
    def share(self) -> float:
        """Between 0 and 1; 0 of 0 is 0."""
        return self.count / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % (E. B. Wilson, 1927), over what is independent."""
        n, p = self.of if self.independent is None else self.independent, self.share
        if not n:
            return 0.0, 1.0
        middle, spread = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
        return max(0.0, (middle - spread) / (1 + Z * Z / n)), min(1.0, (middle + spread) / (1 + Z * Z / n))

    def __str__(self) -> str:
        if not self.of:
            return "0/0"
        low, high = self.interval
        return f"{self.count}/{self.of} = {self.share:.1%} [{low:.1%}, {high:.1%}]"

    @property
    def briefly(self) -> str:
        """The share alone; a dash where there is nothing to share."""
        return f"{self.share:.1%}" if self.of else "–"


@dataclass(slots=True)
class Clustered:
    """A share of things that come in clusters: the steps of conversations, of which a stop saves all the last ones.

    Each cluster is drawn as a whole, so the variance is that of a ratio of sums (Cochran, Sampling Techniques, 1977,
    6.4), and the interval Wilson's with as many independent ones as would have that variance (Korn and Graubard, 1998).
    Where no cluster differs from the others, the clusters themselves are counted.
    """

    clusters: int = 0
    count: int = 0
    of: int = 0
    _counts: int = 0
    _both: int = 0
    _ofs: int = 0

    def add(self, count: int, of: int) -> None:
        """One more cluster; an empty one tells nothing."""
        self.clusters += of > 0
        self.count, self.of = self.count + count, self.of + of
        self._counts, self._both, self._ofs = (
            self._counts + count * count,
            self._both + count * of,
            self._ofs + of * of,
        )

    @property
    def share(self) -> Share:
        """The share, with what it is worth."""
        return Share(self.count, self.of, self._independent())

    def _independent(self) -> float:
        n = self.clusters
        if n < 2:
            return float(n)
        p = self.count / self.of
        squares = self._counts - 2 * p * self._both + p * p * self._ofs
        variance = squares * n / (n - 1) / self.of**2
        return min(float(self.of), p * (1 - p) / variance) if variance > 0 and 0 < p < 1 else float(n)
