"""What every test shares."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def shared_data() -> Path:
    """The folder of recorded conversations beside the repository; tests that need it are skipped where it is not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the recorded data (../shared/data) is not on this machine")
    return folder
