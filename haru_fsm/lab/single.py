"""One guard as a rule of its own, that stops at once: one of ours, or one that an experiment brings in a file.

A file of guards is Python, run as it is: a class of guards, or a function that puts some together, is called with the
arguments that the experiment states, once for each combination of those that it sweeps.
"""

from __future__ import annotations

import inspect
import itertools
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import haru_fsm.guards
from haru_fsm.conversation import ToolsRequested
from haru_fsm.errors import SettingsError
from haru_fsm.foreign import in_words
from haru_fsm.guards import Guard
from haru_fsm.guards.guard import atoms
from haru_fsm.setting_errors import instead

_NAME = "haru_experiment_guards"
"""What a file of guards is called while it runs."""


def guards_named(place: str, arguments: Mapping[str, Any], sweep: Mapping[str, tuple[Any, ...]]) -> Iterator[Guard]:
    """The guards that `NAME` (one of `haru_fsm.guards`) or `FILE.py:NAME` makes of these arguments, one for each
    combination of what is swept. Raises SettingsError for what makes none that judges calls."""
    make = _maker(place)
    for values in itertools.product(*sweep.values()):
        given = {**arguments, **dict(zip(sweep, values, strict=True))}
        try:
            made = make(**given)
        except Exception as error:
            raise SettingsError(
                f"{_called(place, given)} makes no guard: {type(error).__name__}: {error}. It is called as "
                f"{place.rpartition(':')[2]}{inspect.signature(make)}."
            ) from error
        yield _judging(made, _called(place, given))


def _maker(place: str) -> Any:
    file, colon, name = place.rpartition(":")
    known = _run(file) if colon else {each: getattr(haru_fsm.guards, each) for each in haru_fsm.guards.__all__}
    if not callable(known.get(name)):
        # What the file imports is no guard of its own, and would only hide what was meant.
        own = [each for each, value in known.items() if callable(value) and (not colon or _of_file(value))]
        where = file or "haru_fsm.guards"
        raise SettingsError(f"There is no guard {name!r} in {where}. {instead(name, own)}")
    return known[name]


def _run(file: str) -> dict[str, Any]:
    if not Path(file).is_file():
        raise SettingsError(f"The experiment's guards are not there: {file}.")
    try:
        return runpy.run_path(file, run_name=_NAME)
    except Exception as error:
        raise SettingsError(f"{file} cannot be run: {type(error).__name__}: {in_words(error)}") from error


def _of_file(value: Any) -> bool:
    return bool(getattr(value, "__module__", None) == _NAME)


def _judging(made: Any, called: str) -> Guard:
    if not isinstance(made, Guard):
        raise SettingsError(f"{called} makes no guard, but a {type(made).__name__}.")
    for atom in atoms(made):
        if atom.judges is not None and not issubclass(ToolsRequested, atom.judges):
            raise SettingsError(
                f"{called} judges no calls: {atom.name} looks at {', '.join(each.__name__ for each in atom.judges)}, "
                "and what is recorded are replies that want tools."
            )
    return made


def _called(place: str, given: Mapping[str, Any]) -> str:
    return f"{place}({', '.join(f'{name}={value!r}' for name, value in given.items())})"
