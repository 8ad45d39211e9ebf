"""What a case demands beside counts and endings (`expected.must`), as far as it can be seen from outside."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Callable
from typing import Any

from haru_fsm.asking import SUMMARISER
from haru_fsm.conversation import (
    MessageReceived,
    ModelAnswered,
    ModelFailed,
    ObservationAppended,
    Resumed,
    ToolsExecuted,
    ToolsRequested,
    executed,
)
from haru_fsm.errors import ConversationBusy, ConversationMoved, StoreError
from haru_fsm.notices import KOREAN
from haru_fsm.testing.strict import decode_signature
from tests.field.playing import CUSTOMER, Played

Check = Callable[[Played], None]


# --------------------------------------------------------------------------- unusable replies


def _f001(come: Played) -> None:
    assert come.contents(3)[-1]["role"] == "user"
    assert come.responses(3)[0]["response"]["result"]["status"] == "배송중"
    assert come.last.steps == 3, "the re-ask is counted"
    assert [(each.reason, each.finish_reason) for each in come.incidents()] == [("empty", "STOP")]


def _f003(come: Played) -> None:
    assert len(come.stage.log.read("done", "cancel_order")) == 1
    repeats = [result for _, _, result in executed(come.record.steps) if result.repeated]
    assert repeats
    assert all(result.response["result"] == {"status": "CANCELLED"} for result in repeats)


def _f004(come: Played) -> None:
    assert {each.reason for each in [*come.incidents(), *come.events(ModelFailed)]} == {"empty"}
    ticket = come.tickets[0].ticket
    assert ticket.conversation_id == come.last.conversation_id
    assert "[empty]" in ticket.summary


def _f005(come: Played) -> None:
    assert come.contents(2)[0]["parts"][0] == come.contents(1)[0]["parts"][0]
    assert all(content["role"] == "user" for content in come.contents(2))
    assert come.last.usage.total == 2595 + 140 + 140


def _f007(come: Played) -> None:
    assert come.tickets[0].ticket.summary.count("malformed_call") == 1
    assert all("print(default_api.get_order" in each.detail for each in come.incidents())
    assert _hint(come, 2)
    assert _hint(come, 3)


def _hint(come: Played, number: int) -> str:
    """What a re-ask says more than the first request."""
    said = json.dumps(come.gemini.requests[number - 1], ensure_ascii=False)
    return "" if said == json.dumps(come.gemini.requests[0], ensure_ascii=False) else said


def _f008(come: Played) -> None:
    incidents = come.incidents()
    refused = [result.response for _, call, result in executed(come.record.steps) if call.name == "get_points"]
    assert any("get_points" in each.detail for each in incidents) or refused


def _f009(come: Played) -> None:
    (response,) = come.responses(2)
    assert response["name"] == "getOrderStatus"
    assert "get_order" in response["response"]["error"]


def _f011(come: Played) -> None:
    first, second = come.gemini.requests
    assert first["generationConfig"] != second["generationConfig"]
    assert come.last.usage.thoughts == 1024


def _f014(come: Played) -> None:
    assert "prompt_blocked" in come.tickets[0].ticket.summary
    assert "PROHIBITED_CONTENT" in come.events(ModelFailed)[0].detail
    blocked = come.case.messages[0]["text"]
    for body in come.gemini.requests[1:]:
        assert blocked not in json.dumps(body, ensure_ascii=False)
    assert come.events(MessageReceived)[0].text == blocked, "the record keeps it"


def _f015(come: Played) -> None:
    assert len(come.gemini.requests) <= 1 + come.case.script["guards"]["model_retries"]
    assert _hint(come, 2)


# --------------------------------------------------------------------------- valid histories


def _f017(come: Played) -> None:
    content = come.contents(2)[-1]
    assert content["role"] == "user"
    responses = [part["functionResponse"]["response"] for part in content["parts"]]
    assert [("result" in each, "error" in each) for each in responses] == [(True, False), (False, True), (False, True)]
    assert "db down" in responses[1]["error"]
    assert not any("Traceback" in json.dumps(each) for each in responses)


def _f019(come: Played) -> None:
    sent = [json.dumps(body["contents"]) for body in come.gemini.requests]
    assert len(set(sent)) == len(sent), "never the same contents again"
    assert [event.text for event in come.events(MessageReceived)] == [each["text"] for each in come.case.messages]
    assert {run.ticket.ticket_id for run in come.runs if run.ticket} == {come.tickets[0].ticket.ticket_id}
    assert come.tickets[0].notes
    assert "여보세요?" in come.tickets[0].notes[0]


def _f022(come: Played) -> None:
    content = come.contents(2)[-1]
    assert [part["functionResponse"]["id"] for part in content["parts"]] == ["a1", "a2"]


def _f023(come: Played) -> None:
    (response,) = come.responses(2)
    assert (response["name"], response["id"]) == ("get_order", "call_660390")


def _f024(come: Played) -> None:
    roles = {content["role"] for body in come.gemini.requests for content in body["contents"]}
    assert roles == {"user", "model"}


def _f025(come: Played) -> None:
    _signature_came_back(come)
    assert come.contents(2)[1]["parts"][0]["functionCall"] == _received(come, 0)["functionCall"]


def _received(come: Played, part: int) -> Any:
    """A part of the model's first reply, as it was sent."""
    return come.case.script["model"][0]["candidates"][0]["content"]["parts"][part]


