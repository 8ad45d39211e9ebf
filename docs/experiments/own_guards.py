"""A guard put together for an experiment: see docs/guards.md."""

from haru_fsm.guards import AllOf, Guard, RepeatedCall, SimilarThoughts


def said_again() -> Guard:
    """The same call for the second time, with the same thought beside it."""
    return AllOf(RepeatedCall(2), SimilarThoughts())
