"""The installed package: its tags, what its library needs, and messages of a broken installation."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jitconv
from jitconv import _native

LIBRARY = Path(_native.__file__)
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
           "ld-linux-aarch64.so.1"}  # fmt: skip


def installed() -> importlib.metadata.Distribution:
    try:
        distribution = importlib.metadata.distribution("jitconv")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("jitconv is used from a folder and not installed")
    if Path(str(distribution.locate_file("jitconv"))) != LIBRARY.parent:
        pytest.skip("the jitconv that is installed is not the one in use")
    return distribution


def test_tags() -> None:
    wheel = installed().read_text("WHEEL") or ""
    assert re.search(r"^Tag: cp310-abi3-\w*linux\w*$", wheel, re.M), wheel
    assert installed().version == jitconv.__version__


def test_files() -> None:
    names = {str(file) for file in installed().files or ()}
    assert {"jitconv/py.typed", "jitconv/_native.abi3.so", "jitconv/_native.pyi"} <= names
    folders = {name.split("/")[0] for name in names}
    assert all(folder.startswith("jitconv") for folder in folders), folders
    metadata = installed().metadata
    assert "torch" in (metadata.get_all("Provides-Extra") or [])
    assert metadata["Requires-Python"] == ">=3.10"


def test_the_library_needs_only_glibc() -> None:
    output = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", output))
    assert needed <= ALLOWED, needed


def test_the_library_uses_the_limited_api() -> None:
    """Every name of Python's that it needs belongs to the stable ABI of 3.10."""
    output = subprocess.run(["nm", "-D", "-u", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"\b(_?Py\w+)", output))
    assert "PyModule_Create2" in names
    # Behind macros and functions of the limited API.
    stable = {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct", "_Py_Dealloc", "_PyObject_New"}
    private = {name for name in names if name.startswith("_Py") and not name.endswith("_SizeT")} - stable
    assert not private, private
    newer = {"PyObject_GetBuffer", "PyType_GetName", "PyErr_GetRaisedException", "PyModule_AddObject2"}
    assert not names & newer


def test_it_exports_its_initialisation_alone() -> None:
    output = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in output.splitlines()]
    assert names == ["PyInit__native"]


def run(code: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
    )
    assert result.returncode != 0
    return result.stderr


def copy_of_package(folder: Path) -> Path:
    target = folder / "jitconv"
    target.mkdir()
    for file in LIBRARY.parent.glob("*.py"):
        (target / file.name).write_text(file.read_text())
    return target


def test_message_without_the_library(tmp_path: Path) -> None:
    copy_of_package(tmp_path)
    assert "pip install --force-reinstall jitconv" in run("import jitconv", tmp_path)


def test_message_of_another_interface(tmp_path: Path) -> None:
    package = copy_of_package(tmp_path)
    (package / "_native.py").write_text("ABI_VERSION = 99\n")
    message = run("import jitconv", tmp_path)
    assert "two installations are mixed" in message
    assert "pip uninstall jitconv" in message


def test_message_without_pytorch() -> None:
    code = "import sys; sys.modules['torch'] = None; import jitconv.torch"
    assert "pip install 'jitconv[torch]'" in run(code, LIBRARY.parent.parent)


def test_message_of_an_old_pytorch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("__version__ = '2.4.1+cu121'\n")
    code = f"import sys; sys.path.append({str(LIBRARY.parent.parent)!r}); import jitconv.torch"
    assert "this is 2.4.1" in run(code, tmp_path)


def test_nvrtc_of_the_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitconv import _library  # noqa: PLC0415

    (tmp_path / "nvidia/cu13/lib").mkdir(parents=True)
    (tmp_path / "nvidia/cu13/lib/libnvrtc.so.13").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    assert _library._nvrtc_of_wheels() is not None
    monkeypatch.setattr(_library, "_nvrtc_is_known", False)
    monkeypatch.setenv("JITCONV_NVRTC_PATH", "/mine")
    _library._point_to_nvrtc()
    import os  # noqa: PLC0415

    assert os.environ["JITCONV_NVRTC_PATH"] == "/mine"