def _signature_came_back(come: Played) -> None:
    sent = come.contents(2)[1]["parts"][0]["thoughtSignature"]
    assert decode_signature(sent) == decode_signature(_received(come, 0)["thoughtSignature"])


def _f027(come: Played) -> None:
    _signature_came_back(come)
    assert come.contents(2)[1]["parts"][0]["functionCall"] == _received(come, 0)["functionCall"]
    (args,) = come.stage.log.read("begun", "refund_order")
    assert args == {"order_id": "HR20260725002", "amount": 12900, "reason": "DEFECT"}
    assert type(args["amount"]) is int


def _f028(come: Played) -> None:
    parts = come.contents(2)[1]["parts"]
    signed = [part for part in parts if "thoughtSignature" in part]
    assert [part.get("text") for part in signed] == [""]
    assert parts[-1] is signed[0]
    assert "요약 생각" not in come.runs[0].answer


def _f031(come: Played) -> None:
    responses = come.responses(2)
    statuses = [each["response"]["result"]["status"] for each in responses]
    assert statuses == ["배송중", "결제완료", "배송완료"]
    assert all("id" not in each for each in responses)


def _f033(come: Played) -> None:
    assert [each["id"] for each in come.responses(2)] == ["dup", "dup"]
    orders = [each["response"]["result"]["order_id"] for each in come.responses(2)]
    assert orders == ["HR20260725002", "HR20260726011"]
    assert len({key for key, _, _ in executed(come.record.steps)}) == 2


def _f052(come: Played) -> None:
    for body in come.gemini.requests:
        assert all(content["parts"] and all(content["parts"]) for content in body["contents"])


# --------------------------------------------------------------------------- arguments


def _f034(come: Played) -> None:
    assert come.contents(2)[1]["parts"][0]["functionCall"].get("args", {}) == {}
    assert come.stage.log.read("begun") == [{}]


def _f036(come: Played) -> None:
    error = come.responses(2)[0]["response"]["error"]
    assert all(name in error for name in ("order_id", "amount", "reason")), error


def _f037(come: Played) -> None:
    (args,) = come.stage.log.read("begun", "list_orders")
    assert (args["page"], args["page_size"]) == (2, 10)
    assert "error" not in come.responses(2)[0]["response"]


def _f039(come: Played) -> None:
    assert come.stage.log.read("begun") == [{"order_ids": ["HR20260725002", "HR20260726011"]}]


def _f041(come: Played) -> None:
    assert come.stage.log.read("begun") == [{"order_id": "HR20260725002"}]
    results = [result for event in come.events(ToolsExecuted) for result in event.results]
    assert any("tool_code" in repair for result in results for repair in result.repairs)


def _f043(come: Played) -> None:
    error = come.responses(2)[0]["response"]["error"]
    assert all(word in error for word in ("courier", "롯데택배", "CJ", "HANJIN", "LOTTE")), error


def _f044(come: Played) -> None:
    assert "invalid arguments" in come.tickets[0].ticket.summary


def _f091(come: Played) -> None:
    memo = "문 앞에 놔주세요 👍🏽"
    assert [args["memo"] for args in come.stage.log.read("begun", "set_memo")] == [memo]
    assert memo.encode() in _database(come), "the store shows Hangul, not escapes"


