"""What every model that talks over a wire keeps, whoever serves it: one contract, on each of them."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from haru_fsm.clock import FakeClock
from haru_fsm.conversation import JSON, ModelAnswered, ModelFailed, ToolsRequested
from haru_fsm.errors import ModelError
from haru_fsm.limits import Limits
from haru_fsm.testing.scripted_http import Item
from tests.models.wires import GEMINI, OPENAI, USER, Wire, request

WIRES = {"gemini": GEMINI, "openai": OPENAI}
streamed_or_not = pytest.mark.parametrize("streamed", [False, True])


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


# --------------------------------------------------------------------------- set-up


def test_without_a_key_there_is_no_model(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in wire.keys:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=wire.keys[0]):
        wire.model("m")


def test_the_sdk_is_imported_only_when_a_model_is_made(wire: Wire) -> None:
    module = wire.model.__module__
    code = f"import sys, {module}; sys.exit(any(f'{{name}}.'.startswith('{wire.sdk}.') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 0


async def test_one_model_serves_many_conversations_at_once(wire: Wire) -> None:
    def echo(body: JSON) -> JSON:
        last = body[wire.told][-1]
        return wire.reply(last["parts"][0]["text"] if "parts" in last else last["content"])

    async with wire.server(echo) as server:
        model = wire.model("m", api_key=wire.key, base_url=server.base_url, clock=FakeClock())
        asked = [request({"role": "user", "parts": [{"text": f"{number}번"}]}) for number in range(20)]
        answers = await asyncio.gather(*map(model.respond, asked))
        await model.aclose()
    assert [answer.text for answer in answers] == [f"{number}번" for number in range(20)]


async def test_contents_that_are_no_json_are_a_bad_request(wire: Wire) -> None:
    odd = {"role": "model", "parts": [{"functionCall": {"name": "a", "args": {"x": {1, 2}}}}]}
    async with wire.playing() as (server, model):
        outcome = await model.respond(request(USER, odd))
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, server.requests) == ("bad_request", [])


# --------------------------------------------------------------------------- what is read


async def test_what_is_not_finite_never_goes_out_bare(wire: Wire) -> None:
    asked = json.dumps(wire.reply(wire.call("a", n=float("nan"))))
    async with wire.playing({"raw_text": asked}) as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ToolsRequested)
    assert outcome.calls[0].args == {"n": "NaN"}


@pytest.mark.parametrize("charset", ["euc-kr", "iso-8859-1", "utf-16", "nonsense"])
@streamed_or_not
async def test_hangul_is_read_as_it_was_written_whatever_charset_stands_beside_it(
    wire: Wire, charset: str, streamed: bool
) -> None:
    item = {
        "raw_text": json.dumps(wire.reply("배송중입니다. 곧 도착합니다."), ensure_ascii=False),
        "headers": {"content-type": f"application/json; charset={charset}"},
    }
    async with wire.playing(item) as (_, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
    assert isinstance(outcome, ModelAnswered)
    assert outcome.text == "배송중입니다. 곧 도착합니다."


@pytest.mark.parametrize("odd", ["9" * 5_000, "[" * 100_000 + "]" * 100_000], ids=["endless number", "endless depth"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_what_no_parser_takes_is_asked_for_again(wire: Wire, odd: str, streamed: bool) -> None:
    """Python refuses such numbers, and such a depth, with errors that are not called those of JSON."""
    text = json.dumps({**wire.reply("배송중입니다."), "odd": "here"}).replace('"here"', odd)
    item: JSON = {"raw_text": text}
    if streamed:
        item = {"raw_text": f"data: {text}\n\n", "headers": {"content-type": "text/event-stream"}}
    async with wire.playing(item, wire.reply("배송중입니다.")) as (_, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
    assert isinstance(outcome, ModelAnswered)
    assert [incident.reason for incident in outcome.incidents] == ["unreadable"]


# --------------------------------------------------------------------------- refusals


async def test_a_wrong_key_and_a_wrong_name_are_told_apart_and_no_key_is_told(wire: Wire) -> None:
    async with wire.playing(api_key="right") as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, wire.key in repr(outcome)) == ("wrong_key", False)
    async with wire.playing(models={"another"}) as (_, model):
        outcome = await model.respond(request())
    assert isinstance(outcome, ModelFailed)
    assert outcome.reason == "unknown_model"
    assert wire.advice in outcome.detail
    assert wire.name in outcome.detail


async def test_a_server_that_repeats_the_key_is_not_repeated(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="haru_fsm")
    async with wire.playing(wire.error(403, f"key {wire.key} and own-secret are suspended")) as (_, model):
        outcome = await model.respond(request())
    own = {"api_key": "own-secret"}
    async with wire.playing(wire.error(403, "own-secret is suspended"), settings=own) as (_, model):
        other = await model.respond(request())
    assert wire.key not in repr(outcome) + caplog.text
    assert "own-secret" not in repr(other)


# --------------------------------------------------------------------------- broken wires


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"transport": "close"}, "transport"),
        ({"transport": "reset"}, "transport"),
        ({"transport": "truncate"}, "transport"),
        ({"raw_text": "<html><body>Error 502</body></html>", "headers": {"content-type": "text/html"}}, "unreadable"),
        ({"raw_text": ""}, "unreadable"),
        ({"raw_text": "[]"}, "unreadable"),
        ((500, "internal"), "server"),
        ((503, "overloaded"), "server"),
        ({"http_status": 502, "body": "<html>Bad gateway</html>"}, "server"),
        ((429, "slow down"), "rate_limited"),
    ],
    ids=str,
)
@streamed_or_not
async def test_a_broken_wire_is_tried_again_and_not_for_ever(
    wire: Wire, said: JSON | tuple[int, str], reason: str, streamed: bool
) -> None:
    item: Item = wire.error(*said) if isinstance(said, tuple) else said
    if "transport" in item:
        item = {**item, "body": wire.reply("x" * 500)}
    clock = FakeClock()
    asked = request(on_text=[].append if streamed else None)
    async with wire.playing(item, item, wire.reply("네."), *[item] * 4, clock=clock) as (server, model):
        outcome = await model.respond(asked)
        assert isinstance(outcome, ModelAnswered)
        assert outcome.requests == 3
        assert [incident.reason for incident in outcome.incidents] == [reason] * 2
        assert len(clock.slept) == 2
        outcome = await model.respond(asked)
        assert isinstance(outcome, ModelFailed)
        assert (outcome.reason, outcome.requests) == (reason, 4)
    assert server.overruns == 0
    # What is said stays the same; whether it is streamed need not: nobody listens to an attempt after half an answer.
    assert all(body[wire.told] == server.requests[0][wire.told] for body in server.requests)


async def test_nobody_listening_at_all(wire: Wire) -> None:
    async with wire.server() as gone:
        pass
    limits = Limits(http_retries=1)
    model = wire.model("m", api_key=wire.key, base_url=gone.base_url, clock=FakeClock(), limits=limits)
    outcome = await model.respond(request())
    await model.aclose()
    assert isinstance(outcome, ModelFailed)
    assert (outcome.reason, outcome.requests) == ("transport", 2)


@pytest.mark.parametrize("fault", ["hang", "stall"])
@streamed_or_not
async def test_a_hanging_connection_is_given_up(wire: Wire, fault: str, streamed: bool) -> None:
    item = {"transport": fault, "body": wire.reply("가나다라마바사아자차카타파하" * 2)}
    limits = Limits(model_timeout_s=0.3, http_retries=0)
    async with wire.playing(item, limits=limits) as (server, model):
        outcome = await model.respond(request(on_text=[].append if streamed else None))
        assert isinstance(outcome, ModelFailed)
        assert outcome.reason == "timeout"
        while server.requests and not server.abandoned:  # on a busy machine it may never have come there
            await asyncio.sleep(0)


@pytest.mark.parametrize("fault", ["hang", "stall"])
@streamed_or_not
async def test_a_cancelled_run_closes_its_request(wire: Wire, fault: str, streamed: bool) -> None:
    item = {"transport": fault, "body": wire.reply("가나다라마바사아자차카타파하" * 2)}
    async with wire.playing(item) as (server, model):
        task = asyncio.create_task(model.respond(request(on_text=[].append if streamed else None)))
        while not server.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not server.abandoned:
            await asyncio.sleep(0)
