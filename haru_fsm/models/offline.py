"""A planner that stands in for a model where there is no key and no network.

It is not a language model, and calls itself "offline". It understands the vocabulary of customer support in Korean
and a little English, picks tools by the words that the question and their descriptions share, feeds the numbers that
tools give to tools that take them, and says what came of it. The same request always gets the same reply.

    offline_words      what customers call things
    offline_sentences  what they want with a sentence: a wish, a question, thanks
    offline_reading    the question, and what was called and found for it
    offline_arguments  what a parameter gets
    offline_tools      what a tool is about, and whether it acts
    offline_deeds      an act that is wished for in the words of its tool
    offline_choice     which tool a question is for
    offline_parts      a question that is for several
    offline_plan       which calls come next
    offline_answer     what the customer reads
    offline_phrases    the phrases of it, in two languages
    offline_records    what tools gave, as customers read it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from haru_fsm.conversation import JSON, ModelAnswered, ToolsRequested, Usage
from haru_fsm.models import ModelOutcome, ModelRequest
from haru_fsm.models.gemini_signatures import unsigned
from haru_fsm.models.offline_answer import answers, from_what_is_there
from haru_fsm.models.offline_plan import Call, calls_of, plans
from haru_fsm.models.offline_reading import Situation, is_korean, read
from haru_fsm.models.offline_tools import Tool
from haru_fsm.models.tokens import estimate_tokens


class OfflineModel:
    """A deterministic planner, not an LLM. Needs nothing; answers at once; never fails."""

    name = "offline"

    async def respond(self, request: ModelRequest) -> ModelOutcome:
        """The next calls for the customer's latest question, or the answer to it. Its token counts are estimates,
        and cost nothing: `cost_usd` stays None."""
        tools = [Tool(declaration) for declaration in request.declarations]
        situation = _at_home(read(request.contents), tools, request.system)
        if not request.tools_allowed:
            return self._answered(from_what_is_there(situation), request)
        planned = plans(situation, tools)
        if calls := calls_of(planned):
            return self._requested(calls, request)
        return self._answered(answers(planned), request)

    def _requested(self, calls: Sequence[Call], request: ModelRequest) -> ToolsRequested:
        first, *others = [{"functionCall": {"name": call.name, "args": call.args}} for call in calls]
        content = _content([unsigned(first), *others])
        return ToolsRequested(model=self.name, usage=_usage(request, content), content=content)

    def _answered(self, text: str, request: ModelRequest) -> ModelAnswered:
        if request.on_text is not None:
            _write(text, request.on_text)
        content = _content([{"text": text}])
        return ModelAnswered(model=self.name, usage=_usage(request, content), content=content)


def _at_home(situation: Situation, tools: Sequence[Tool], system: str) -> Situation:
    """The situation in this app: in its language, with its names for things, and with people only where it has some."""
    say = situation.say if any(tool.wants_person for tool in tools) else situation.say.without_person
    named = {each.name: each.called for tool in tools for each in tool.parameters if each.called}
    in_korea = is_korean(" ".join([system, *(tool.description for tool in tools)]))
    return replace(situation, say=replace(say, named=named), in_korea=in_korea)


def _content(parts: list[JSON]) -> JSON:
    return {"role": "model", "parts": parts}


def _write(text: str, on_text: Callable[[str], None]) -> None:
    """Hand over an answer line by line, as a model that streams would."""
    for line in text.splitlines(keepends=True):
        on_text(line)


def _usage(request: ModelRequest, reply: JSON) -> Usage:
    declared = [[each.name, each.description, each.parameters] for each in request.declarations]
    asked = [request.system, list(request.contents), declared]
    return Usage(prompt=sum(map(estimate_tokens, asked)), answer=estimate_tokens(reply["parts"]), estimated=True)
