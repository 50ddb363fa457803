"""Tests of what bench/compare_gradients.py says of a run, with measurements that are made up: no GPU, no PyTorch."""

from __future__ import annotations

import contextlib
import io
import pathlib
import sys
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import compare_gradients as cg


class OutOfMemoryError(RuntimeError):
    """As in PyTorch, one of the RuntimeErrors."""


def row(error: float) -> dict[str, Any]:
    """What compare() returns of a result with this error."""
    return {"config": "A", "operation": "data_gradient", "spec": "", "family": "wgmma", "flop": 1.0, "bytes": 1.0,
            "ms": {"jitconv": 1.0, "cudnn": 1.0, "cudnn_channels_last": 1.0}, "errors": {"jitconv": error}}


class ExitStatus(unittest.TestCase):
    def status(self, *outcomes: dict[str, Any] | Exception) -> tuple[int, str]:
        """Exit status and table of a run whose measurements end so."""
        torch = mock.MagicMock(__version__="0")
        torch.cuda.OutOfMemoryError = OutOfMemoryError
        names = ",".join("ABCD"[:len(outcomes)])
        arguments = ["compare_gradients.py", "--operation", "data_gradient", "--config", names]
        output = io.StringIO()
        with (mock.patch.multiple(cg, torch=torch, Library=mock.MagicMock(), ceilings=mock.MagicMock(),
                                  provenance=mock.MagicMock(), spec_of=mock.Mock(),
                                  compare=mock.Mock(side_effect=outcomes)),
              mock.patch.object(cg.ceilings, "floor_ms", return_value=1.0),
              mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output),
              contextlib.redirect_stderr(io.StringIO())):
            return cg.main(), output.getvalue()

    def test_right_results_are_a_success(self) -> None:
        self.assertEqual(self.status(row(0.001))[0], 0)

    def test_wrong_and_unwritten_results_are_none(self) -> None:
        for error in (0.5, float("inf"), float("nan")):
            self.assertEqual(self.status(row(0.001), row(error))[0], 1)

    def test_what_does_not_fit_into_memory_is_skipped(self) -> None:
        code, table = self.status(OutOfMemoryError("42 GiB"), row(0.001))
        self.assertEqual(code, 0)
        self.assertIn("A data_gradient: not run: not enough device memory", table)

    def test_what_fails_is_no_success(self) -> None:
        code, table = self.status(RuntimeError("cuLaunchKernel failed"), row(0.001))
        self.assertEqual(code, 1)
        self.assertIn("A data_gradient: not run: cuLaunchKernel failed", table)


if __name__ == "__main__":
    unittest.main()
