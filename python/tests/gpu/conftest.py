"""What the tests on a GPU share: the GPU's memory, between the processes of pytest-xdist, and one start of Inductor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
import torch

# Some small kernels are not worth the pool of processes that Inductor would start in each of the tests' own.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


@pytest.fixture(autouse=True)
def _leave_nothing() -> Iterator[None]:
    """Give the memory that PyTorch keeps back to the other processes, and forget what was compiled."""
    yield
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@pytest.fixture(autouse=True)
def _own_inductor_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no code of Inductor's that another version of the package has left."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "inductor"))
