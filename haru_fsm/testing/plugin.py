"""The pytest plugin: fixtures for those who test an agent. Found by pytest through its entry point.

    haru_app          the app under test, in a copy: `haru_app` in pytest's configuration names its folder
    scripted_model    makes a model that says what it is told to say
    fake_gemini       makes a Gemini on a local port, with the API's own rules
    memory_store      an empty store

Nothing is imported before a fixture is asked for: a test run that uses none of them does not notice this plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.models.scripted import ScriptedModel
    from haru_fsm.stores.memory import MemoryStore
    from haru_fsm.testing.fake_gemini import FakeGemini

INI = "haru_app"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The one setting."""
    parser.addini(INI, "The folder of the Haru app under test, from the folder of this file.", default="")


@pytest.fixture
def haru_app(pytestconfig: pytest.Config, tmp_path: Path) -> App:
    """The app under test, loaded from a copy: what its tools do there touches nothing of yours.

    Its folder is `haru_app` in pytest's configuration; without that the folder of the configuration itself, where it
    is an app, and else the starter app.
    """
    from haru_fsm.app import PARTS, starter
    from haru_fsm.testing.copies import load_copy

    root = pytestconfig.rootpath
    named = str(pytestconfig.getini(INI))
    here = all((root / part / "__init__.py").is_file() for part in PARTS)
    folder = root / named if named else root if here else starter()
    return load_copy(folder, tmp_path / "haru_app")


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """`scripted_model("안녕하세요!")`: a model with these lines, one per request (see `ScriptedModel`)."""
    from haru_fsm.models.scripted import ScriptedModel

    return lambda *lines: ScriptedModel(lines)


@pytest.fixture
def fake_gemini() -> Iterator[Callable[..., FakeGemini]]:
    """`fake_gemini([reply("안녕하세요!")])`: a server that is running, until the test is over (see `FakeGemini`)."""
    from haru_fsm.testing.fake_gemini import FakeGemini

    with ExitStack() as servers:

        def serve(*script: Any, **how: Any) -> FakeGemini:
            return servers.enter_context(FakeGemini(*script, **how))

        yield serve


@pytest.fixture
def memory_store() -> MemoryStore:
    """A store without a disk."""
    from haru_fsm.stores.memory import MemoryStore

    return MemoryStore()
