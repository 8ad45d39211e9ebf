"""Every conversation over a small alphabet: what is counted, what is covered, what is found."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import pytest

from haru_fsm import Limits
from haru_fsm.conversation import Event, MessageReceived
from haru_fsm.testing.alphabet import alphabet
from haru_fsm.testing.exhaustive import Explorer, as_play
from haru_fsm.testing.hunting import ALL_PROMISES, Ground
from haru_fsm.testing.own_alphabet import made_up
from tests.engine.shopless import bare
from tests.testing.broken import NeverTrips, Weighed, small_app, weighing

EVENTS = alphabet(["look", "pay"])


def test_of_one_choice_there_are_as_many_conversations_as_events() -> None:
    explored = Explorer(small_app(), depth=1, events=EVENTS).explore()
    assert explored.conversations == 7, "three answers, three wishes, one failure"
    assert explored.cut_off == 3, "the wishes go on beyond the depth"
    assert sum(explored.endings.values()) == 4
    assert not explored.broken


def test_it_says_what_there_was_to_choose_from_and_counts_the_row_that_begins() -> None:
    app = bare(Limits())
    explored = Explorer(app, depth=1, events=EVENTS).explore()
    begins = next(number for number, row in enumerate(app.workflow.rows) if row.event is MessageReceived)
    assert begins in explored.rows
    assert explored.alphabet == {"model_answered": 3, "tools_requested": 3, "model_failed": 1}
    assert Explorer(app, depth=1, events=EVENTS, resumes=1).explore().alphabet["resumed"] == 1


def test_transitions_are_made_once_however_many_conversations_share_them() -> None:
    """Two choices: seven replies, then four outcomes of each of three wishes; and what follows of itself."""
    explored = Explorer(small_app(), depth=2, events=EVENTS).explore()
    replies, outcomes, observed, tickets = 7, 3 * 4, 3 * 4, 2
    assert explored.transitions == replies + outcomes + observed + tickets


def test_the_default_table_holds_and_the_deeper_the_more_of_it_is_seen() -> None:
    app = bare(Limits(max_steps=3, loop_repeats=2, loop_nudges=1))
    shallow, deep = (Explorer(app, depth=depth, events=EVENTS).explore() for depth in (2, 6))
    assert not shallow.broken
    assert not deep.broken
    assert shallow.rows < deep.rows
    assert deep.endings["ticket_opened"] > 0
    resumed = Explorer(app, depth=2, events=EVENTS, resumes=1).explore()
    assert not resumed.broken
    fired = {str(app.workflow.rows[number]) for number in resumed.rows - shallow.rows}
    assert any(row.startswith("resumed:") for row in fired)


def test_a_budget_that_is_not_kept_is_found_with_the_way_to_it() -> None:
    app = small_app(budget=NeverTrips(2))
    explored = Explorer(app, depth=8, events=EVENTS).explore()
    assert "its certificate allows" in explored.broken
    assert explored.shown_by[-1].seq == len(explored.shown_by)
    with Ground(app) as ground:
        found = ground.judged(as_play(explored.shown_by, "C1"), ALL_PROMISES)
    assert found is not None, "the driver finds the same on the way that was found"


def test_an_event_that_the_alphabet_has_none_of_is_said() -> None:
    fewer = {kind: some for kind, some in EVENTS.items() if kind.__name__ != "ModelFailed"}
    assert Explorer(small_app(), depth=2, events=fewer).explore().unknown == {"model_failed"}


@pytest.mark.parametrize("depth", [1, 3])
def test_progress_ends_at_all_of_it(depth: int) -> None:
    told: list[float] = []
    explorer = Explorer(small_app(), depth=depth, events=EVENTS, on_tick=lambda share, _: told.append(share))
    explorer._ticked = -10_000  # report at every place
    explorer.explore()
    assert all(0 <= share <= 1.0001 for share in told)


class Odd(Event):
    kind: Literal["odd"] = "odd"
    when: datetime


def test_events_of_ones_own_are_made_up_from_their_fields() -> None:
    made = made_up(Weighed)
    assert [(each.heavy, each.by) for each in made if isinstance(each, Weighed)] == [
        (heavy, by) for heavy in (False, True) for by in ("scale", "hand")
    ]
    assert all(isinstance(each, Weighed) and (each.grams, each.colour) == (7, None) for each in made)
    assert made_up(Odd) == ()


def test_what_comes_after_a_state_of_ones_own_is_seen() -> None:
    explored = Explorer(weighing(Weighed), depth=2, events=EVENTS).explore()
    assert explored.alphabet["weighed"] == 4
    assert explored.endings["model_answered"] == 4 * 2, "of three answers one claims a ticket"
    assert not explored.unknown


def test_what_cannot_be_made_up_can_be_given() -> None:
    app = weighing(Odd)
    unseen = Explorer(app, depth=2, events=EVENTS).explore()
    assert (unseen.unknown, unseen.conversations) == ({"odd"}, 0)
    given: dict[type[Event], Sequence[Event]] = {**EVENTS, Odd: (Odd(when=datetime(2026, 7, 1, tzinfo=UTC)),)}
    assert Explorer(app, depth=2, events=given).explore().endings
