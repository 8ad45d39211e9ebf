"""An app: a workflow, a way to make tools, and what the model is told. The one place where these are wired together.

A Haru app is a folder with `states/` (exports `workflow(limits) -> Workflow`, and `NOTICES` where customers are to read
others than ours), `tools/` (exports `make_tools(session)`, and `CustomerSession` and `EXAMPLE_CUSTOMER` where the shop
knows its customers), `data/system_prompt.md` and `memory_store/`. It is loaded as a package under a name of its own, so
two apps live in one process and `sys.path` is not touched.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import logging
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from haru_fsm.certificate import require_sound
from haru_fsm.definition import Definition
from haru_fsm.errors import AppError, HaruError, UnknownCustomer
from haru_fsm.foreign import in_words, with_place
from haru_fsm.limits import Limits
from haru_fsm.machine import Workflow
from haru_fsm.notices import KOREAN, Notices
from haru_fsm.parts_given import refuse_no_app, refuse_no_limits
from haru_fsm.session import Session
from haru_fsm.toolbox import Toolbox

log = logging.getLogger(__name__)

Tools = Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]]
PARTS = ("states", "tools")


@dataclass(frozen=True)
class App:
    """Everything that the engine needs to know of a shop. Needs no folder.

    `make_tools(session)` returns plain functions bound to the session's customer. Raises EndlessWorkflow, or another
    WorkflowError, when the workflow may not run, and AppError for what is no workflow, no function or no limits.
    """

    workflow: Workflow
    make_tools: Callable[[Any], Tools]
    system_prompt: str = ""
    limits: Limits = field(default_factory=Limits)
    make_session: Callable[..., Session] = Session
    folder: Path | None = None
    notices: Notices = KOREAN
    """What the engine itself says to customers; `states/` may export others as NOTICES."""
    example_customer: str = "example"
    """A customer for looking at tools where nobody is named; an app's tools/ may export one as EXAMPLE_CUSTOMER."""

    def __post_init__(self) -> None:
        refuse_no_app(self.workflow, self.make_tools, self.limits, self.notices)
        require_sound(self.workflow)

    def with_tools(self, make_tools: Callable[[Any], Tools]) -> App:
        """The same app with other tools."""
        return dataclasses.replace(self, make_tools=make_tools)

    def session(self, customer_id: str, **more: Any) -> Session:
        """A session of this customer. Raises UnknownCustomer, AppError."""
        if not customer_id.strip():
            raise UnknownCustomer("The customer's number is empty. Give one, for example --customer C003.")
        made: Session = self._own("The customer's session", lambda: self.make_session(customer_id, **more))
        return made

    def toolbox(self, session: Session) -> Toolbox:
        """The tools of this session; one that says nothing about its effect is warned of, once.

        Raises ToolError for a function that cannot be declared, AppError where the app's own code fails to make them.
        """
        functions = self._own("make_tools(session)", lambda: _functions(self.make_tools(session)))
        made = Toolbox(functions, self.limits)
        for warning in made.warnings:
            _warn_once(warning)
        return made

    def _own(self, what: str, code: Callable[[], Any]) -> Any:
        return _called(what, self.folder, code)

    def definition(self, tools: Toolbox) -> str:
        """Digest of the rows, the kinds of their guards, and these tools. Limits, prompts and descriptions are no part
        of it: raising a limit strands no open run. A shop may show a customer other tools than the next one."""
        return self._definition.digest(tools.declarations)

    @cached_property
    def _definition(self) -> Definition:
        return Definition(self.workflow)


# --------------------------------------------------------------------------- folders


