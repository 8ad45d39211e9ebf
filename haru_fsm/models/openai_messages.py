"""The journal's contents as chat messages. Pure.

The rules of chat completions that are kept here (see `testing/strict_openai.py`, which checks them): each call has an
id that no other call of the request has, right after the assistant's message comes one message of role `tool` for each
of its calls, with its id; no message is empty; a function's name is letters, digits, `_` and `-`.

An id that a provider gave is kept where it can be. Others are minted from the call's place in the history, so that a
longer history begins with the same bytes as a shorter one and is found in the provider's cache. They are nine letters
and digits, the only form that Mistral takes.

Thoughts and their signatures are no business of another provider and stay behind, but for a Gemini that is spoken to in
this way (`openai_signatures.py`). Two neighbouring messages of one speaker become one, because the chat templates
behind many gateways want turns to alternate.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from haru_fsm.conversation import JSON
from haru_fsm.models.gemini_parts import NO_DATA
from haru_fsm.models.openai_signatures import signed

ID_CHARS = 40
"""What OpenAI takes at most for the id of a call (error `string_above_max_length`)."""
NAME_CHARS = 64
BETWEEN = "\n\n"
SILENCE = "(빈 메시지)"
"""Stands for a user's turn without a letter in it: an empty message is refused, and the turn is somebody's."""

_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


def messages_of(system: str, contents: Sequence[JSON], *, to_gemini: bool = False) -> list[JSON]:
    """The messages of a request: the system prompt first, then the contents, which are valid for Gemini.

    `to_gemini`: the model is one that wants the signatures of calls.
    """
    chat = _Chat([{"role": "system", "content": system}] if system.strip() else [], to_gemini)
    for content in contents:
        chat.take(content)
    return chat.messages


@dataclass(slots=True)
class _Chat:
    """The messages so far, the ids they use, and those of the last message's calls, which wait for their results."""

    messages: list[JSON]
    to_gemini: bool = False
    ids: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)
    calls: int = 0

    def take(self, content: JSON) -> None:
        """Add one content."""
        if content["role"] == "model":
            self._assistant(content["parts"])
        else:
            self._user(content["parts"])

    def _user(self, parts: Sequence[JSON]) -> None:
        """What the tools have said, in the order of their calls, then what the user says."""
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        for call_id, result in zip(self.waiting, results, strict=False):
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": _json(result.get("response"))})
        self.waiting = []
        said = [_said(part) for part in parts if "functionResponse" not in part]
        if any("image_url" in item for item in said):
            self.messages.append({"role": "user", "content": [item for item in said if item.get("text") != ""]})
        elif not self._say("user", [item["text"] for item in said]) and not results:
            self._say("user", [SILENCE])

    def _assistant(self, parts: Sequence[JSON]) -> None:
        calls = [self._call(part) for part in parts if "functionCall" in part]
        texts = [_text(part) for part in parts if "functionCall" not in part and not part.get("thought")]
        text = "".join(texts)
        self.waiting = [call["id"] for call in calls]
        if calls:
            # A message that only calls has `null` where a text would be: left out or empty, some gateways refuse it.
            self.messages.append({"role": "assistant", "content": text if text.strip() else None, "tool_calls": calls})
        else:
            self._say("assistant", [text])

    def _say(self, role: str, texts: Iterable[str]) -> bool:
        """Let somebody speak, as part of the last message if it was theirs; whether there was anything to say."""
        text = BETWEEN.join(text for text in texts if text.strip())
        if not text:
            return False
        last = self.messages[-1] if self.messages else {}
        if last.get("role") == role and isinstance(last["content"], str) and "tool_calls" not in last:
            self.messages[-1] = {**last, "content": last["content"] + BETWEEN + text}
        else:
            self.messages.append({"role": role, "content": text})
        return True

    def _call(self, part: JSON) -> JSON:
        self.calls += 1
        call = part["functionCall"]
        name = _UNFIT.sub("_", call.get("name") or "_")[:NAME_CHARS]
        function = {"name": name, "arguments": _json(call.get("args") or {})}
        sent = {"id": self._id(call.get("id")), "type": "function", "function": function}
        return signed(sent, part) if self.to_gemini else sent

    def _id(self, given: str | None) -> str:
        chosen, number = given or "", self.calls
        while not chosen or len(chosen) > ID_CHARS or chosen in self.ids:
            chosen, number = f"call{number:05d}", number + 1
        self.ids.add(chosen)
        return chosen


def _said(part: JSON) -> JSON:
    """One part of a user's turn, as a part of a message."""
    data = part.get("inlineData")
    if isinstance(data, dict) and str(data.get("mimeType")).startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{data['mimeType']};base64,{data.get('data', '')}"}}
    return {"type": "text", "text": _text(part)}


def _text(part: JSON) -> str:
    """The text of a part. Data that chat completions have no word for (files, code that a provider ran) is told as
    JSON: the conversation may speak of it."""
    if "text" in part:
        return str(part["text"])
    data = {key: value for key, value in part.items() if key not in NO_DATA}
    return _json(data) if data else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
