"""Fixtures of the shop's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shop.opening import a_shop
from tools import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A shop that has just opened."""
    return a_shop(tmp_path)
