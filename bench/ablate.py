#!/usr/bin/env python3
"""Where the time of a tensor-core kernel goes: times it without its loads, without its stores, and without both.

    python3 bench/ablate.py --dump build/release/tools/jitconv-dump --json result.json

Needs nvcc and a GPU. Each variant is the harness that jitconv-dump prints with a few words of the kernel changed, so its
results are wrong (the harness says so) and only its time counts. Variants run one after the other on random data.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

CONFIGURATIONS = ["A_bias", "B_bias", "C_bias", "D_bias"]
MODES = {"tf32": ["--math=tf32"], "bf16": ["--dtype=bf16"]}
STORE = "      // Store: the outputs"
NO_STORE = "      if (sum[0] != 123456.789f) continue;\n" + STORE
LOAD, NO_LOAD = "run < kRuns; ++run)", "run < 0; ++run)"
# Where TMA brings pixels: what asks for them, and who waits.
COPIES = ["if (!ahead.done()) copy_pixels(", "barrier_wait(copied + slot"]


def replaced(text, old, new):
    if old not in text:
        sys.exit(f"ablate.py: the kernel has no '{old.strip()}'")
    return text.replace(old, new)


def without_loads(text):
    if "copy_pixels(" not in text:
        return replaced(text, LOAD, NO_LOAD)
    for words in COPIES:
        text = replaced(text, words, "if (false) " + words)
    main = text.rindex("// The loading warpgroup")
    return text[:main] + replaced(text[main:], LOAD, NO_LOAD)


def variants(text):
    no_store = replaced(text, STORE, NO_STORE)
    return {
        "whole": text,
        "without loads": without_loads(text),
        "without stores": no_store,
        "main loop alone": without_loads(no_store),
    }


def build(job):
    name, text, folder = job
    source, program = folder / f"{name}.cu", folder / name
    source.write_text(text)
    command = ["nvcc", "-std=c++17", "-O3", "-gencode=arch=compute_90a,code=sm_90a", "-o", program, source]
    subprocess.run(command, check=True, capture_output=True)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", default="build/release/tools/jitconv-dump", help="path of jitconv-dump")
    parser.add_argument("--json", help="write the times to this file")
    options = parser.parse_args()
    jobs, names = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for mode, arguments in MODES.items():
            for config in CONFIGURATIONS:
                command = [options.dump, f"--config={config}", *arguments, "--activation=relu", "--arch=sm_90a",
                           "--emit=harness"]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                for variant, changed in variants(text).items():
                    names.append((mode, config, variant))
                    jobs.append((f"{mode}_{config}_{variant.replace(' ', '_')}", changed, folder))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            programs = list(pool.map(build, jobs))
        results = []
        for (mode, config, variant), program in zip(names, programs):
            output = subprocess.run([program], capture_output=True, text=True).stdout
            found = re.search(r"^([0-9.]+) ms", output, re.M)
            ms = float(found.group(1)) if found else None
            results.append({"mode": mode, "config": config, "variant": variant, "ms": ms})
            print(f"{mode} {config:8} {variant:16} {ms if ms is not None else 'failed'}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
