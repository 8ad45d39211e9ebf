"""Which tools the offline planner calls, and with what.

It works backwards from a goal: the tool whose words fit the question best, or one for each of its parts. Where the goal
needs the number of something and the question has none, a tool that lists such things comes first, and what it lists is
narrowed down to what the question means. Where the goal turns out to lack what was asked for, a tool that tells more of
each thing comes after it. No tool is called in two rounds, so a question takes at most two of them, whatever the tools
give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from haru_fsm.conversation import JSON
from haru_fsm.models.offline_arguments import Parameter
from haru_fsm.models.offline_parts import parts
from haru_fsm.models.offline_reading import Seen, Situation, matching, states_of
from haru_fsm.models.offline_sentences import DATED, POINTS_BACK
from haru_fsm.models.offline_tools import Tool
from haru_fsm.models.offline_words import FIELDS, IMPLIED_STATES, concepts_of_field, heard, states

MOST_CALLS = 10
"""Calls in one reply."""


@dataclass(frozen=True)
class Call:
    """A call to be made."""

    name: str
    args: JSON


@dataclass(frozen=True)
class Unclear:
    """Something only the customer can say: a parameter's value, or which of these records is meant."""

    parameter: Parameter
    records: tuple[JSON, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What to do next. With calls: make them. Without: answer from what the goal gave, or say what is unclear."""

    goal: str | None = None
    calls: tuple[Call, ...] = ()
    unclear: Unclear | None = None
    looks: bool = True
    """The goal only looks: a wish for an act is not fulfilled by it."""


def plans(situation: Situation, tools: Sequence[Tool]) -> list[tuple[Situation, Plan]]:
    """The next thing to do for each part of this question: nothing, where no tool fits."""
    todo = [(part, replace(_towards(part, goal, tools), looks=not goal.acts)) for part, goal in parts(situation, tools)]
    return todo or [(situation, Plan())]


def calls_of(planned: Sequence[tuple[Situation, Plan]]) -> list[Call]:
    """The calls of all parts, each once."""
    calls: list[Call] = []
    for call in (call for _, each in planned for call in each.calls):
        if call not in calls:
            calls.append(call)
    return calls[:MOST_CALLS]


def _towards(situation: Situation, goal: Tool, tools: Sequence[Tool]) -> Plan:
    if situation.called(goal.name):
        return _look_closer(situation, tools, goal)
    if goal.id_parameter is None or situation.ids:
        return _call(situation, goal, situation.ids)
    return _find_first(situation, tools, goal, goal.id_parameter)


def _look_closer(situation: Situation, tools: Sequence[Tool], goal: Tool) -> Plan:
    """Answer, or first look up what the question asks for and the goal's records do not have.

    Descriptions do not always say what a tool gives; that a field is missing shows only when records are there.
    """
    records = [record for seen in situation.called(goal.name) for record in seen.records]
    known = frozenset(concept for record in records for key in record for concept in concepts_of_field(key))
    lacking = (heard(situation.question) & FIELDS) - known
    for tool in tools if records and lacking and goal.needs_nothing else ():
        wanted = tool.id_parameter
        if tool.acts or wanted is None or not (found := _records(situation.called(goal.name), wanted)):
            continue
        if situation.called(tool.name):
            return Plan(tool.name)
        return _call(situation, tool, _numbers(_meant(found, situation, tool), wanted))
    return Plan(goal.name)


def _numbers(records: Sequence[JSON], wanted: Parameter) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(record[wanted.name]) for record in records))


def _find_first(situation: Situation, tools: Sequence[Tool], goal: Tool, wanted: Parameter) -> Plan:
    """Find out which thing is meant: the one spoken of before, or those that a list has and the question means."""
    before = dict.fromkeys(str(seen.args[wanted.name]) for seen in situation.before if wanted.name in seen.args)
    if len(before) == 1 and POINTS_BACK.search(situation.question):
        return _call(situation, goal, tuple(before))
    source = _source_of(wanted, goal, tools)
    if source is None:
        return Plan(goal.name, unclear=Unclear(wanted))
    listed = situation.called(source.name)
    if not listed:
        return Plan(goal.name, calls=(Call(source.name, {}),))
    meant = _meant(_records(listed, wanted), situation, goal)
    # Which day that was is not worked out here. Nothing is done to the wrong one; who has been asked has seen it.
    by_day = DATED.search(situation.question) and "\n" not in situation.question
    if goal.acts and (len(meant) != 1 or by_day):
        return Plan(source.name, unclear=Unclear(wanted, tuple(meant))) if meant else Plan(source.name)
    if not meant:
        return Plan(source.name)
    return _call(situation, goal, _numbers(meant, wanted))


def _source_of(wanted: Parameter, goal: Tool, tools: Sequence[Tool]) -> Tool | None:
    """A tool that lists the things whose number is wanted, and needs nothing itself."""
    fitting = [
        tool
        for tool in tools
        if tool is not goal and not tool.acts and tool.needs_nothing
        if wanted.nouns & tool.named or wanted.plain_nouns & tool.nouns
    ]
    return max(fitting, key=lambda tool: "list" in tool.concepts, default=None)


def _records(listed: Sequence[Seen], wanted: Parameter) -> list[JSON]:
    """The listed things that have the number that is wanted."""
    records = [record for seen in listed for record in seen.records]
    return [record for record in records if isinstance(record.get(wanted.name), str | int)]


def _meant(records: Sequence[JSON], situation: Situation, goal: Tool) -> list[JSON]:
    """The records that a question means: what was said last names them first. A part that names none means those that
    the whole message names."""
    question, whole = situation.question, situation.context
    last = matching(records, question.rpartition("\n")[2])
    if len(last) < len(records) and not states(question):
        return narrowed(last, question, goal)
    if whole and not states(whole) and len(matching(records, question)) == len(records):
        records = matching(records, whole)
    return narrowed(records, question, goal)


def narrowed(records: Sequence[JSON], question: str, goal: Tool) -> list[JSON]:
    """The records that the question means; where it does not say, those that its subject implies."""
    meant = matching(records, question)
    if len(meant) < 2 or states(question):
        return meant
    spoken = goal.core if goal.acts else heard(question)
    for concept, tiers in IMPLIED_STATES.items():
        for tier in tiers if concept in spoken else ():
            implied = [record for record in meant if tier & states_of(record)]
            if implied:
                return implied
    return meant


def _call(situation: Situation, goal: Tool, ids: Sequence[str]) -> Plan:
    """Call the goal, once for each of these numbers if it takes one."""
    args: JSON = {}
    for parameter in goal.parameters:
        value = None if parameter is goal.id_parameter else parameter.value(situation, goal.acts)
        if value is not None:
            args[parameter.name] = value
        elif parameter.required and parameter is not goal.id_parameter:
            return Plan(goal.name, unclear=Unclear(parameter))
    if goal.id_parameter is None:
        return Plan(goal.name, calls=(Call(goal.name, args),))
    name = goal.id_parameter.name
    return Plan(goal.name, calls=tuple(Call(goal.name, {name: each, **args}) for each in ids[:MOST_CALLS]))