def load_app(folder: str | Path = ".", *, limits: Limits | None = None) -> App:
    """The app in this folder, under these limits (default: those of its settings).

    Raises AppError, with the line of the app's own code that failed, when a part is missing or broken, and
    WorkflowError when its workflow may not run.
    """
    path = Path(folder).resolve()
    missing = [part for part in PARTS if not (path / part / "__init__.py").is_file()]
    if missing:
        raise AppError(
            f"{path} is no Haru app: it has no {' and no '.join(f'{part}/' for part in missing)}. "
            "Give a folder with --app DIR, or write one with `haru new DIR`."
        )
    if limits is None:
        from haru_fsm.settings import Settings

        limits = Settings.for_folder(path).limits
    refuse_no_limits(limits)
    package = _package(path)
    states, tools = _import(path, package, "states"), _import(path, package, "tools")
    workflow = _exported(path, states, "workflow")
    return App(
        workflow=_called(f"{path}/states/", path, lambda: _table(workflow(limits))),
        make_tools=_exported(path, tools, "make_tools"),
        system_prompt=_prompt(path),
        limits=limits,
        make_session=getattr(tools, "CustomerSession", Session),
        folder=path,
        notices=getattr(states, "NOTICES", KOREAN),
        example_customer=str(getattr(tools, "EXAMPLE_CUSTOMER", "example")),
    )


def starter() -> Path:
    """The folder of the starter app: in a wheel inside the package, in a development install beside it."""
    packed = Path(__file__).parent / "starter"
    return packed if packed.is_dir() else Path(__file__).parent.parent


def find_app(folder: Path | None) -> Path:
    """`folder`, or the current folder if it is an app, else the starter app.

    A folder with `haru.toml` or a package `states` was meant to be one: what it lacks is said when it is loaded.
    """
    if folder is not None:
        return folder
    here = Path.cwd()
    meant = (here / "haru.toml").is_file() or (here / "states" / "__init__.py").is_file()
    return here if meant else starter()


def _package(path: Path) -> str:
    name = "haru_app_" + hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()
    if name not in sys.modules:
        package = types.ModuleType(name, doc=f"The Haru app in {path}.")
        package.__path__ = [str(path)]
        sys.modules[name] = package
    return name


def _import(path: Path, package: str, part: str) -> types.ModuleType:
    module: types.ModuleType = _called(f"{path}/{part}/", path, lambda: importlib.import_module(f"{package}.{part}"))
    return module


def _exported(path: Path, module: types.ModuleType, name: str) -> Callable[..., Any]:
    part = module.__name__.rpartition(".")[2]
    found: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(found):
        raise AppError(f"{path}/{part}/ does not export {name}(...). Define it in {part}/__init__.py.")
    return found


def _table(made: object) -> Workflow:
    if not isinstance(made, Workflow):
        raise AppError(f"workflow(limits) gave {_kind(made)}. Let it return a Workflow.")
    return made


def _functions(made: object) -> Any:
    if inspect.iscoroutine(made):
        made.close()
    if not isinstance(made, Iterable):
        raise AppError(f"make_tools(session) gave {_kind(made)}. Let it return a list of functions, or a dictionary.")
    return made if isinstance(made, Mapping) else list(made)


@cache
def _warn_once(warning: str) -> None:
    log.warning(warning)


def _kind(made: object) -> str:
    return "nothing" if made is None else f"a {type(made).__name__}"


def _called(what: str, path: Path | None, code: Callable[[], Any]) -> Any:
    """Run an app's own code; what it raises is told with the line that raised it."""
    try:
        return code()
    except HaruError:
        raise
    except Exception as error:
        raise AppError(
            f"{what} cannot be used: {_line(path, error)}{type(error).__name__}: {with_place(error)}"
        ) from error


def _line(path: Path | None, error: Exception) -> str:
    """Where it was raised: in the app's folder, or in the code that was handed over (`with_tools`)."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: "
    importing = ("<frozen ", importlib.__file__, __file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(importing)]
    inside = [frame for frame in frames if path is not None and Path(frame.filename).is_relative_to(path)]
    frame = inside[-1] if inside else frames[0] if frames else None
    return f"{frame.filename}, line {frame.lineno}: " if frame is not None else ""


def _prompt(path: Path) -> str:
    file = path / "data" / "system_prompt.md"
    try:
        return file.read_text("utf-8") if file.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise AppError(f"{file} cannot be read: {in_words(error)}. Save it as UTF-8 text.") from error
