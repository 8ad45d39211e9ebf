"""The `haru` command.

    commands                          the table of commands
    asking, resuming                  conversations
    chatting, forking
    approving, settling, ticketing    what persons decide in them
    looking, stats, replaying         what is stored, looked at
    databases                         what is stored, as a whole: verified, exported, imported, pruned
    checking, proving, experimenting  what is proved, attacked and measured
    tools, calling, starting          an app's tools, and an app to begin with
    options, wiring                   what commands share: options, and the way to app, store and engine
    narration, timeline, figures      what they show
    output, progress                  where that goes
    logs, debugging
    stopping, exits                   how it ends

Nothing heavy is imported before a command needs it. Whatever happens ends here: a result on standard output, or one
line on standard error, and an exit code; never a traceback, unless HARU_DEBUG asks for one.
"""

from __future__ import annotations

from collections.abc import Sequence

from haru_fsm.cli import exits
from haru_fsm.cli.debugging import debugging
from haru_fsm.cli.output import complain, give_results_back, prepare_streams
from haru_fsm.errors import HaruError
from haru_fsm.foreign import with_place


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: the process's own). Returns the exit code."""
    from typer.exceptions import TyperException

    from haru_fsm.cli.commands import haru

    prepare_streams()
    try:
        return int(haru(args=arguments, prog_name="haru", standalone_mode=False) or exits.OK)
    except TyperException as error:
        complain(f"{error.format_message().rstrip('.')}. See: {_help_for(error)}")
        return exits.USAGE
    except HaruError as error:
        return _ended(error, exits.of_error(error))
    except KeyboardInterrupt:
        complain("Interrupted.")
        return exits.INTERRUPTED
    except Exception as error:
        complain(f"unexpected {type(error).__name__}: {with_place(error)} (HARU_DEBUG=1 shows where)")
        return _ended(error, exits.FAILED)
    finally:
        give_results_back()


def _help_for(error: Exception) -> str:
    """Which help text says how to do it right."""
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context is not None else 'haru'} --help"


def _ended(error: Exception, code: int) -> int:
    if isinstance(error, HaruError):
        complain(str(error))
    if debugging():
        import traceback

        traceback.print_exception(error)
    return code
