"""`haru tools`: what the app's tools say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from haru_fsm.cli import exits, options
from haru_fsm.cli.output import say_json, show
from haru_fsm.cli.wiring import Given, run
from haru_fsm.errors import SettingsError

if TYPE_CHECKING:
    from haru_fsm.app import App
    from haru_fsm.toolbox import Tool, Toolbox

OneTool = Annotated[str | None, typer.Argument(metavar="TOOL", help="One tool, with its whole declaration.")]
AsCustomer = Annotated[
    str | None,
    typer.Option(
        "--customer",
        metavar="ID",
        help="Whose tools. Default: those of the customer who wrote last, else of an example;"
        " a shop need not show the same to all.",
    ),
]


def tools(
    name: OneTool = None,
    customer: AsCustomer = None,
    app: options.AppFolder = None,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> int:
    """The tools of the app, and what they say of themselves.

    What they take, what they do to the world, their time-outs and fallbacks. With TOOL: one tool and its whole
    declaration, as a model reads it.
    """
    given = Given(app, db)
    loaded = given.load()
    box = _toolbox(loaded, customer or run(_latest_customer(given)) or loaded.example_customer)
    chosen = box.tools if name is None else (found(box, name),)
    if as_json:
        objects = [tool_object(each) for each in chosen]
        say_json(objects if name is None else objects[0])
    else:
        show_tools(chosen)
        for each in chosen if name is not None else ():
            say_json(_declared(each))
    return exits.OK


async def _latest_customer(given: Given) -> str | None:
    """The customer of the conversation that moved last, if anybody has written yet."""
    async with given.store(quiet=True) as store:
        latest = await store.conversations(limit=1)
    return latest[0].customer_id if latest else None


def _toolbox(app: App, customer: str) -> Toolbox:
    return app.toolbox(app.session(customer))


def found(box: Toolbox, name: str) -> Tool:
    """The tool of this name. Raises SettingsError, with the names there are."""
    tool = box.find(name)
    if tool is None:
        raise SettingsError(box.unknown(name))
    return tool


def tool_object(tool: Tool) -> dict[str, Any]:
    """A tool as JSON: its declaration, what it says of itself, and how it is run."""
    from dataclasses import asdict

    marks = asdict(tool.marks)
    fallback = {"fallback": tool.marks.fallback} if tool.marks.has_fallback else {}
    return {
        **_declared(tool),
        "annotations": {key: value for key, value in marks.items() if key not in ("timeout_s", "fallback")},
        "has_effect": tool.has_effect,
        "accepts_key": tool.accepts_key,
        "timeout_s": tool.timeout_s,
        **fallback,
    }


def _declared(tool: Tool) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(tool.declaration)


def show_tools(chosen: tuple[Tool, ...]) -> None:
    """A table of tools."""
    from haru_fsm.cli.timeline import as_text, row, table

    made = table("tool", "timeout", "it is", "does, and takes", right=("timeout",), prose=("it is", "does, and takes"))
    for tool in chosen:
        says = [", ".join(marks_in_words(tool))]
        says += [f"fallback: {as_text(tool.marks.fallback)}"] if tool.marks.has_fallback else []
        does = [tool.declaration.description.partition("\n")[0], *_takes(tool)]
        row(made, tool.name, f"{tool.timeout_s:g} s", "\n".join(says), "\n".join(does))
    show(made)


def marks_in_words(tool: Tool) -> list[str]:
    """What a tool says of itself, in words."""
    marks = tool.marks
    words = {
        "read-only": marks.read_only,
        "has an effect": marks.declares_effect,
        "says nothing": marks.says_nothing,
        "idempotent": marks.idempotent,
        "destructive": marks.destructive,
        "repeatable": marks.repeatable,
        "polling": marks.polling,
        "needs approval": tool.needs_approval,
        "takes the call's key": tool.accepts_key,
        f"{marks.retries} retries": marks.retries,
    }
    return [word for word, true in words.items() if true]


def _takes(tool: Tool) -> list[str]:
    """The parameters and their types; `?` marks those that may be left out."""
    schema = tool.declaration.parameters or {}
    required = schema.get("required", ())
    parameters = schema.get("properties", {}).items()
    return [f"  {name}{'' if name in required else '?'}: {_kind(part)}" for name, part in parameters]


def _kind(schema: dict[str, Any]) -> str:
    """A type in few words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    return str(schema.get("type", schema.get("$ref", "any")).rpartition("/")[2])
