"""What the tests share: CPU tensors run through host execution, and the kernels' cache is the session's own.

The processes of pytest-xdist share the cache: tests of several of them compile the same kernels.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    if "JITCONV_CACHE_DIR" not in os.environ and "JITCONV_CACHE" not in os.environ:
        session = tmp_path_factory.getbasetemp()
        if "PYTEST_XDIST_WORKER" in os.environ:
            session = session.parent
        os.environ["JITCONV_CACHE_DIR"] = str(session / "cache")


@pytest.fixture
def host() -> Iterator[None]:
    """Compute convolutions of CPU tensors by host execution, in full precision."""
    import torch  # noqa: PLC0415

    import jitconv.torch as jt  # noqa: PLC0415

    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False), jt.cpu_policy("host"):
        yield
