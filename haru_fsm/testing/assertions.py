"""What users put into their own tests, one line each. A failure tells the shortest conversation, and keeps it.

    def test_haru(haru_app):
        assert_every_run_ends(haru_app)
        assert_effects_once(haru_app)
        assert_valid_history(haru_app)
        assert_scoped(haru_app)

Tools run their own code among other things, so give them a test's data. All of them are plain functions: they run the
engine themselves, with a clock that does not run. Without a `seed` the same plays are had each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from haru_fsm.app import App
from haru_fsm.stores.memory import MemoryStore
from haru_fsm.testing.comparing import CARRIED_ON
from haru_fsm.testing.customers import customers_of
from haru_fsm.testing.hunting import ALL_PROMISES, Found, Ground, Subject, hunt
from haru_fsm.testing.judgements import BUDGETS, EFFECTS, ENDS, ONE_ENDING, VALID, WHOLE
from haru_fsm.testing.plays import Belongings, Finding, Play
from haru_fsm.testing.scoping import SCOPED, Scope
from haru_fsm.testing.shelves import NewStore
from haru_fsm.testing.strategies import hostile_plays
from haru_fsm.testing.telling import tell

Reset = Callable[[], object]
FINDINGS = Path("haru-findings")
EXAMPLES = 100


def assert_every_run_ends(
    app: Subject,
    *,
    customers: Sequence[str] | None = None,
    examples: int = EXAMPLES,
    seed: int | None = None,
    store: NewStore | Path | str = MemoryStore,
    reset: Reset | None = None,
    save_to: Path | str | None = FINDINGS,
) -> None:
    """Whatever the model says and the tools do: every run ends within its certificate, in one ending, within budget.

    `app` is an App, its folder, or a function from Limits to an App; with the latter two it is tried under other
    limits too. `customers`: who asks (by default those whom the app's data names). `reset`: puts back what the tools
    have changed, before each play. `save_to`: where a failure is kept, for `replay`; None keeps nothing.
    Raises AssertionError, with the shortest conversation.
    """
    _assert(app, (ENDS, ONE_ENDING, BUDGETS), customers, examples, seed, store, reset, save_to, crashes=False)


def assert_effects_once(
    app: Subject,
    *,
    customers: Sequence[str] | None = None,
    examples: int = EXAMPLES,
    seed: int | None = None,
    store: NewStore | Path | str = MemoryStore,
    reset: Reset | None = None,
    save_to: Path | str | None = FINDINGS,
) -> None:
    """Whatever happens, a crash at any write or effect included: each effect at most once, or in doubt; nothing lost.

    `store`: makes an empty store; or a folder, and then it is SQLite, in files there. For the rest see
    `assert_every_run_ends`.
    """
    promises = (ENDS, EFFECTS, WHOLE, ONE_ENDING, CARRIED_ON)
    _assert(app, promises, customers, examples, seed, store, reset, save_to, crashes=True)


def assert_valid_history(
    app: Subject,
    *,
    customers: Sequence[str] | None = None,
    examples: int = EXAMPLES,
    seed: int | None = None,
    store: NewStore | Path | str = MemoryStore,
    reset: Reset | None = None,
    save_to: Path | str | None = FINDINGS,
) -> None:
    """Whatever happens: every request satisfies the rules of the API, and the model reads what was said.

    For the arguments see `assert_every_run_ends`.
    """
    _assert(app, (ENDS, VALID), customers, examples, seed, store, reset, save_to, crashes=True)


def assert_scoped(
    app: Subject,
    *,
    customers: Sequence[str] | None = None,
    private: Mapping[str, Iterable[str]] | None = None,
    public: Iterable[str] = (),
    examples: int = EXAMPLES,
    seed: int | None = None,
    reset: Reset | None = None,
    save_to: Path | str | None = FINDINGS,
) -> None:
    """Whatever a model sends for one customer: nothing of another comes back, and nothing of another changes.

    `private`: by customer, words that nobody else may read, beside those that the app's data and tools tell of
    (identifiers, addresses, telephone numbers); `public`: words that anybody may. Tools run their own code, never
    anything else. For the rest see `assert_every_run_ends`. Raises ValueError where there are fewer than two customers.
    """
    with Ground(app, reset=reset) as ground:
        ground.reset()
        scope = Scope.of(ground.app, customers or customers_of(ground.app), private or {}, public)
        _report(hunt(ground, scope.plays(), scope.judged(ground), examples=examples, seed=seed), save_to)


def replay(
    app: Subject, file: Path | str, *, store: NewStore | Path | str = MemoryStore, reset: Reset | None = None
) -> None:
    """Have a saved conversation again. Raises AssertionError, with the conversation, while it still breaks a promise.

    Raises SettingsError for a file that is none of ours.
    """
    _report(replayed(app, file, store=store, reset=reset), None)


def replayed(
    app: Subject, file: Path | str, *, store: NewStore | Path | str = MemoryStore, reset: Reset | None = None
) -> Found | None:
    """The same, told as a value: what a saved conversation still breaks, or None."""
    finding = Finding.load(file)
    with Ground(app, store, reset) as ground:
        if finding.promise == SCOPED:
            ground.reset()
            given = finding.given or Belongings(customers=customers_of(ground.app))
            scope = Scope.of(ground.app, given.customers, given.private, given.public)
            return scope.judged(ground)(finding.play)
        return ground.judged(finding.play, ALL_PROMISES)


def _assert(
    subject: Subject,
    promises: Sequence[str],
    customers: Sequence[str] | None,
    examples: int,
    seed: int | None,
    store: NewStore | Path | str,
    reset: Reset | None,
    save_to: Path | str | None,
    *,
    crashes: bool,
) -> None:
    with Ground(subject, store, reset) as ground:
        asking = customers or customers_of(ground.app)
        wanted = hostile_plays(ground.app, customers=asking, crashes=crashes, limited=not isinstance(subject, App))
        _report(hunt(ground, wanted, _judged(ground, promises), examples=examples, seed=seed), save_to)


def _judged(ground: Ground, promises: Sequence[str]) -> Callable[[Play], Found | None]:
    return lambda play: ground.judged(play, promises)


def _report(found: Found | None, save_to: Path | str | None) -> None:
    if found is None:
        return
    text = tell(found)
    if save_to is not None:
        file = found.keep(Path(save_to))
        text += f"\n\nKept in {file}. To have it again: haru prove --replay {file}, or replay(app, {str(file)!r})."
    raise AssertionError(text)
