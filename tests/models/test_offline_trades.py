"""The offline planner with tools of other trades: a hotel in Korean, a bank in English. It has no word of either."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from haru_fsm.conversation import JSON
from haru_fsm.models import Declaration
from haru_fsm.models.offline_phrases import ENGLISH, KOREAN
from tests.models.test_offline import Talk


def one(name: str, description: str = "", kind: str = "string") -> JSON:
    """A schema of one parameter."""
    described = {"type": kind, **({"description": description} if description else {})}
    return {"type": "object", "properties": {name: described}, "required": [name]}


BOOKINGS = [
    {"booking_id": "BK-1001", "room": "오션뷰", "price": 480000, "status": "확정"},
    {"booking_id": "BK-1002", "room": "스위트", "price": 390000, "status": "입금대기"},
]
HOTEL = [
    Declaration("my_bookings", "손님의 예약을 모두 보여 줍니다.", read_only=True),
    Declaration("get_booking", "예약 한 건의 상세.", one("booking_id", "예약번호, BK-로 시작."), read_only=True),
    Declaration("cancel_booking", "예약을 취소합니다.", one("booking_id"), read_only=False),
    Declaration("clean_now", "객실을 청소합니다.", read_only=False),
]
CARDS = [{"card_id": "CARD-7001", "kind": "debit"}, {"card_id": "CARD-7002", "kind": "credit"}]
BANK = [
    Declaration("list_accounts", "List the customer's accounts with their balance.", read_only=True),
    Declaration("list_transactions", "List the latest transactions.", one("account_id"), read_only=True),
    Declaration("list_cards", "List the customer's cards.", read_only=True),
    Declaration("block_card", "Block a card that is lost or stolen.", one("card_id"), read_only=False),
    Declaration("search_help", "Search the bank's help pages: fees, opening hours.", one("query"), read_only=True),
]
GIVEN: Mapping[str, Any] = {
    "my_bookings": BOOKINGS,
    "get_booking": BOOKINGS[0],
    "cancel_booking": {"booking_id": "BK-1001", "status": "취소"},
    "clean_now": "오후 2시에 청소합니다.",
    "list_accounts": [{"account_id": "ACC-1", "balance": 9.5}, {"account_id": "ACC-2", "balance": 1}],
    "list_transactions": [{"date": "2026-11-20", "amount": -20.5, "text": "Supermarket"}],
    "list_cards": CARDS,
    "block_card": {"card_id": "CARD-7001", "state": "blocked"},
    "search_help": [{"title": "Hours", "body": "9 to 16."}],
}


@pytest.fixture
def hotel() -> Talk:
    return Talk(HOTEL, lambda name, args: {"result": GIVEN[name]}, system="호텔의 상담원입니다.")


@pytest.fixture
def bank() -> Talk:
    return Talk(BANK, lambda name, args: {"result": GIVEN[name]}, system="You are the help desk of a bank.")


# --------------------------------------------------------------------------- acts that no concept names


@pytest.mark.parametrize(
    "question",
    [
        "Please block my card CARD-7001",
        "block card CARD-7001",
        "I lost CARD-7001. Could you block the card?",
    ],
)
async def test_an_act_is_wished_for_in_the_words_of_its_name(bank: Talk, question: str) -> None:
    await bank.say(question)
    assert bank.calls == [("block_card", {"card_id": "CARD-7001"})]


@pytest.mark.parametrize("question", ["객실 청소해 주세요", "객실 청소 부탁드립니다.", "객실 좀 청소해줘"])
async def test_an_act_is_wished_for_in_the_words_of_its_description(hotel: Talk, question: str) -> None:
    await hotel.say(question)
    assert hotel.calls == [("clean_now", {})]


@pytest.mark.parametrize(
    "question",
    [
        "Please unblock my card CARD-7001",
        "Please don't block my card CARD-7001",
        "How do I block a card?",
        "Can I block my card?",
        "If it is stolen, block the card CARD-7001.",
        "Why did you block my card CARD-7001?",
        "block card CARD-7001: what happens then?",
        "I want a new card",
    ],
)
async def test_nothing_is_done_where_it_is_not_clearly_wished_for(bank: Talk, question: str) -> None:
    await bank.say(question)
    assert "block_card" not in {name for name, _ in bank.calls}


@pytest.mark.parametrize(
    "question",
    [
        "객실 청소 취소해 주세요",
        "객실 청소하지 마세요",
        "객실 청소는 언제 하나요?",
        "객실 청소 시간 알려 주세요",
        "객실 청소해 주는지 알려 주세요",
        "객실 바꿔 주세요",
    ],
)
async def test_nothing_is_done_where_it_is_not_clearly_wished_for_in_korean(hotel: Talk, question: str) -> None:
    await hotel.say(question)
    assert "clean_now" not in {name for name, _ in hotel.calls}


# --------------------------------------------------------------------------- numbers, and where they come from


async def test_which_one_is_asked_with_what_a_list_of_such_things_has(bank: Talk, hotel: Talk) -> None:
    answer = await bank.say("Please block my card")
    assert bank.calls == [("list_cards", {})]
    assert answer == (
        f"{ENGLISH.which}\n- card id CARD-7001, kind debit\n- card id CARD-7002, kind credit\n"
        "I need the card id. Could you tell me that, please?"
    )
    await bank.say("CARD-7002")
    assert bank.calls == [("block_card", {"card_id": "CARD-7002"})]
    answer = await hotel.say("예약 취소하고 싶어요")
    assert hotel.calls == [("my_bookings", {})]
    assert answer.startswith(KOREAN.which)
    assert answer.endswith("예약번호를 알려 주시겠어요?")
    await hotel.say("스위트요")
    assert hotel.calls[-1] == ("cancel_booking", {"booking_id": "BK-1002"})


async def test_what_a_list_has_is_looked_up_one_by_one(bank: Talk) -> None:
    await bank.say("Show my latest transactions")
    assert bank.replies == [
        [("list_accounts", {})],
        [("list_transactions", {"account_id": "ACC-1"}), ("list_transactions", {"account_id": "ACC-2"})],
    ]


async def test_a_number_goes_to_the_tool_that_takes_its_kind(bank: Talk) -> None:
    await bank.say("Show transactions of ACC-100200")
    assert bank.calls == [("list_transactions", {"account_id": "ACC-100200"})]
    await bank.say("CARD-7001?")
    assert ("list_transactions", {"account_id": "CARD-7001"}) not in bank.calls


# --------------------------------------------------------------------------- words


async def test_a_field_is_called_as_the_tools_call_it(hotel: Talk) -> None:
    answer = await hotel.say("제 예약 확인해 주세요")
    assert answer == (
        f"{KOREAN.found}\n- 예약번호: BK-1001\n  room: 오션뷰\n  가격: 480000\n  상태: 확정\n"
        "- 예약번호: BK-1002\n  room: 스위트\n  가격: 390000\n  상태: 입금대기"
    )


async def test_a_record_with_a_text_among_its_fields_is_no_article(bank: Talk) -> None:
    answer = await bank.say("Show transactions of ACC-100200")
    assert answer == f"{ENGLISH.found}\n- date: 2026-11-20\n  amount: -20.5\n  text: Supermarket"


async def test_what_is_searched_in_an_english_app_is_not_said_in_korean(bank: Talk) -> None:
    await bank.say("What are your opening hours?")
    assert bank.calls == [("search_help", {"query": "What are your opening hours?"})]


@pytest.mark.parametrize("said", ["Hello", "thank you", "This is awful", "good bye", "Fine with me"])
async def test_small_talk_is_no_search(bank: Talk, said: str) -> None:
    assert not re.search("[가-힣]", await bank.say(said))
    assert bank.calls == []
