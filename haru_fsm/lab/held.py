"""What recordings hold: how many there are of what is counted, and what cannot be told from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from haru_fsm.lab.outcomes import Case
from haru_fsm.lab.shares import Share

TOO_WIDE = 0.1
"""The share of successes that a rule may stop unseen, from which it is said."""


@dataclass
class Held:
    """What the recordings hold, so that every figure can be seen for what it is."""

    conversations: int = 0
    replies_with_calls: int = 0
    without_calls: int = 0
    """Conversations in which a guard has nothing to judge."""
    successes: int = 0
    for_detection_only: int = 0
    """Conversations whose success says nothing of what a stop would have destroyed."""
    failures: int = 0
    unlabelled: int = 0
    """Conversations of which nobody said how they ended."""
    true_loops: int = 0

    def add(self, case: Case) -> None:
        """One more."""
        turns, success = case.recording.turns, case.recording.success
        self.conversations += 1
        self.replies_with_calls += turns
        self.without_calls += not turns
        self.successes += bool(success) and case.counts
        self.for_detection_only += bool(success) and not case.counts
        self.failures += success is False
        self.unlabelled += success is None
        self.true_loops += len(case.loops)

    def lines(self) -> Iterator[str]:
        """For people: what there is, and what nothing can be said of."""
        only = f" (and {self.for_detection_only:,} for detection only)" if self.for_detection_only else ""
        ends = f"successes: {self.successes:,}{only} · failures: {self.failures:,}"
        yield (
            f"conversations: {self.conversations:,} · replies with calls: {self.replies_with_calls:,} · "
            f"true loops: {self.true_loops:,}"
        )
        yield f"{ends} · without a label: {self.unlabelled:,}"
        if not self.replies_with_calls:
            yield "None of them calls a tool, so there is nothing for a guard to judge."
        elif not self.successes:
            yield "None of them is known to have succeeded, so what a stop would destroy is not known."
        elif (most := Share(0, self.successes).interval[1]) > TOO_WIDE:
            yield f"Of so few successes little can be told: a rule that stops none may still stop {most:.0%} of others."
