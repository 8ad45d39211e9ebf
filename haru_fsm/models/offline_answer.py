"""How the offline planner speaks: politely, in the customer's language, for a chat window, without Markdown.

Every number in an answer was observed. What a tool said is quoted, never followed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from haru_fsm.models.offline_choice import acts_wished
from haru_fsm.models.offline_phrases import ASKS_BACK, ENGLISH, KOREAN, OFFERS_PERSON, Phrases
from haru_fsm.models.offline_plan import Plan, Unclear
from haru_fsm.models.offline_reading import Seen, Situation
from haru_fsm.models.offline_records import SHOWN_RECORDS, Teller, clean
from haru_fsm.models.offline_sentences import AGREES, ASKS_WHO, COMPLAINS, DECLINES, GREETS, LEAVES, THANKS

SMALL_TALK = (
    (LEAVES, "farewell"),
    (THANKS, "welcome"),
    (DECLINES, "no_matter"),
    (COMPLAINS, "sorry"),
    (ASKS_WHO, "who"),
    (GREETS, "greeting"),
    (AGREES, "here"),
)
"""What is said without a wish, and the phrase that answers it; the first that fits."""
_WORD = re.compile("[가-힣]{2,}|[A-Za-z]{2,}")
_HANGUL, _LATIN = re.compile("[가-힣]"), re.compile("[A-Za-z]")
_OPENINGS = (KOREAN.found, ENGLISH.found)


def answers(planned: Sequence[tuple[Situation, Plan]]) -> str:
    """The answer to each part of the question. What asks the customer something comes last, and asks it once."""
    told = list(dict.fromkeys(answer(situation, plan) for situation, plan in planned))
    told.sort(key=lambda text: text.endswith((*ASKS_BACK, *OFFERS_PERSON)))
    if len(told) > 1:
        told[:-1] = [_without_offer(text) for text in told[:-1]]
        told[1:] = [_without_opening(text) for text in told[1:]]
    return "\n".join(text for text in told if text)


def answer(situation: Situation, plan: Plan) -> str:
    """The answer to one part of it, from what has been seen."""
    say = situation.say
    if plan.unclear is not None:
        return ask_back(plan.unclear, Teller(situation.question, say))
    if not situation.seen:
        return small_talk(situation) or not_understood(situation)
    seen = situation.called(plan.goal) if plan.goal else ()
    told = report(situation, seen or situation.seen)
    undone = plan.looks and acts_wished(situation.question) and not told.endswith(OFFERS_PERSON)
    return f"{told}\n{say.offers_person}".rstrip() if undone else told


def from_what_is_there(situation: Situation) -> str:
    """The answer where no tool may be called any more."""
    if situation.seen:
        return report(situation, situation.seen)
    return small_talk(situation) or situation.say.no_tools


def small_talk(situation: Situation) -> str | None:
    """The answer to thanks, a greeting, a no, and what else one says without a wish."""
    for said, phrase in SMALL_TALK:
        if said.search(situation.question):
            return str(getattr(situation.say, phrase))
    return None


def not_understood(situation: Situation) -> str:
    """The answer where there is nothing to be done: they have said nothing, or something of another trade."""
    return situation.say.cannot if _WORD.search(situation.question) else situation.say.unclear


def ask_back(unclear: Unclear, teller: Teller) -> str:
    """A question for what only the customer knows. It ends so that the next message is read together with this one."""
    say = teller.say
    lines = [f"- {clean(choice)}" for choice in unclear.parameter.choices]
    lines += [f"- {teller.line(record)}" for record in unclear.records[:SHOWN_RECORDS]]
    wanted = say.ask_for(unclear.parameter.name)
    return "\n".join([say.which, *lines, wanted]) if lines else f"{say.needed} {wanted}"


def report(situation: Situation, seen: Sequence[Seen]) -> str:
    """What was found, and honestly what was not."""
    say = situation.say
    reasons = list(dict.fromkeys(clean(each.reason) for each in seen if _is_for_customers(each, say)))
    found = Teller(situation.question, say).told([each for each in seen if each.reason is None])
    if not found and all(each.reason is None for each in seen):
        return say.nothing
    if not found:
        return "\n".join([say.failed, *reasons, say.offers_person]).rstrip()
    return "\n".join([*found, *([say.partly, *reasons] if reasons else [])])


def _is_for_customers(seen: Seen, say: Phrases) -> bool:
    """Whether there is a reason, and customers may read it. The engine's own words, and those of most libraries, are
    English, and for the model; so in English only what the tool itself has given counts."""
    if seen.reason is None:
        return False
    if len(_HANGUL.findall(seen.reason)) > len(_LATIN.findall(seen.reason)):
        return True
    return say.is_english and seen.value is not seen.response


def _without_offer(text: str) -> str:
    for offer in OFFERS_PERSON:
        text = text.removesuffix(offer).rstrip()
    return text


def _without_opening(text: str) -> str:
    for opening in _OPENINGS:
        text = text.removeprefix(opening).lstrip("\n")
    return text
