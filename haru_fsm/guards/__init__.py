"""Guards: frozen conditions on the journal. Each is a fold, so that no restart, compaction or retry resets it.

    budgets.py    how much may be spent in a run: steps, tool calls, tokens, money, time
    circles.py    whether the model goes in circles: repeated calls, failing calls
    thoughts.py   whether the model says the same again in other words
    trail.py      what was tried and what it brought, folded once for these two
    claims.py     whether an answer may be shown: what it claims, and effects in doubt
    claim_words.py, deeds.py    the words of such claims, and what founds them
    folds.py      the memos of several guards, kept together
    verdicts.py   their conditions, put together once

Compose them with AnyOf, AllOf and Not. A guard promises the certificate a limit only where it keeps it against any
history. Each says what it promises, and tests hold it to that by property.
"""

from haru_fsm.guards.budgets import (
    ApprovalBudget,
    CostBudget,
    Deadline,
    LastWord,
    LastWordGiven,
    Nudged,
    ResumeBudget,
    StepBudget,
    TokenBudget,
    ToolCallBudget,
)
from haru_fsm.guards.circles import (
    CallCycle,
    FailingCalls,
    NoProgress,
    NudgedInVain,
    RepeatedCall,
    RepeatedEffect,
    UnusableCalls,
)
from haru_fsm.guards.claims import InDoubt, UnfoundedTicketClaim
from haru_fsm.guards.guard import AllOf, AnyOf, Guard, Not
from haru_fsm.guards.thoughts import SimilarThoughts

__all__ = [
    "AllOf",
    "AnyOf",
    "ApprovalBudget",
    "CallCycle",
    "CostBudget",
    "Deadline",
    "FailingCalls",
    "Guard",
    "InDoubt",
    "LastWord",
    "LastWordGiven",
    "NoProgress",
    "Not",
    "Nudged",
    "NudgedInVain",
    "RepeatedCall",
    "RepeatedEffect",
    "ResumeBudget",
    "SimilarThoughts",
    "StepBudget",
    "TokenBudget",
    "ToolCallBudget",
    "UnfoundedTicketClaim",
    "UnusableCalls",
]
