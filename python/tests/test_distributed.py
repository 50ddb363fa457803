"""Two processes on one machine without a GPU: gradients arrive as DDP and FSDP expect them, and a cache serves both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from processes import run_workers

import jitconv
from jitconv.torch import _share

LINES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("what", ["cache", "ddp", "fsdp"])
def test_two_processes(what: str, tmp_path: Path) -> None:
    run_workers(what, "cpu", tmp_path)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> dist.Store:
    """Return the store of a process group in which nobody else says anything."""
    result = dist.HashStore()
    monkeypatch.setattr(dist.distributed_c10d, "_get_default_store", lambda: result)
    monkeypatch.setattr(_share, "_PATIENCE", 0.01)
    return result


def test_a_process_that_is_alone_compiles_everything(store: dist.Store) -> None:
    parts: list[list[str]] = []

    def compile(lines: list[str]) -> Any:
        parts.append(lines)
        return lines

    group = _share.LocalGroup(rank=1, size=2, node=0)
    assert group.compile(LINES, compile, dict.fromkeys(LINES, "compiler")) == LINES
    assert parts == [["b", "d"], ["a", "c", "e"]]
    assert store.num_keys() == 1


def test_nobody_waits_for_a_share_that_failed(store: dist.Store) -> None:
    parts: list[list[str]] = []

    def compile(lines: list[str]) -> Any:
        parts.append(lines)
        if "b" in lines:
            raise jitconv.CompileError("b is wrong")
        return lines

    with pytest.raises(jitconv.CompileError, match="b is wrong"):
        _share.LocalGroup(rank=1, size=2, node=0).compile(LINES, compile, {})
    assert parts == [["b", "d"], ["a", "c", "e"]]
    assert store.num_keys() == 1


def test_who_shares_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JITCONV_CACHE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert _share.local_group() is None
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_rank", lambda: 5)
    monkeypatch.setattr(dist, "get_world_size", lambda: 8)
    assert _share.local_group() == _share.LocalGroup(rank=5, size=8, node=0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert _share.local_group() == _share.LocalGroup(rank=1, size=4, node=4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert _share.local_group() is None
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setenv("JITCONV_CACHE", "off")
    assert _share.local_group() is None
