"""Whose process is there is told by what no clock changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil
import pytest

from haru_fsm import leases


def proc(folder: Path, pid: int, *, corrected_s: int) -> str:
    """What the system says of this process after its clock was corrected by so many seconds."""
    (folder / str(pid)).mkdir(parents=True)
    shutil.copy(f"/proc/{pid}/stat", folder / str(pid) / "stat")
    shutil.copy(f"/proc/{pid}/status", folder / str(pid) / "status")
    lines = Path("/proc/stat").read_text().splitlines()
    booted = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
    (folder / "stat").write_text(f"btime {booted + corrected_s}\n")
    return str(folder)


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux counts a process's start from the boot")
@pytest.mark.parametrize("corrected_s", [-3600, 3600])
def test_a_clock_that_is_corrected_makes_no_living_worker_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, corrected_s: int
) -> None:
    pid = os.getppid()
    owner = f"{leases.this_host()}|{pid}|{leases._started(pid)}|token"
    assert not leases.is_void(owner, lease_until=100, now=50)
    monkeypatch.setattr(psutil, "PROCFS_PATH", proc(tmp_path, pid, corrected_s=corrected_s))
    assert not leases.is_void(owner, lease_until=100, now=50)


def test_a_number_that_another_process_has_now_keeps_nobody_waiting() -> None:
    pid = os.getppid()
    began = leases._started(pid)
    assert began is not None
    assert leases.is_void(f"{leases.this_host()}|{pid}|{began - 10}|token", lease_until=100, now=50)


def test_an_owner_is_told_in_words() -> None:
    assert leases.told("shop-1/4026531836|3|60248950|dbf914f8") == "process 3 on shop-1"
    assert leases.told("me") == "me"