def _database(come: Played) -> bytes:
    """The database's own bytes, with what stands in its journal."""
    with sqlite3.connect(come.stage.database) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    return dump.encode()


def _f094(come: Played) -> None:
    summary, request = come.gemini.requests
    assert "tools" not in summary
    messages = [come.case.script["preloaded_history"][0]["parts"][0]["text"], come.case.messages[0]["text"]]
    said = [part.get("text") for content in request["contents"] for part in content["parts"]]
    assert [said[0], said[-1]] == messages, "word by word"
    assert all(order in str(said) for order in ("HR20260725002", "HR20260726011")), said
    (answered,) = come.events(ModelAnswered)
    assert (answered.requests, answered.usage.total, answered.compaction.by) == (2, 280, "model")


def _f096(come: Played) -> None:
    found = [event.compaction for event in come.events(ModelAnswered) if event.compaction is not None]
    assert all(each.after < each.before for each in found)
    told = [body["systemInstruction"]["parts"][0]["text"] for body in come.gemini.requests]
    summaries = [text for text in told if text == SUMMARISER]
    assert len(summaries) <= 1
    assert [each.by for each in found] == ["digest"] * len(found)
    assert [bool(each.failed) for each in found] == [True] * len(summaries)


def _f097(come: Played) -> None:
    assert come.stage.log.read("begun") == [{"order_id": "HR20260725002"}]
    for body in come.gemini.requests:
        assert "willContinue" not in json.dumps(body)


# --------------------------------------------------------------------------- HTTP


def _f048(come: Played) -> None:
    assert sum(come.stage.hasty.slept) >= 2


def _user_and_model(come: Played) -> None:
    """The customer's message is there once, and so is the answer."""
    assert [type(step.event) for step in come.record.steps] == [MessageReceived, ModelAnswered]


def _f053(come: Played) -> None:
    assert {each.reason for each in come.incidents()} == {"unreadable"}


# --------------------------------------------------------------------------- tools


def _f046(come: Played) -> None:
    assert come.contents(2)[1]["parts"][0] == {"text": "확인해 보겠습니다."}


def _f057(come: Played) -> None:
    responses = [each["response"] for each in come.responses(2)]
    assert [("result" in each, "error" in each) for each in responses] == [(True, False), (False, True), (True, False)]


def _f059(come: Played) -> None:
    (response,) = (each["response"] for each in come.responses(2))
    assert response["result"] == {"location": "조회 지연", "source": "fallback"}
    assert "fallback" in response.get("note", "")
    run_s = sum(step.event.took_ms for step in come.record.steps) / 1000
    assert run_s < 2


def _f061(come: Played) -> None:
    assert len(come.stage.log.read("done", "refund_order")) == 1
    (first,) = come.responses(2)
    assert "not known" in first["response"]["error"]
    late = [entry.outcome for entry in come.record.ledger.values() if entry.started]
    assert [outcome.response["result"]["refund_id"] for outcome in late if outcome] == ["RF-1"]


def _f062(come: Played) -> None:
    assert come.notes["stalled_s"] < 0.15
    assert come.notes["all_s"] < 2.5


def _f063(come: Played) -> None:
    result = come.responses(2)[0]["response"]["result"]
    assert result["ordered_at"] == "2026-07-25T10:00:00+09:00"
    assert result["day"] == "2026-07-25"
    assert str(result["amount"]) in ("12900.50", "12900.5")
    assert (result["status"], result["tags"], result["m"], result["t"]) == ("red", ["a"], {"weight": 1}, [1, 2])
    assert come.events(ToolsExecuted)[0].results[0].response["result"] == result


def _f066(come: Played) -> None:
    response = json.dumps(come.responses(2)[0]["response"], ensure_ascii=False)
    assert len(response) < 9_000
    response.encode()  # no half of a surrogate pair
    assert any(character.isdigit() for character in come.responses(2)[0]["response"].get("note", ""))
    assert come.stage.database.stat().st_size < 2 * 3_600_000, "the whole result is stored once"


def _f087(come: Played) -> None:
    assert come.responses(2)[0]["response"]["result"]["1"] == "a"


def _f089(come: Played) -> None:
    result = come.responses(2)[0]["response"]["result"]
    assert come.events(ToolsExecuted)[0].results[0].response["result"] == result
    assert result["literal"] == "\\u0000"


