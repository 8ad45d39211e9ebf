"""The plot of an experiment: what each setting saves, against the successes it may destroy. Needs the extra `lab`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haru_fsm.errors import SettingsError
from haru_fsm.lab.outcomes import Outcome
from haru_fsm.lab.shares import Share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSIC = "classic"
APP = "app"
"""The family of settings that are named one by one; each is a point of its own."""
HANGUL = ("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Malgun Gothic", "Apple SD Gothic Neo", "AppleGothic")
"""Fonts that write Korean; what is installed of them stands in where the usual one has no letter."""
PANELS = (
    ("steps_saved", "steps saved (upper bound, % of all)"),
    ("tokens_saved", "tokens saved (upper bound, % of all)"),
)


def require_plots() -> None:
    """Raises SettingsError where matplotlib is not installed: to be asked before the work, not after it."""
    try:
        import matplotlib.figure  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise SettingsError(
            "The plot needs matplotlib: pip install 'haru-fsm[lab]', or leave it out with --no-plot."
        ) from error


def draw(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    """Write the plot as PNG: one curve for each family of settings, one point for each classic rule.

    Raises SettingsError where matplotlib is not installed.
    """
    require_plots()
    from matplotlib import font_manager, rc_context

    there = font_manager.get_font_names()
    # Names are a user's words: a dollar sign in them begins no formula, and they may be Korean.
    fonts = ["DejaVu Sans", *(font for font in HANGUL if font in there)]
    with rc_context({"font.family": fonts, "text.parse_math": False}), warnings.catch_warnings():
        # Where no font has a letter, a box is drawn for it; that is seen in the picture.
        warnings.filterwarnings("ignore", "Glyph")
        _draw(outcomes, path, title)


def _draw(outcomes: Sequence[Outcome], path: Path, title: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6), layout="constrained")
    FigureCanvasAgg(figure)
    for place, (name, label) in enumerate(PANELS, 1):
        axes = figure.add_subplot(1, 2, place)
        _panel(axes, outcomes, name)
        axes.set_xlabel("successful runs stopped, % (bars: Wilson 95 %)")
        axes.set_ylabel(label)
    figure.axes[0].legend(fontsize=8, loc="best")
    figure.suptitle(title)
    figure.savefig(path, dpi=130)


def _panel(axes: Axes, outcomes: Sequence[Outcome], saved: str) -> None:
    families = dict.fromkeys(one.family for one in outcomes if one.family != CLASSIC)
    for family in families:
        if family != APP:
            _curve(axes, [one for one in outcomes if one.family == family], saved, family)
    for marker, one in zip("sDv^<>pP*", [one for one in outcomes if one.family == CLASSIC], strict=False):
        _points(axes, [one], saved, one.name, marker, linestyle="none")
    for one in [one for one in outcomes if one.family == APP]:
        _points(axes, [one], saved, one.name, "*", linestyle="none", markersize=14, zorder=5)
    axes.grid(alpha=0.3)
    axes.set_xlim(left=-0.2)
    axes.set_ylim(bottom=0)


def _curve(axes: Axes, members: Sequence[Outcome], saved: str, label: str) -> None:
    ordered = sorted(members, key=lambda one: (one.successes_stopped.share, _share(one, saved).share))
    _points(axes, ordered, saved, label, "o", linestyle="-" if len(ordered) > 1 else "none")


def _points(axes: Axes, members: Sequence[Outcome], saved: str, label: str, marker: str, **style: Any) -> None:
    x = [100 * one.successes_stopped.share for one in members]
    low = [max(0.0, at - 100 * one.successes_stopped.interval[0]) for at, one in zip(x, members, strict=True)]
    high = [max(0.0, 100 * one.successes_stopped.interval[1] - at) for at, one in zip(x, members, strict=True)]
    y = [100 * _share(one, saved).share for one in members]
    axes.errorbar(x, y, xerr=[low, high], label=label, marker=marker, capsize=2, elinewidth=0.7, alpha=0.85, **style)


def _share(one: Outcome, name: str) -> Share:
    share = getattr(one, name)
    assert isinstance(share, Share)
    return share
