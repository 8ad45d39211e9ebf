"""A callable, read: which parameters the model fills in, which the engine does, and what the docstring says.

Functions, methods, `functools.partial`, and objects with `__call__` are peeled down to the Python function that
their signature and docstring come from. What cannot become a tool is refused with the tool's and the parameter's
name and the way out.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import docstring_parser
from pydantic.fields import FieldInfo

from haru_fsm.errors import ToolError
from haru_fsm.toolbox.hints import is_marked, mentions, modern
from haru_fsm.toolbox.marks import MISSING, IdempotencyKey, Secret

_WORD = re.compile(r"\w+")
_TOLD_ELSEWHERE = re.compile(
    r"^(?:Args|Arguments|Parameters|Params|Raises|Except|Exceptions):[ \t]*\n(?:[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)*",
    re.MULTILINE,
)
_BLANK_LINES = re.compile(r"\n\s*\n")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `default` is MISSING for a required one."""

    name: str
    hint: Any
    default: Any = MISSING
    description: str | None = None

    @property
    def required(self) -> bool:
        return self.default is MISSING


@dataclass(frozen=True, slots=True)
class Reading:
    """What a callable says of itself."""

    description: str
    parameters: tuple[Parameter, ...]
    """Those that the model fills in."""
    key: Parameter | None
    """The one that takes the call's idempotency key."""
    secrets: frozenset[str]
    """Names of the parameters marked Secret, bound ones included."""
    returns: Any
    """The return annotation, or MISSING."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A callable with its wrappings taken off."""

    outside: Callable[..., Any]
    function: Callable[..., Any]
    """What has the annotations and the docstring."""
    bound_names: frozenset[str] = frozenset()
    """Keywords that a partial has filled in: not the model's to change."""
    bound_positions: int = 0
    owner: type | None = None
    """The class of a callable object."""

    @property
    def doc(self) -> str | None:
        """The docstring: the partial's own, the function's, or that of a callable object's class."""
        written = self._own_doc or self.function.__doc__
        if written and written.strip():
            return inspect.cleandoc(written)
        # Nothing is written here: look where it is inherited from. Of a bare `__call__` Python tells what calling is.
        return inspect.getdoc(self.owner or self.function) or None

    @property
    def _own_doc(self) -> str | None:
        return vars(self.outside).get("__doc__") if isinstance(self.outside, functools.partial) else None

    @property
    def fingerprint(self) -> tuple[Any, ...]:
        """Two callables over the same code with equal fingerprints are the same to a model."""
        function = self.function
        hints = getattr(function, "__annotations__", {})
        return (
            getattr(function, "__module__", None),
            getattr(function, "__qualname__", None),
            function.__doc__,
            self._own_doc,
            self.owner,
            getattr(function, "__defaults__", None),
            getattr(function, "__kwdefaults__", None),
            hints,
            _cells(function, hints),
            getattr(self.outside, "__signature__", None),
            self.bound_names,
            self.bound_positions,
        )


def layers(function: Callable[..., Any]) -> Layers:
    """Take the partials and bindings off a callable."""
    names: set[str] = set()
    positions, inner, owner = 0, function, None
    while isinstance(inner, functools.partial):
        names |= inner.keywords.keys()
        positions += len(inner.args)
        inner = inner.func
    if not isinstance(inner, _FUNCTIONS):
        owner, inner = type(inner), getattr(inner, "__call__", inner)  # noqa: B004 - its bound method is wanted
    if inspect.ismethod(inner):
        positions += 1
        inner = inner.__func__
    return Layers(function, inspect.unwrap(inner), frozenset(names), positions, owner)


def read(name: str, layered: Layers) -> Reading:
    """Read a callable. Raises ToolError for what cannot be a tool."""
    function = layered.function
    if isinstance(layered.outside, type):
        raise ToolError(f"tool {name}: a class cannot be a tool; give a function that makes what is needed")
    text, doc = _docstring(name, layered)
    description = _description(text, doc)
    if not description:
        raise ToolError(f"tool {name}: its docstring does not say what it does; begin it with a sentence that does")
    described = {param.arg_name.lstrip("*"): _flat(param.description) for param in doc.params}
    parameters = [_parameter(name, layered, param) for param in _signature(name, layered).parameters.values()]
    secrets = {param.name for param in parameters if mentions(param.hint, Secret)} | _bound_secrets(layered)
    open_ones = [param for param in parameters if param.name not in layered.bound_names]
    for param in open_ones:
        if param.name in secrets and param.required:
            raise ToolError(
                f"tool {name}: parameter {param.name} is a Secret, which no model may fill in; give it a default, or "
                "bind it with functools.partial"
            )
    keys = [param for param in open_ones if is_marked(param.hint, IdempotencyKey)]
    return Reading(
        description=description,
        parameters=tuple(
            Parameter(param.name, modern(param.hint), param.default, described.get(param.name))
            for param in open_ones
            if param.name not in secrets and param not in keys
        ),
        key=keys[0] if keys else None,
        secrets=frozenset(secrets),
        returns=_hints(function, {"return"}).get("return", MISSING),
    )