# --------------------------------------------------------------------------- circles and budgets


def _nudged(come: Played) -> None:
    """Before the end the model was told once that going on like this brings nothing new."""
    assert any(event.refusals for event in come.events(ObservationAppended))


def _f070(come: Played) -> None:
    assert unicodedata.is_normalized("NFC", come.last.answer)
    assert come.last.stopped_by is not None
    assert come.tickets[0].ticket.ticket_id in come.last.answer


def _f073(come: Played) -> None:
    summary = come.tickets[0].ticket.summary
    assert "배송중" in summary
    assert "Error" not in come.last.answer
    assert "step" in str(come.last.stopped_by).casefold()


def _f075(come: Played) -> None:
    spent = [event.usage.total for event in come.events(ToolsRequested)]
    assert spent == [2120, 2220]


# --------------------------------------------------------------------------- crashes and races


def _f077(come: Played) -> None:
    (resumed,) = (step for step in come.record.steps if isinstance(step.event, Resumed))
    assert resumed.source == "EXECUTE_TOOLS"
    _signature_came_back(come)


def _f079(come: Played) -> None:
    assert come.notes["refused"] > 10, "the second worker looked for longer than the lease and declined"
    assert not come.events(Resumed)
    assert len(come.stage.log.read("done", "make_report")) == 1


def _f081(come: Played) -> None:
    (loser,) = come.notes["losers"]
    assert isinstance(loser, ConversationBusy | ConversationMoved)
    assert [step.seq for step in come.record.steps] == list(range(1, len(come.record.steps) + 1))


def _f083(come: Played) -> None:
    assert come.notes["looks"] > 4, "the clock went back while the run was going on"
    assert [step.seq for step in come.record.steps] == list(range(1, len(come.record.steps) + 1))


def _f084(come: Played) -> None:
    assert come.notes["unfinished"] == []
    assert len({(run.answer, run.reply_id) for run in come.runs}) == 1


def _f085(come: Played) -> None:
    before, after = come.notes["neighbours"]
    assert before == after


def _f088(come: Played) -> None:
    after_50, after_200 = come.notes["sizes"]
    assert after_200 <= after_50 * 4 * 1.5


def _f092(come: Played) -> None:
    connection = sqlite3.connect(come.stage.database)
    try:
        assert connection.execute("PRAGMA user_version").fetchone()[0] >= 1, "the format's version is stored"
    finally:
        connection.close()


def _f098(come: Played) -> None:
    for body in come.gemini.requests:
        assert [tool.keys() for tool in body["tools"]] == [{"functionDeclarations"}]
    assert len(come.stage.log.read("done", "cancel_order")) == 1


def _f099(come: Played) -> None:
    assert come.last.steps == len(come.gemini.requests), "each hop is a step"


def _f100(come: Played) -> None:
    numbers = [each.ticket.ticket_id for each in come.tickets] + ["T-1"] * len(come.stage.log.read("done"))
    assert any(number in come.last.answer for number in numbers)


def _f104(come: Played) -> None:
    if waiting := come.notes.get("waiting"):
        assert (waiting.state, waiting.finished, waiting.answer) == ("ESCALATE_TICKET", False, KOREAN.holding)
    (key,) = come.notes["desk"]
    assert key == come.last.run_id
    assert json.loads(come.notes["desk"][key])["ticket_id"] == come.tickets[0].ticket.ticket_id


def _f107(come: Played) -> None:
    assert come.notes["raised"] is None or isinstance(come.notes["raised"], StoreError)
    assert come.notes["appends"] > come.case.script["store_faults"][0]["nth"]


def _f109(come: Played) -> None:
    assert come.notes["kept"]
    assert all(kept == come.notes["record"] for kept in come.notes["kept"])
    before, after = come.notes["journals"]
    assert before == after, "resuming what rests does nothing"
    assert not hasattr(come.record, "to_DONE")
    assert come.last.customer_id == CUSTOMER


CHECKS: dict[str, Check] = {
    name.removeprefix("_").upper(): check
    for name, check in list(globals().items())
    if name.startswith("_f") and name[2:].isdigit()
} | {"F050": _user_and_model, "F055": _user_and_model, "F067": _nudged, "F069": _nudged}
