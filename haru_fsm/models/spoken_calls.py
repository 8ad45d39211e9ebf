"""Calls that a model has written into the text of its answer instead of making them. Pure.

Seen in the field: python as Gemini runs it inside (`print(default_api.get_order(...))`, a block of `tool_code`, or a
text that is one python call and nothing else), its own words for a call (`call:default_api:get_order{...}`,
NousResearch/hermes-agent#74771), and what it makes up that came of one (`tool_outputs`, or in a tag like
`<tool_result>`, 666ghj/MiroFish#542); the form of ReAct that was there before models had calls (langgenius/dify#2627),
a JSON object with a name and arguments, such an object in a code block or a tag (Gitlawb/openclaude#1212,
Sophomoresty/gemini-web2api#42), and the marks in which models behind gateways write calls when their server does not
read them (vllm-project/vllm#35906 and others): Mistral's, Llama's, DeepSeek's, Kimi's, Claude's, gpt-oss's; Gemini 3
has some of its own (can1357/oh-my-pi#92). Nobody has run them, and no customer should read them. A JSON object with
anything else in it is an answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PYTHON = re.compile(
    r"(?:\A|```)\s*tool_(?:code|outputs?)\b(?![ \t]+[^\W\d_]+[ \t])"  # a word behind it, and it is one of a sentence
    r"|\bdefault_api[.:]\w[\w ]{0,63}[({]"
)
_BARE = re.compile(r"(?:[a-z]\w*\.)*([a-z]\w*)\((.*)\)", re.IGNORECASE | re.ASCII | re.DOTALL)
_REACT = re.compile(
    r"^[ \t*_]*Action[ \t*_]*:[ \t*_`]*"
    r"(?:[a-z_][\w.]*[ \t]*\[(?![^\]\n]*\]\()|[^\n]*\n[ \t*_]*Action[ _]?Input[ \t*_]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_BY_NAME = re.compile(r"\s*[a-z_]\w*\s*=", re.IGNORECASE | re.ASCII)
_TAGGED = re.compile(
    r"<\s*(?:tool_calls?|function_calls?|start_function_call|tool_use|tool_code"
    r"|(?:tool|function)_(?:results?|responses?|outputs?))(?:\s[^<>]*)?>"
    r"(?!`(?!``))",  # a name in Markdown's code, which calls nothing
    re.IGNORECASE,
)
_MARKED = re.compile(
    r"\[TOOL_(?:CALLS|REQUEST)\]"  # Mistral, LM Studio
    r"|<\|python_tag\|>|<function\s*=\s*[\w.-]+\s*>"  # Llama, Qwen
    r"|<[|｜]tool[▁_ ]calls?"  # DeepSeek, Kimi, Phi
    r"|<(?:antml:)?invoke\s+name\s*="  # Claude
    r"|<\|channel\|>\s*commentary\s+to\s*="  # gpt-oss
    r"|<call_record\s+tool\s*=",  # Gemini 3
)
_FENCED = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)```", re.DOTALL)

_NAMES = frozenset(("name", "tool", "tool_name", "function", "function_name"))
_ARGUMENTS = frozenset(("args", "arguments", "parameters", "input"))
_BESIDE = frozenset(("id", "type", "thought", "reasoning"))
_AROUND = frozenset(("functionCall", "function_call", "tool_call", "tool_calls", "function"))


def is_spoken_call(text: str) -> bool:
    """Whether a text is a call, or holds one where an answer would hold code."""
    if _is_python(text) or any(marks.search(text) for marks in (_PYTHON, _REACT, _TAGGED, _MARKED)):
        return True
    try:
        return any(_is_call(value) for value in _objects(text))
    except RecursionError:  # nested deeper than any call
        return False


def _is_python(text: str) -> bool:
    """Whether a text is one call: with arguments by name, or of a name with an underscore in it."""
    bare = _BARE.fullmatch(text.strip().removeprefix("[").removesuffix("]").strip())
    return bare is not None and ("_" in bare[1] or _BY_NAME.match(bare[2]) is not None)


def _objects(text: str) -> Iterator[Any]:
    """What is JSON of the text: all of it, and its code blocks."""
    for piece in (text, *_FENCED.findall(text)):
        if piece.lstrip()[:1] in ("{", "["):
            try:
                yield json.loads(piece)
            except (ValueError, RecursionError):
                continue


def _is_call(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_is_call, value))
    if not isinstance(value, dict):
        return False
    around = value.keys() & _AROUND
    if len(around) == 1 and value.keys() <= around | _BESIDE and isinstance(value[next(iter(around))], dict | list):
        return _is_call(value[next(iter(around))])
    names, arguments = value.keys() & _NAMES, value.keys() & _ARGUMENTS
    named = len(names) == 1 and isinstance(value[next(iter(names))], str)
    return named and len(arguments) == 1 and value.keys() <= names | arguments | _BESIDE
