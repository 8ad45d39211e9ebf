"""From the words of the settings to models: which kinds there are, what each needs, and how several become one.

Each kind is imported when it is chosen: a SDK takes longer to load than all the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from haru_fsm.clock import SystemClock
from haru_fsm.errors import ModelError, SettingsError
from haru_fsm.limits import Limits
from haru_fsm.models import Model


@dataclass(frozen=True, slots=True)
class Access:
    """Where the providers are, and what lets one in."""

    gemini_key: str | None = field(default=None, repr=False)
    gemini_base_url: str | None = None
    gemini_api_version: str | None = None
    openai_key: str | None = field(default=None, repr=False)
    openai_base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The models that were chosen, each as `kind:name`: the first, those that stand in for it, and the one that
    rewrites its answers."""

    model: str
    fallbacks: Sequence[str] = ()
    answer: str | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """Every model that may be asked."""
        return (self.model, *self.fallbacks, *([self.answer] if self.answer else ()))

    def make(self, access: Access, limits: Limits) -> Model:
        """One model out of all.

        Raises SettingsError for an unknown kind, ModelError where a key or an extra is missing.
        """
        model = _made("HARU_MODEL", self.model, access, limits)
        if self.fallbacks:
            from haru_fsm.models.fallback import FallbackModel

            others = [_made("HARU_FALLBACK_MODELS", spec, access, limits) for spec in self.fallbacks]
            model = FallbackModel([model, *others])
        if self.answer:
            from haru_fsm.models.two_tier import TwoTierModel

            model = TwoTierModel(model, _made("HARU_ANSWER_MODEL", self.answer, access, limits))
        return model


def _made(setting: str, spec: str, access: Access, limits: Limits) -> Model:
    kind, _, name = spec.partition(":")
    if kind == "offline" and not name:
        from haru_fsm.models.offline import OfflineModel

        return OfflineModel()
    if kind == "cassette" and name:
        from haru_fsm.models.cassette import CassetteModel

        return CassetteModel(name)
    if kind == "gemini" and name:
        return _gemini(name, access, limits)
    if kind == "openai" and name:
        return _openai(name, access, limits)
    raise SettingsError(
        f"{setting} is {spec!r}. Use gemini:NAME (for example gemini:gemini-flash-latest), openai:NAME, offline, or "
        "cassette:FILE."
    )


def _gemini(name: str, access: Access, limits: Limits) -> Model:
    from haru_fsm.models.gemini import GeminiModel

    if access.gemini_key is None:
        raise ModelError("There is no key for Gemini. Set GEMINI_API_KEY, or use --model offline.")
    return GeminiModel(
        name,
        api_key=access.gemini_key,
        base_url=access.gemini_base_url,
        api_version=access.gemini_api_version,
        limits=limits,
        clock=SystemClock(),
    )


def _openai(name: str, access: Access, limits: Limits) -> Model:
    from haru_fsm.models.openai import OpenAIModel

    if access.openai_key is None and access.openai_base_url is None:
        raise ModelError(
            "There is no key for OpenAI. Set OPENAI_API_KEY (or OPENAI_BASE_URL, for a server of your own), or use "
            "--model offline."
        )
    return OpenAIModel(
        name, api_key=access.openai_key, base_url=access.openai_base_url, limits=limits, clock=SystemClock()
    )
