"""Telling a living process from one that is gone."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from penstock.engine.state.records import _start_by_ps, _start_of, is_gone, this_process


def test_this_process_lives() -> None:
    assert not is_gone(this_process())


def test_a_number_used_again_is_another_process() -> None:
    assert is_gone(replace(this_process(), started="earlier"))


def test_a_process_that_ended_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = replace(this_process(), pid=child.pid, started=_start_of(child.pid) or "")
    assert not is_gone(process)
    child.communicate()
    assert is_gone(process)


def test_another_host_is_never_gone() -> None:
    assert not is_gone(replace(this_process(), host="elsewhere", pid=2**22 + 1))


def test_without_proc_ps_tells() -> None:
    assert _start_by_ps(this_process().pid)
    assert _start_by_ps(2**22 + 1) is None
