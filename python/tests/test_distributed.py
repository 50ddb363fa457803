"""Two processes on one machine without a GPU: gradients arrive as DDP and FSDP expect them, and a cache serves both."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import run_workers


@pytest.mark.parametrize("what", ["cache", "ddp", "fsdp"])
def test_two_processes(what: str, tmp_path: Path) -> None:
    run_workers(what, "cpu", tmp_path)
