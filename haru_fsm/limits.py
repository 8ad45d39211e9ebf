"""Every limit of a run, with its default. `states/` builds its guards from them, models and tools their time-outs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]


class Limits(BaseModel):
    """Limits of one run (from a customer's message to its ending). None means: not limited by this."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: Positive = 8
    """Model requests, re-asks included; at the limit the calls of the last reply are not run."""
    max_tool_calls: Positive = 40
    """Tool calls that the model requests."""
    token_budget: Positive | None = None
    """Tokens, as the provider counts them, thoughts included and cached ones counted once."""
    cost_budget_usd: Annotated[float, Field(gt=0)] | None = None
    """Money, where the model's price is known."""
    deadline_s: Seconds | None = None
    """Seconds of work; waiting for a person is not work."""

    model_timeout_s: Seconds = 60.0
    """Seconds for one HTTP request to the model."""
    model_retries: Count = 2
    """Re-asks for an unusable reply, within one piece of work."""
    http_retries: Count = 3
    """Repeated requests after 429, 5xx and transport faults, within one piece of work."""
    max_output_tokens: Positive | None = None
    """Tokens that one reply may have; None: the model's own default."""
    max_input_tokens: Positive | None = None
    """The model's window, where it is not known or should be smaller."""

    tool_timeout_s: Seconds = 10.0
    """Seconds for one tool call that states no time-out of its own."""
    tool_output_chars: Positive = 20_000
    """Characters of one result that the model reads; the journal keeps it whole."""

    loop_repeats: Annotated[int, Field(ge=2)] = 3
    """The how-manieth identical request (same call, same observation) is refused."""
    loop_nudges: Count = 2
    """How often going in circles is refused with a reason before it ends in a ticket."""
    max_resumes: Count = 5
    """How often a run may be taken up again after its process died."""
    max_approvals: Count = 5
    """Calls for which a run may stop to ask for a person's approval."""
    approval_ttl_s: Seconds = 86_400.0
    """Seconds that a person has to approve a call; then it counts as denied."""
    approve_destructive: bool = False
    """Every destructive tool waits for a person's approval, not only what is marked `approval=True`."""

    compact_at: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of the window at which the history is compacted."""
    compact_at_tokens: Positive | None = None
    """The same as a number of tokens; wins over `compact_at`."""
    keep_recent_contents: Positive = 6
    """Contents at the end of the history that compaction leaves alone."""
    summarise: Literal["digest", "model"] = "digest"
    """Who summarises what is compacted: a deterministic digest, or a model."""

    final_answer_without_tools: bool = False
    """At a spent budget: one last request with tools off, instead of the ticket at once. Not after the deadline."""
    lease_s: Seconds = 15.0
    """Seconds after which another worker may take a run from a worker that gives no sign of life."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth(cls, given: object, field: ValidationInfo) -> object:
        """`max_steps = true` is a slip, and no limit of 1."""
        if isinstance(given, bool) and cls.model_fields[field.field_name or ""].annotation is not bool:
            raise PydanticKnownError("float_type")
        return given
