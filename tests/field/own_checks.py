"""What our own cases demand beside counts and endings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from haru_fsm.contents import BLOCKED_RESULT
from haru_fsm.conversation import ModelEvent, ObservationAppended, Resumed, executed
from haru_fsm.errors import HaruError
from haru_fsm.models.gemini_signatures import UNSIGNED
from haru_fsm.testing.strict import check_responses_alone
from tests.field.checks import Check
from tests.field.playing import Played


def _reasons(*wanted: str) -> Check:
    """What went wrong with requests, in order."""

    def check(come: Played) -> None:
        assert [str(each.reason) for each in come.incidents()] == list(wanted)

    return check


def _ticket_says(*words: str) -> Check:
    def check(come: Played) -> None:
        summary = come.tickets[0].ticket.summary
        assert all(word in summary for word in words), summary

    return check


def _all(*checks: Check) -> Check:
    def check(come: Played) -> None:
        for each in checks:
            each(come)

    return check


def _never_sent(*words: str) -> Check:
    def check(come: Played) -> None:
        for body in come.gemini.requests:
            sent = json.dumps(body["contents"], ensure_ascii=False)
            assert not any(word in sent for word in words), sent

    return check


def _ran_with(name: str, *args: dict[str, Any]) -> Check:
    def check(come: Played) -> None:
        assert come.stage.log.read("begun", name) == list(args)

    return check


def _first_error_says(*words: str) -> Check:
    def check(come: Played) -> None:
        error = come.responses(2)[0]["response"]["error"]
        assert all(word in error for word in words), error

    return check


def _results(come: Played) -> list[dict[str, Any]]:
    return [each["response"] for each in come.responses(2)]


def _kinds(come: Played) -> list[str]:
    return [next(iter(response)) for response in _results(come)]


# --------------------------------------------------------------------------- replies and histories


def _o002b(come: Played) -> None:
    assert "배송중" in come.tickets[0].ticket.summary
    hints = [body["contents"][-1]["parts"][-1]["text"] for body in come.gemini.requests[2:]]
    assert len(set(hints)) == len(hints) == 2


def _o010a(come: Played) -> None:
    assert come.responses(2)[0]["name"] == "default_api.get_order"
    assert come.responses(3)[0]["name"] == "default_api:get_order"
    assert all("result" in come.responses(number)[0]["response"] for number in (2, 3))


def _o016c(come: Played) -> None:
    assert come.incidents()[0].finish_reason == "REASON_OF_NEXT_YEAR"
    _never_sent("확인 중")(come)


def _o018a(come: Played) -> None:
    assert [each["id"] for each in come.responses(2)] == ["a", "b", "c", "d", "e"]
    assert _kinds(come) == ["result", "error", "error", "error", "result"]


def _o018b(come: Played) -> None:
    assert [each["id"] for each in come.responses(2)] == ["a", "b"]
    assert [response["result"] for response in _results(come)] == [{"status": "CANCELLED"}] * 2


def _o018c(come: Played) -> None:
    statuses = [response["result"]["status"] for response in _results(come)]
    assert statuses == ["결제완료", "CANCELLED", "취소됨"]


def _o021a(come: Played) -> None:
    for body in come.gemini.requests:
        assert check_responses_alone(body["contents"]) == []
    assert come.contents(3)[-1]["parts"][0].keys() == {"text"}
    assert come.contents(3)[-2] == come.contents(2)[-1]


def _o021b(come: Played) -> None:
    (resumed,) = (step for step in come.record.steps if isinstance(step.event, Resumed))
    assert resumed.run == 1
    assert [content["role"] for content in come.contents(3)] == ["user", "model", "user", "model", "user"]


def _o021c(come: Played) -> None:
    assert "lost" in come.responses(1)[0]["response"]["error"]
    assert come.contents(1)[-1]["parts"] == [{"text": come.case.messages[0]["text"]}]


def _o022a(come: Played) -> None:
    _, called, answered, hurried, said, _ = come.contents(1)
    calls = [part["functionCall"] for part in called["parts"]]
    responses = [part["functionResponse"] for part in answered["parts"]]
    assert [each["response"]["result"]["order_id"] for each in responses] == [
        each["args"]["order_id"] for each in calls
    ]
    assert (hurried["parts"], said["role"]) == ([{"text": "빨리요"}], "model")


def _signed(come: Played, number: int) -> list[bool]:
    return ["thoughtSignature" in part for part in come.contents(number)[1]["parts"]]


def _o026a(come: Played) -> None:
    assert _signed(come, 2) == [True, False]
    assert come.contents(2)[1] == come.case.script["model"][0]["candidates"][0]["content"]


def _o026b(come: Played) -> None:
    received = come.case.script["model"][0]["candidates"][0]["content"]["parts"][0]["thoughtSignature"]
    signatures = [body["contents"][1]["parts"][0]["thoughtSignature"] for body in come.gemini.requests[1:3]]
    assert signatures == [received, UNSIGNED]
    assert received in come.record.steps[1].event.model_dump_json(), "the journal keeps it"


def _o030b(come: Played) -> None:
    assert come.contents(2)[1] == come.case.script["model"][0]["candidates"][0]["content"]


# --------------------------------------------------------------------------- ids and arguments


def _o032b(come: Played) -> None:
    assert [each.get("id") for each in come.responses(2)] == ["x", None, None]
    statuses = [response["result"]["status"] for response in _results(come)]
    assert statuses == ["배송중", "결제완료", "배송완료"]


def _o038a(come: Played) -> None:
    exact = {"order_id": "HR20260725002", "amount": 12900, "reason": "DEFECT"}
    assert come.stage.log.read("begun", "refund_order") in ([], [exact])


def _o038b(come: Played) -> None:
    args = come.contents(2)[1]["parts"][0]["functionCall"]["args"]
    assert args["amount"] == "NaN", "a text, which every parser reads"


def _o042b(come: Played) -> None:
    _first_error_says("item")(come)
    assert come.stage.log.read("done") == []


# --------------------------------------------------------------------------- HTTP, messages


def _o047a(come: Played) -> None:
    said, called, waiting = come.contents(2)[1]["parts"]
    assert (said["text"], waiting["text"]) == ("확인해 볼게요.", "잠시만 기다려 주세요.")
    assert "functionCall" in called


def _o049d(come: Played) -> None:
    told = come.tickets[0].ticket.model_dump_json() + "".join(
        step.event.model_dump_json() for step in come.record.steps
    )
    assert "test-key" not in told
    assert come.incidents()[0].http_status == 403


def _o056b(come: Played) -> None:
    assert len({run.model_dump_json() for run in come.runs}) == 1
    assert come.notes["losers"] == [] or len(come.runs) == 1


def _o056c(come: Played) -> None:
    assert come.notes["said"] == {True}, "refused for a while, and told that nothing was changed"
    assert [step.run for step in come.record.steps] == sorted(step.run for step in come.record.steps)


# --------------------------------------------------------------------------- tools


def _o058b(come: Played) -> None:
    assert "이미 발송된 주문입니다" in _results(come)[0]["error"]
    assert [result.status.value for _, _, result in executed(come.record.steps)] == ["not_done"]


def _o058c(come: Played) -> None:
    assert "not known" in _results(come)[0]["error"]
    assert "cancel_order" in come.tickets[0].ticket.summary


def _o060a(come: Played) -> None:
    assert "timeout" in _results(come)[0]["error"]


def _o061a(come: Played) -> None:
    assert come.record.ledger == {}
    summary = come.tickets[0].ticket.summary
    assert "요청되었으나 실행하지 않은 일: cancel_order" in summary
    assert "처리 여부를 확인해야 하는 작업" not in summary


def _o064a(come: Played) -> None:
    none, nan, generated, circle, thing, text, items = [response["result"] for response in _results(come)]
    assert (none, text, items, generated) == (None, "배송중", [1, "b", None], ["a", "b"])
    assert nan == {"amount": "NaN", "rate": "Infinity"}
    assert circle["name"] == "circle"
    assert isinstance(thing, str | dict)


# --------------------------------------------------------------------------- circles and budgets


def _nudged(come: Played) -> None:
    assert any(event.refusals for event in come.events(ObservationAppended))


def _o070a(come: Played) -> None:
    _reasons("repeating", "repeating")(come)
    assert [body["generationConfig"]["maxOutputTokens"] for body in come.gemini.requests] == [1024] * 3


def _o074b(come: Played) -> None:
    assert len(come.responses(2)) == 50
    assert "tool" in str(come.runs[0].stopped_by).casefold()


def _o076a(come: Played) -> None:
    assert come.last.usage.estimated
    assert "token" in str(come.last.stopped_by).casefold()


# --------------------------------------------------------------------------- crashes, damage, schemas


def _o078a(come: Played) -> None:
    assert len(come.stage.log.read("done", "refund_order")) == 1
    assert "refund_order" in come.tickets[0].ticket.summary
    assert "not known" in _results(come)[0]["error"]


def _o078b(come: Played) -> None:
    assert len(come.stage.log.read("done", "cancel_order")) == 1
    assert _kinds(come) == ["result", "error", "result"]


def _o080a(come: Played) -> None:
    assert len(come.events(Resumed)) == 3
    assert "Resume" in str(come.last.stopped_by)


def _o086a(come: Played) -> None:
    refused = come.notes["refused"]
    assert len(refused) >= 4
    assert all("history" in str(error).casefold() for error in refused)


def _o086b(come: Played) -> None:
    assert len(come.notes["said"]) == 2
    assert all(come.notes["broken"] in words for words in come.notes["said"])


def _o090a(come: Played) -> None:
    for body in come.gemini.requests:
        json.dumps(body, ensure_ascii=False).encode()
    assert "배송중입니다" in come.runs[0].answer
    come.runs[0].answer.encode()


def _o093a(come: Played) -> None:
    assert come.notes["untouched"]
    assert str(come.notes["version"]) in come.notes["said"]


def _o095a(come: Played) -> None:
    assert sum("tools" not in body for body in come.gemini.requests) >= 1
    last = json.dumps(come.contents(len(come.gemini.requests)), ensure_ascii=False)
    assert all(order in last for order in ("HR20260725002", "HR20260726011"))
    compactions = [each.compaction for each in come.events(ModelEvent) if each.compaction is not None]
    assert all(each.by == "digest" for each in compactions)


def _o095b(come: Played) -> None:
    question = {"role": "user", "parts": [{"text": come.case.messages[0]["text"]}]}
    assert all(question in body["contents"] for body in come.gemini.requests)
    assert any(event.compaction for event in come.events(ModelEvent))


def _o095c(come: Played) -> None:
    first = [len(body["contents"][0]["parts"][0]["text"]) for body in come.gemini.requests]
    assert first == [18_000, 18_000, 2_000, 2_000]


def _o010d(come: Played) -> None:
    assert come.responses(2)[0]["name"] == "get_order<|channel|>commentary"
    assert come.responses(3)[0]["name"] == "get_order\n"


def _o016d(come: Played) -> None:
    sent = come.contents(3)
    assert sent[0]["parts"] == [{"text": come.case.messages[0]["text"]}]
    (response,) = (part["functionResponse"] for part in sent[2]["parts"])
    assert response["response"] == {"error": BLOCKED_RESULT}
    assert sent[-1]["parts"] == [{"text": come.case.messages[1]["text"]}]


def _o042c(come: Played) -> None:
    assert come.stage.log.read("begun", "list_orders") == [{"status": "배송중"}, {"status": "결제완료"}]
    assert "taken out of args" in come.responses(2)[0]["response"]["note"]


def _o024a(come: Played) -> None:
    said = [list(part) for content in come.contents(1) for part in content["parts"]]
    assert said == [["text"], ["functionCall", "thoughtSignature"], ["functionResponse"], ["text"], ["text"]]
    assert come.responses(1)[0]["response"] == {"status": "배송중"}
    assert "another shop" not in json.dumps(come.contents(1))


def _o026c(come: Played) -> None:
    signed = [come.contents(number)[1]["parts"][0]["thoughtSignature"] for number in (2, 3, 4)]
    assert signed == ["AQIDBA==", "AQIDBA==", "skip_thought_signature_validator"]


def _o043a(come: Played) -> None:
    (declared,) = come.gemini.requests[0]["tools"][0]["functionDeclarations"]
    assert declared["parametersJsonSchema"]["properties"]["status"]["enum"] == ["배송중"]
    assert come.stage.log.read("begun", "search_orders") == [{"status": ""}]


def _o058e(come: Played) -> None:
    ((_, _, result),) = executed(come.record.steps)
    assert (result.status, result.response) == ("not_done", {"error": "이미 발송된 주문입니다"})


def _o064b(come: Played) -> None:
    stages, row = (each["response"]["result"] for each in come.responses(2))
    assert stages == ["HR20260725002 출고", "HR20260725002 배송중"]
    assert row == {"order_id": "HR20260725002", "amount": 12900}


def _o097b(come: Played) -> None:
    assert "".join(come.notes["heard"]) == come.last.answer
    assert come.incidents() == []


def _o097c(come: Played) -> None:
    assert [each.streamed for each in come.gemini.received] == [True, False, True, False]
    assert [str(each.reason) for each in come.incidents()] == ["transport", "transport"]


def _o097d(come: Played) -> None:
    assert [run.answer for run in come.runs] == [come.last.answer] * 2
    assert come.incidents() == []


def _o106b(come: Played) -> None:
    assert come.notes["appends"] > 1
    assert len(come.stage.log.read("done", "cancel_order")) <= 1


def _o108a(come: Played) -> None:
    end = come.notes["end"]
    assert isinstance(end, HaruError) or end.state == "ESCALATE_TICKET"


CHECKS_BY_NAME: dict[str, Callable[[Played], None]] = {
    "O" + name.removeprefix("_o"): check for name, check in list(globals().items()) if name.startswith("_o")
}
OWN_CHECKS: dict[str, Check] = CHECKS_BY_NAME | {
    "O002a": _reasons("empty", "empty"),
    "O002c": _reasons("empty", "empty"),
    "O006a": _all(_reasons("malformed_call"), _never_sent("default_api")),
    "O006b": _all(_reasons("malformed_call", "malformed_call"), _never_sent("<function_call>")),
    "O006c": _all(_reasons("malformed_call", "malformed_call"), _never_sent("취소 처리")),
    "O006d": _reasons("malformed_call", "malformed_call"),
    "O006f": _never_sent("배송완료"),
    "O006g": _all(_reasons("malformed_call"), _never_sent("배송완료")),
    "O006h": _all(_reasons("malformed_call", "malformed_call"), _never_sent("default_api")),
    "O010b": _first_error_says("cancelOrder", "cancel_order"),
    "O010c": _reasons("malformed_call", "malformed_call"),
    "O012a": _all(_reasons("cut_off"), _never_sent("cancel_order")),
    "O016a": _all(_reasons("answer_blocked"), _never_sent("같은 분은")),
    "O030a": _all(_reasons("empty"), _never_sent("보상은")),
    "O035a": _ran_with("search_orders", {"status": None, "limit": 5, "since": None, "keyword": ""}),
    "O030e": _never_sent("환불"),
    "O040a": _ran_with("search_orders", {"filters": {"status": "배송중", "limit": 10}, "tags": ["fragile"]}),
    "O042a": _first_error_says("order_id"),
    "O045a": _ticket_says("get_order"),
    "O049b": _ticket_says("quota"),
    "O049e": _ticket_says("quota"),
    "O051b": _reasons("server", "server"),
    "O051c": _reasons("unreadable"),
    "O051e": _reasons("server"),
    "O058d": _first_error_says("ConnectionError: db refused", "KeyError: 'cache'"),
    "O068a": _nudged,
    "O068b": _nudged,
}
"""By the id of the case; what is not here, counts and endings say."""
