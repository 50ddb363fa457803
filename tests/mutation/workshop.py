"""A copy of the tree with a build of its own, in which mutants are applied, built, tested and taken back."""
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from layers import programs_for

FIRST_BUILD_SECONDS = 4 * 3600
BUILD_SECONDS = 900
FAILED_TEST = re.compile(r"^\[  FAILED  \] ([\w/.:-]+)(?: \(|,|$)", re.MULTILINE)


def problems_of(mutants, root):
    """Why the list does not fit the tree; empty if it does."""
    problems = []
    for name, count in collections.Counter(mutant.name for mutant in mutants).items():
        if count > 1:
            problems.append(f"{count} mutants are named {name}")
    for mutant in mutants:
        file = root / mutant.file
        found = file.read_text().count(mutant.old) if file.is_file() and mutant.old else None
        if found is None:
            problems.append(f"{mutant.name}: {mutant.file} does not exist, or nothing is replaced")
        elif found != mutant.count:
            problems.append(f"{mutant.name}: its text occurs {found} times in {mutant.file}, not {mutant.count}")
        if mutant.old == mutant.new or not mutant.harm:
            problems.append(f"{mutant.name}: changes nothing, or does not say whom it harms")
    return problems


class Workshop:
    def __init__(self, root, folder, layers):
        self.root = root
        self.tree = folder / "tree"
        self.build = folder / "build"
        self.layers = layers
        cache = folder / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        # One seed, so that a run can be repeated; counterexamples need not be small.
        self.environment = dict(os.environ, RC_PARAMS="seed=1 max_success=1000 noshrink=1", JITCONV_CACHE_DIR=str(cache),
                                JITCONV_CACHE_MAXSIZE="256M",                                 GTEST_BRIEF="1", GTEST_FAIL_FAST="1")

    def prepare(self, mutants):
        """Brings the copy up to date, configures, builds, and makes sure that all is well without a mutant."""
        self._copy_tree()
        configure = ["cmake", "-G", "Ninja", "-S", str(self.tree), "-B", str(self.build), "-DCMAKE_BUILD_TYPE=Release",
                     "-DCMAKE_CXX_FLAGS_RELEASE=-O2", "-DJITCONV_WERROR=OFF",
                     "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST"]
        if shutil.which("ccache"):
            configure += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
        subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
        for area in sorted({mutant.area for mutant in mutants}):
            failed, text = self._build(area, FIRST_BUILD_SECONDS)
            if failed:
                sys.exit(f"run.py: the tree does not build:\n{text[-5000:]}")
            for layer, said in self._test(area).items():
                if said["verdict"] != "survived":
                    sys.exit(f"run.py: layer {layer} fails without a mutant: {said['by']}\n{said['output']}")

    def run(self, mutant):
        file = self.tree / mutant.file
        original = file.read_text()
        file.write_text(original.replace(mutant.old, mutant.new))
        try:
            begin = time.monotonic()
            failed, text = self._build(mutant.area)
            build_seconds = time.monotonic() - begin
            if failed:
                layers = {"build": {"verdict": "killed", "by": text.strip()[-300:], "seconds": build_seconds}}
            else:
                layers = self._test(mutant.area)
        finally:
            file.write_text(original)
        for said in layers.values():
            said.pop("output", None)
        killed = any(said["verdict"] == "killed" for said in layers.values())
        return {"name": mutant.name, "file": mutant.file, "area": mutant.area, "harm": mutant.harm, "killed": killed,
                "host_blind": mutant.host_blind, "accepted": mutant.accepted,
                "build_seconds": round(build_seconds, 1), "layers": layers}

    def _copy_tree(self):
        """Files that are equal keep their times, so that a second run builds what has changed only."""
        wanted = set()
        skip = {".git", "build", "__pycache__"}
        for folder, folders, names in os.walk(self.root):
            at = pathlib.Path(folder)
            if at == self.root:
                folders[:] = [name for name in folders if name not in skip and not name.startswith("build-")]
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                source = at / name
                target = self.tree / source.relative_to(self.root)
                wanted.add(target)
                if source.is_symlink() or not source.is_file():
                    continue
                data = source.read_bytes()
                if target.exists() and target.read_bytes() == data:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                shutil.copymode(source, target)
        for folder, _, names in os.walk(self.tree):
            for name in names:
                if (path := pathlib.Path(folder) / name) not in wanted:
                    path.unlink()

    def _build(self, area, seconds=BUILD_SECONDS):
        targets = sorted({program.target for layer in self.layers for program in programs_for(area, layer)})
        if not targets:
            return False, ""
        code, text = self._call(["cmake", "--build", str(self.build), "-j", "2", "--target", *targets], seconds)
        return code != 0, text

    def _test(self, area):
        layers = {}
        for layer in self.layers:
            programs = programs_for(area, layer)
            if not programs:
                continue
            begin = time.monotonic()
            said = {"verdict": "survived", "by": ""}
            for program in programs:
                command = [str(self.build / program.folder / program.target), *program.arguments]
                code, text = self._call(command, program.seconds)
                if code != 0:
                    said = {"verdict": "killed", "by": self._reason(program, code, text), "output": text[-3000:]}
                    break
            said["seconds"] = round(time.monotonic() - begin, 1)
            layers[layer] = said
        return layers

    @staticmethod
    def _reason(program, code, text):
        failed = FAILED_TEST.search(text)
        if failed:
            return failed.group(1)
        if code is None:
            return f"{program.target} hangs"
        return f"{program.target} ends with {'signal ' + str(-code) if code < 0 else 'status ' + str(code)}"

    def _call(self, command, seconds):
        """Exit status (None: it took too long) and what it printed. Runs in a group of its own, which is ended whole."""
        process = subprocess.Popen(command, cwd=self.tree, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
        try:
            text, _ = process.communicate(timeout=seconds)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            return None, text
