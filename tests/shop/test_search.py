"""Searching finds what customers mean, in the words that customers use, and nothing where there is nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shop.opening import DATA, a_shop, seed, tools_of
from tools.search import Index

TOOLS = tools_of("C003", a_shop(DATA))

POLICIES = [
    ("배송은 며칠 걸려요?", "배송 기간"),
    ("오늘 주문하면 언제 출고되나요", "배송 기간"),
    ("배송비 얼마예요?", "배송비"),
    ("무료배송은 얼마부터예요?", "배송비"),
    ("제주도도 배송되나요?", "제주·도서산간 배송"),
    ("해외로 보내 주실 수 있나요?", "해외 배송"),
    ("예약 상품이 늦어요", "예약 판매와 배송 지연"),
    ("두 주문을 묶음배송 해 주세요", "묶음 배송"),
    ("택배가 분실된 것 같아요", "택배 분실·오배송"),
    ("배송지 변경은 언제까지 돼요?", "배송지 변경"),
    ("취소 수수료 있나요?", "주문 취소"),
    ("반품은 며칠 안에 해야 하나요?", "반품"),
    ("반품 배송비는 누가 내요?", "반품"),
    ("다른 색상으로 교환하고 싶어요", "교환"),
    ("카드 환불은 언제 되나요?", "환불 시점"),
    ("받은 상품이 고장났어요", "불량·파손과 품질 보증"),
    ("적립금은 언제 소멸되나요?", "포인트 적립과 사용"),
    ("쿠폰 두 장 중복으로 쓸 수 있나요?", "쿠폰 사용"),
    ("VIP 혜택이 뭐예요?", "회원 등급"),
    ("선물포장 되나요?", "선물 포장"),
    ("세금계산서 발행해 주세요", "현금영수증과 세금계산서"),
    ("무이자 할부 되나요?", "결제 수단"),
    ("재입고 알림 받을 수 있나요?", "품절과 재입고 알림"),
    ("고객센터 몇 시까지 해요?", "고객센터 운영 시간"),
    ("회원 탈퇴하고 싶어요", "개인정보와 회원 탈퇴"),
]
PRODUCTS = [
    ("무선이어폰 추천해 주세요", "무선 블루투스 이어폰"),
    ("여름 모자 있어요?", "UV차단 버킷햇"),
    ("캠핑 의자", "캠핑용 접이식 의자"),
    ("고양이 용품", "고양이 스크래처"),
    ("텀블러 500ml", "스테인리스 텀블러 500ml"),
    ("노트북 충전되는 보조배터리", "보조배터리 20000mAh"),
    ("아기 손수건 얼마예요?", "아기 거즈 손수건 10장"),
    ("선크림 SPF50", "수분 진정 선크림 50ml"),
]


@pytest.mark.parametrize(("question", "title"), POLICIES)
def test_policies(question: str, title: str) -> None:
    assert TOOLS["search_policies"](question)[0]["title"] == title


def test_every_policy_is_found_by_some_question() -> None:
    assert {title for _, title in POLICIES} == {policy.title for policy in seed().policies}


@pytest.mark.parametrize(("query", "name"), PRODUCTS)
def test_products(query: str, name: str) -> None:
    found = TOOLS["search_products"](query)
    assert found[0]["product_name"] == name
    assert found == TOOLS["search_products"](unicodedata.normalize("NFD", query))


def test_what_is_sold_out_says_so() -> None:
    assert TOOLS["search_products"]("캠핑 의자")[0]["availability"] == "품절"


@pytest.mark.parametrize("question", ["", "???", "알려 주세요", "qwerty", "\ud800\x00", "티라노사우루스"])
def test_nothing_is_found_where_there_is_nothing(question: str) -> None:
    assert TOOLS["search_policies"](question) == []
    assert TOOLS["search_products"](question) == []


@given(st.text(max_size=200))
def test_any_text_may_be_searched_for(question: str) -> None:
    assert len(TOOLS["search_policies"](question)) <= 3
    assert len(TOOLS["search_products"](question)) <= 5


def test_a_heading_counts_more_than_a_text() -> None:
    index = Index([("text", "다른 제목", "교환 안내"), ("heading", "교환", "다른 글")])
    assert index.find("교환", 2) == ["heading", "text"]
