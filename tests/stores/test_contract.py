"""One contract for every store: what was appended is there, whole, in order, once, and nobody overwrites anybody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haru_fsm import leases
from haru_fsm.conversation import Conversation, ModelFailed, ResultStatus, TicketClosed, TicketOpened
from haru_fsm.errors import ConversationMoved, StoreError
from haru_fsm.models.scripted import answer
from haru_fsm.stores import Outcome, Started, Store
from haru_fsm.stores.journal import Line, checksum, read
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.stores.sqlite import SQLiteStore
from tests.tables import SMALL, a_ticket, received, stepped


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "haru.db")
    yield made
    await made.aclose()


async def put(
    store: Store, conversation: Conversation, *, expected: int = 0, owner: str | None = "me", over: str | None = None
) -> None:
    await store.append(conversation, expected_seq=expected, owner=owner, over=over, lease_s=15)


async def test_what_was_appended_is_loaded(store: Store) -> None:
    conversation = stepped(received(), {"status": "배송중", "nul": "a\x00b", "big": 2**70})
    await put(store, conversation)
    record = await store.load("c-1")
    assert record is not None
    assert record.steps == conversation.steps
    assert (record.summary.state, record.summary.resting, record.summary.seq) == ("ASK", False, 4)
    assert SMALL.replay(SMALL.begin("c-1", "C003"), record.steps) == conversation


async def test_an_unknown_conversation_is_none(store: Store) -> None:
    assert await store.load("nobody") is None


async def test_what_no_database_can_keep_is_not_there_or_refused_by_an_error_of_ours(store: Store) -> None:
    await put(store, received())
    for look in (
        store.load("\ud800"),
        store.conversations(customer_id="\ud800"),
        store.tickets(conversation_id="\ud800"),
        store.note("c-1", "\ud800", Outcome(status=ResultStatus.DONE, response={})),
    ):
        with suppress(StoreError):
            assert not await look or isinstance(store, MemoryStore)
    assert await store.load("c-1") is not None


async def test_an_append_goes_on_where_the_last_one_ended(store: Store) -> None:
    first = received()
    await put(store, first)
    second = stepped(first, "ok")
    await put(store, second, expected=first.seq)
    record = await store.load("c-1")
    assert record is not None
    assert [step.seq for step in record.steps] == [1, 2, 3, 4]


@pytest.mark.parametrize("expected", [0, 2, 7])
async def test_a_stale_worker_changes_nothing(store: Store, expected: int) -> None:
    first = received()
    await put(store, first)
    with pytest.raises(ConversationMoved):
        await put(store, stepped(first, "stale"), expected=expected)
    record = await store.load("c-1")
    assert record is not None
    assert record.steps == first.steps


async def test_of_two_workers_one_wins(store: Store) -> None:
    first = received()
    await put(store, first)
    both = [put(store, stepped(first, name), expected=first.seq) for name in ("one", "two")]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(ConversationMoved) == 1
    record = await store.load("c-1")
    assert record is not None
    assert [step.seq for step in record.steps] == [1, 2, 3, 4]


async def test_only_the_owner_moves_a_conversation(store: Store) -> None:
    first = received()
    await put(store, first, owner="me")
    with pytest.raises(ConversationMoved):
        await put(store, stepped(first, "x"), expected=1, owner="you")
    await put(store, stepped(first, "x"), expected=1, owner="you", over="me")
    with pytest.raises(ConversationMoved):
        await put(store, stepped(stepped(first, "x"), "y"), expected=4, owner="me")


async def test_an_append_holds_the_conversation_for_as_long_as_its_lease(store: Store) -> None:
    first, began = received(), time.time()
    await put(store, first)
    until = (await store.conversations())[0].lease_until
    assert began + 15 <= until <= time.time() + 15
    await put(store, SMALL.advance(first, answer("네.")), expected=1)
    assert (await store.conversations())[0].lease_until == 0


async def test_rest_gives_the_lease_back(store: Store) -> None:
    conversation = SMALL.advance(received(), answer("곧 도착합니다."))
    await put(store, conversation)
    record = await store.load("c-1")
    assert record is not None
    assert record.summary.owner is None
    assert await store.conversations(unfinished=True) == []


async def test_a_lease_is_released_by_its_owner_only(store: Store) -> None:
    await put(store, received())
    await store.release("c-1", "you")
    assert (await store.conversations())[0].owner == "me"
    await store.release("c-1", "me")
    assert (await store.conversations())[0].owner is None


async def test_the_first_start_and_the_first_outcome_win(store: Store) -> None:
    await put(store, received())
    start = Started(run=1, name="cancel_order", digest="d", declared=True)
    assert await store.note("c-1", "2.0", start) is True
    assert await store.note("c-1", "2.0", start) is False
    done = Outcome(status=ResultStatus.DONE, response={"result": "cancelled"})
    assert await store.note("c-1", "2.0", done) is True
    assert await store.note("c-1", "2.0", Outcome(status=ResultStatus.NOT_DONE, response={"error": "late"})) is False
    record = await store.load("c-1")
    assert record is not None
    entry = record.ledger["2.0"]
    assert (entry.started, entry.outcome) == (start, done)


async def test_many_claims_at_once_have_one_winner(store: Store) -> None:
    await put(store, received())
    claims = [store.note("c-1", "2.0", Started(run=1, name="pay", digest=str(n))) for n in range(20)]
    assert sum(await asyncio.gather(*claims)) == 1


async def test_the_ledger_belongs_to_a_conversation(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.note("nobody", "2.0", Started(run=1, name="pay", digest=""))


async def test_a_noted_result_is_kept_in_the_ledger_and_read_back_whole(store: Store) -> None:
    first = received()
    await put(store, first)
    await store.note("c-1", "2.0", Outcome(status=ResultStatus.DONE, response={"result": {"order": "HR1"}}))
    conversation = stepped(first, {"order": "HR1"}, noted=True)
    await put(store, conversation, expected=1)
    record = await store.load("c-1")
    assert record is not None
    assert record.steps == conversation.steps


async def test_ticket_and_step_are_there_together(store: Store) -> None:
    conversation = SMALL.advance(received(), ModelFailed(reason="empty"))
    conversation = SMALL.advance(
        conversation, TicketOpened(ticket=a_ticket(), notice="접수 번호는 HT-0000000001입니다.")
    )
    await put(store, conversation)
    assert [stored.ticket for stored in await store.tickets()] == [a_ticket()]
    record = await store.load("c-1")
    assert record is not None
    assert record.open_ticket == a_ticket()

    closed = SMALL.advance(conversation, TicketClosed(ticket_id="HT-0000000001", reply="처리했습니다.", at=9.0))
    await put(store, closed, expected=conversation.seq)
    assert await store.tickets(open_only=True) == []
    assert (await store.tickets())[0].reply == "처리했습니다."


async def test_an_append_that_fails_files_no_ticket(store: Store) -> None:
    conversation = SMALL.advance(received(), ModelFailed(reason="empty"))
    conversation = SMALL.advance(conversation, TicketOpened(ticket=a_ticket(), notice=""))
    with pytest.raises(ConversationMoved):
        await put(store, conversation, expected=5)
    assert await store.tickets() == []


async def test_one_key_has_one_ticket_and_one_conversation_one_open_ticket(store: Store) -> None:
    first = store.file_ticket(a_ticket())
    assert store.file_ticket(a_ticket(ticket_id="HT-0000000002")) == first
    assert store.file_ticket(a_ticket(key="c-1/2", ticket_id="HT-0000000003")) == first
    other = store.file_ticket(a_ticket(conversation_id="c-2", key="c-2/1"))
    assert other.ticket_id != first.ticket_id, "a number that is taken is never given twice"
    assert len(await store.tickets()) == 2


async def test_the_same_words_are_added_to_a_ticket_once(store: Store) -> None:
    """By a tool, and by the step that tells of it."""
    store.file_ticket(a_ticket())
    again = a_ticket().model_copy(update={"summary": "하나 더"})
    store.file_ticket(again)
    conversation = SMALL.advance(received(), ModelFailed(reason="empty"))
    for note in ("하나 더", "둘 더", "둘 더"):
        opened = TicketOpened(ticket=a_ticket(), notice="", added=True, note=note)
        for event in (opened, received().steps[0].event, ModelFailed(reason="empty")):
            conversation = SMALL.advance(conversation, event)
    await put(store, conversation)
    store.file_ticket(again)
    assert (await store.tickets())[0].notes == ("하나 더", "둘 더")


async def test_an_append_may_say_when_it_was(store: Store) -> None:
    first = received()
    await store.append(first, expected_seq=0, owner=None, over=None, lease_s=15, at=100.5)
    await store.append(stepped(first, "ok"), expected_seq=1, owner=None, over=None, lease_s=15, at=200.5)
    record = await store.load("c-1")
    assert record is not None
    assert (record.summary.created_at, record.summary.updated_at) == (100.5, 200.5)


async def test_lists_show_the_latest_first(store: Store) -> None:
    for name in ("c-1", "c-2", "c-3"):
        await put(store, received(name))
    assert [summary.conversation_id for summary in await store.conversations(limit=2)] == ["c-3", "c-2"]
    assert await store.conversations(customer_id="C999") == []


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON_VALUES, text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_and_any_text_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, value: object, text: str
) -> None:
    async def there_and_back() -> None:
        store = SQLiteStore(tmp_path_factory.mktemp("db") / "haru.db")
        try:
            conversation = stepped(received(text=text), value)
            await put(store, conversation)
            record = await store.load("c-1")
            assert record is not None
            assert record.steps == conversation.steps
        finally:
            await store.aclose()

    asyncio.run(there_and_back())


def test_a_lease_of_this_process_is_void_once_given_back() -> None:
    owner = leases.take()
    assert not leases.is_void(owner, lease_until=0, now=10)
    leases.give_back(owner)
    assert leases.is_void(owner, lease_until=100, now=10)


def test_a_lease_of_a_dead_process_is_void_at_once_and_one_elsewhere_when_it_runs_out() -> None:
    assert leases.is_void(f"{leases.this_host()}|999999999|1|aa", lease_until=100, now=10)
    assert not leases.is_void("another-host/1|1|1|aa", lease_until=100, now=10)
    assert leases.is_void("another-host/1|1|1|aa", lease_until=9, now=10)
    assert leases.is_void(None, lease_until=100, now=10)


def test_a_note_that_only_a_newer_version_knows_is_passed_over() -> None:
    check = checksum(b"", 1, 1, "ASK", '{"rests":true,"later":1}', '{"kind":"message_received","text":"네"}')
    line = Line(1, 1, "ASK", '{"rests":true,"later":1}', '{"kind":"message_received","text":"네"}', check)
    (step,) = read("c-1", "DONE", b"", [line], {})
    assert step.rests
