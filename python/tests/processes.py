"""What tests with several processes share: ``workers.py`` is what each of them runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKERS = Path(__file__).with_name("workers.py")


def run_workers(what: str, device: str, folder: Path, count: int = 2) -> None:
    """Run a worker in processes that meet in ``folder``, and print what they say; ``cache`` has an empty cache."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}  # the machine's name may have no address
    if what == "cache":
        environment |= {"JITCONV_CACHE": "rw", "JITCONV_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(WORKERS), what, str(count), str(folder)]
    workers = [
        subprocess.Popen(
            [*command, str(rank), device], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for rank in range(count)
    ]
    try:
        outputs = [worker.communicate(timeout=120)[0].decode() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()  # of those that wait for another that has failed
    for rank, (worker, output) in enumerate(zip(workers, outputs, strict=True)):
        assert worker.returncode == 0, output
        print(f"rank {rank}: {output.strip()}")