def secret_values(layered: Layers, names: frozenset[str]) -> list[Any]:
    """The values that Secret parameters have in this callable: defaults, or what a partial has bound."""
    bound: dict[str, Any] = {}
    inner = layered.outside
    while isinstance(inner, functools.partial):
        bound = {**_positional(inner), **inner.keywords, **bound}
        inner = inner.func
    defaults = {param.name: param.default for param in inspect.signature(layered.function).parameters.values()}
    return [{**defaults, **bound}.get(name) for name in names]


def _positional(partial: functools.partial[Any]) -> Mapping[str, Any]:
    return inspect.signature(partial.func).bind_partial(*partial.args).arguments


# --------------------------------------------------------------------------- signature


def _signature(name: str, layered: Layers) -> inspect.Signature:
    try:
        return inspect.signature(layered.outside)
    except (TypeError, ValueError) as error:
        raise ToolError(f"tool {name}: it has no signature that can be read; wrap it in a function") from error


def _parameter(name: str, layered: Layers, param: inspect.Parameter) -> Parameter:
    where = f"tool {name}: parameter {param.name}"
    match param.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise ToolError(f"{where} takes anything, and a model has to be told what; name the parameters one by one")
        case inspect.Parameter.POSITIONAL_ONLY:
            raise ToolError(f"{where} is positional-only, and a model passes names; take out the / in the signature")
    if param.annotation is inspect.Parameter.empty and param.name not in layered.bound_names:
        raise ToolError(f"{where} has no type hint; write one, as in `{param.name}: str`")
    if isinstance(param.default, FieldInfo):
        raise ToolError(f"{where} has a pydantic Field as its default; write it as Annotated[<type>, Field(...)]")
    default = MISSING if param.default is inspect.Parameter.empty else param.default
    return Parameter(param.name, _hint(where, layered, param), default)


def _hint(where: str, layered: Layers, param: inspect.Parameter) -> Any:
    if hasattr(layered.outside, "__signature__") and not isinstance(param.annotation, str):
        return param.annotation
    try:
        return _hints(layered.function, {param.name}, {param.name: param.annotation})[param.name]
    except Exception as error:
        if param.name in layered.bound_names:
            return Any
        raise ToolError(
            f"{where}: its type hint {param.annotation!r} cannot be understood ({error}); "
            "use a type that its module defines or imports at run time"
        ) from error


def _hints(function: Callable[..., Any], names: set[str], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The resolved hints of these names; a return hint that cannot be resolved is no reason to refuse a tool."""
    annotations = given if given is not None else getattr(function, "__annotations__", {})
    wanted = {name: hint for name, hint in annotations.items() if name in names}
    bearer = types.SimpleNamespace(__annotations__=wanted)
    try:
        return get_type_hints(bearer, getattr(function, "__globals__", {}), _closure(function), include_extras=True)
    except Exception:
        if given is None:
            return {}
        raise


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function defined in a function sees of its surroundings, for hints that are written as strings."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    seen = {}
    for name, cell in zip(code.co_freevars, cells, strict=True):
        try:
            seen[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return seen


def _cells(function: Callable[..., Any], hints: Mapping[str, Any]) -> tuple[Any, ...]:
    """The closure's values that hints written as strings may name: another session may have other ones."""
    if not getattr(function, "__closure__", None):
        return ()
    words = {word for hint in hints.values() if isinstance(hint, str) for word in _WORD.findall(hint)}
    return tuple((name, value) for name, value in _closure(function).items() if name in words)


def _bound_secrets(layered: Layers) -> set[str]:
    """Secret parameters that are already bound by position, and so no longer in the outer signature."""
    try:
        names = inspect.signature(layered.function).parameters.keys()
    except (TypeError, ValueError):
        return set()
    hints = _hints(layered.function, set(names))
    return {name for name, hint in hints.items() if mentions(hint, Secret)}


# --------------------------------------------------------------------------- docstring


def _docstring(name: str, layered: Layers) -> tuple[str, docstring_parser.Docstring]:
    text = layered.doc
    if text is None:
        advice = "run Python without -OO, which takes them away" if sys.flags.optimize >= 2 else "write one"
        raise ToolError(f"tool {name}: it has no docstring, and a model chooses tools by what they say; {advice}")
    try:
        return text, docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, docstring_parser.Docstring()


def _description(text: str, doc: docstring_parser.Docstring) -> str:
    """Everything that is not about a parameter or an exception: those the model reads elsewhere, or not at all."""
    if doc.style is docstring_parser.DocstringStyle.GOOGLE or not doc.meta:
        # The parser loses what stands below these sections, and that may be the most important word.
        return _BLANK_LINES.sub("\n\n", _TOLD_ELSEWHERE.sub("\n", text)).strip()
    said_elsewhere = docstring_parser.DocstringParam | docstring_parser.DocstringRaises
    sections = [_section(meta) for meta in doc.meta if not isinstance(meta, said_elsewhere)]
    parts = [doc.short_description, doc.long_description, *sections]
    return "\n\n".join(part.strip() for part in parts if part and part.strip())


def _section(meta: docstring_parser.DocstringMeta) -> str | None:
    text = getattr(meta, "snippet", None) or meta.description
    return f"{meta.args[0].capitalize()}: {text}" if text and meta.args else text


def _flat(text: str | None) -> str | None:
    return " ".join(text.split()) if text else None
