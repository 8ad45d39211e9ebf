"""Whose process is there is told by what no clock changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def test_a_living_process_has_its_lease_until_it_was_not_renewed_for_too_long() -> None:
    living = f"{leases.this_host()}|{os.getppid()}|{leases._started(os.getppid())}|token"
    for owner in (living, "another host|1|1|token", f"{leases.this_host()}|no number|1|token", "nonsense"):
        assert not leases.is_void(owner, lease_until=100, now=100)
        assert leases.is_void(owner, lease_until=100, now=100.001)


@pytest.mark.skipif(os.name != "posix", reason="only there a process stays as a zombie")
def test_a_process_that_ended_keeps_nobody_waiting_also_before_its_parent_has_looked() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = f"{leases.this_host()}|{child.pid}|{leases._started(child.pid)}|token"
    assert not leases.is_void(owner, lease_until=100, now=50)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert leases.is_void(owner, lease_until=100, now=50), "a zombie"
    child.communicate()
    assert leases.is_void(owner, lease_until=100, now=50), "gone"


def test_an_owner_of_this_process_counts_until_it_is_given_back() -> None:
    one, other = leases.take(), leases.take()
    assert {one, other} <= leases.held()
    assert not leases.is_void(one, lease_until=0, now=50), "its store renews it"
    leases.give_back(one)
    assert (leases.is_void(one, lease_until=100, now=50), leases.is_void(other, lease_until=100, now=50)) == (
        True,
        False,
    )
    leases.give_back(other)
    assert leases.held().isdisjoint({one, other})
    assert leases.is_void(None, lease_until=100, now=50)
