"""What a measurement was made with, for the JSON of the benchmarks: the driver and the commit."""

import os
import subprocess


def driver_version():
    """As nvidia-smi has it; None without one."""
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def commit():
    """Of this checkout; JITCONV_COMMIT where the scripts run from a copy that is none."""
    if os.environ.get("JITCONV_COMMIT"):
        return os.environ["JITCONV_COMMIT"]
    try:
        command = ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
