"""Scripts that several processes read are those that one reads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from penstock.model.project import processes
from penstock.model.project.loader import load_models
from penstock.model.project.processes import pack_in_processes

MANY = list(range(4 * processes.FEWEST))


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_count_cores", lambda: 4)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # a test worker has more


def pack(number: int) -> tuple[str, bytes] | None:
    return None if number % 10 == 0 else (str(number), f"{os.getpid()}".encode())


def test_every_item_is_packed_by_one_of_the_processes() -> None:
    packed = pack_in_processes(MANY, pack)
    assert sorted(map(int, packed)) == [number for number in MANY if number % 10]
    assert len({*packed.values()} - {f"{os.getpid()}".encode()}) == 4


def test_few_items_threads_and_one_core_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pack_in_processes(MANY[: processes.FEWEST], pack) == {}
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert pack_in_processes(MANY, pack) == {}
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(processes, "_count_cores", lambda: 1)
    assert pack_in_processes(MANY, pack) == {}


def test_a_process_that_ends_early_leaves_its_part_to_the_caller() -> None:
    def pack_or_end(number: int) -> tuple[str, bytes] | None:
        if number % 4 == 1:
            os._exit(9)
        return pack(number)

    packed = pack_in_processes(MANY, pack_or_end)
    assert sorted(map(int, packed)) == [n for n in MANY if n % 10 and n % 4 != 1]


def test_a_project_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for number in range(3 * processes.FEWEST):
        text = f"-- pipeline\n-- materialize ducklake://main/t{number}\nSELECT {number} AS n"
        if number % 20 == 7:
            text = text.replace("SELECT", "SELEKT (")
        (tmp_path / "models" / f"t{number}.sql").write_text(text)
    cache = dict[str, bytes]()
    plain = load_models(tmp_path, lakes=["main"])
    cold = load_models(tmp_path, lakes=["main"], cache=cache)
    assert len(cache) == len(plain.models)
    warm = load_models(tmp_path, lakes=["main"], cache=cache)
    for loaded in (cold, warm):
        assert loaded.models == plain.models
        assert loaded.diagnostics == plain.diagnostics
