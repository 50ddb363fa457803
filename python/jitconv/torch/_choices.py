"""The measured choices of policy="auto", in memory and in files beside the kernels.

A file holds two times and nothing that is executed. Every trouble with one is a miss: the shape is then measured again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

# Grows when the meaning of a file changes; older files are then left alone.
_VERSION = 1


@dataclass(frozen=True)
class Choice:
    """What was measured of one operation of one shape. A time is None where the library cannot compute it."""

    jitconv_ms: float | None
    pytorch_ms: float | None
    reason: str = ""

    @property
    def takes_jitconv(self) -> bool:
        """Whether jitconv is the faster."""
        if self.jitconv_ms is None:
            return False
        return self.pytorch_ms is None or self.jitconv_ms <= self.pytorch_ms


class Choices:
    """Choices by a key: a text that names all that they depend on."""

    def __init__(self) -> None:
        self._known: dict[str, Choice] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> Choice | None:
        """Return what memory or the disk knows, or None."""
        choice = self._known.get(key)
        if choice is None:
            choice = _read(key)
            if choice is not None:
                self._known[key] = choice
        return choice

    def put(self, key: str, choice: Choice) -> None:
        """Keep a choice in memory and, if the cache may be written, on disk."""
        with self._lock:
            self._known[key] = choice
        _write(key, choice)

    def clear(self) -> None:
        """Forget what memory holds; files stay."""
        with self._lock:
            self._known.clear()

    def items(self) -> list[tuple[str, Choice]]:
        """Return what memory holds."""
        with self._lock:
            return list(self._known.items())


def _folder() -> Path | None:
    """Return the folder of the files, as docs/cache.md says where the cache is; None if it is off."""
    if os.environ.get("JITCONV_CACHE") == "off":
        return None
    folder = os.environ.get("JITCONV_CACHE_DIR")
    if not folder:
        base = os.environ.get("XDG_CACHE_HOME")
        try:
            folder = os.path.join(base, "jitconv") if base else str(Path.home() / ".cache" / "jitconv")
        except RuntimeError:  # nobody's home
            return None
    return Path(folder, f"torch-choices-{_VERSION}") if os.path.isabs(folder) else None


def _path(folder: Path, key: str) -> Path:
    return folder / f"{hashlib.sha256(key.encode()).hexdigest()}.json"


def _read(key: str) -> Choice | None:
    folder = _folder()
    if folder is None:
        return None
    try:
        path = _path(folder, key)
        if path.stat().st_uid not in (os.geteuid(), 0):
            return None
        content = json.loads(path.read_text())
        if content.pop("key") != key:
            return None
        choice = Choice(**content)
        times = (choice.jitconv_ms, choice.pytorch_ms)
        return choice if all(ms is None or float(ms) > 0 for ms in times) and times != (None, None) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(key: str, choice: Choice) -> None:
    folder = _folder()
    if folder is None or os.environ.get("JITCONV_CACHE") == "ro":
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix="tmp-")
    except OSError:
        return
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump({"key": key, **asdict(choice)}, file)
        os.replace(temporary, _path(folder, key))
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
