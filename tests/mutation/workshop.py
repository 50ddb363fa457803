"""A copy of the tree with a build of its own, in which mutants are applied, built, tested and taken back."""
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from layers import Tests, programs_for, steps_of

FIRST_BUILD_SECONDS = 4 * 3600
BUILD_SECONDS = 900
BASELINE_SECONDS = 3600
SLOWER = 6  # than on the unchanged tree, and a test program hangs
PASSED_TEST = re.compile(r"^\[       OK \] ([\w/.:-]+).* \((\d+) ms\)$", re.MULTILINE)
BEGUN_TEST = re.compile(r"^\[ RUN      \] ([\w/.:-]+)$", re.MULTILINE)
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
    def __init__(self, root, folder, layers, first=False):
        self.root = root
        self.tree = folder / "tree"
        self.build = folder / "build"
        self.layers = layers
        self.first = first  # a layer that kills is the last
        self.baseline = {}  # of each program (its target) on the unchanged tree, the seconds of each test
        self.baseline_path = folder / "baseline.json"
        cache = folder / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        # One seed, so that a run can be repeated; counterexamples need not be small. The first failure ends a program,
        # by a signal: a test of many kernels does not run the others.
        self.environment = dict(os.environ, RC_PARAMS="seed=1 max_success=250 noshrink=1", JITCONV_CACHE_DIR=str(cache),
                                JITCONV_CACHE_MAXSIZE="256M", GTEST_BREAK_ON_FAILURE="1")

    def prepare(self, mutants):
        """Brings the copy up to date, configures, builds, and makes sure that all is well without a mutant."""
        self._load_baseline(self._copy_tree())
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
            for layer in self.layers:
                for program in programs_for(area, layer):
                    if program.target not in self.baseline:
                        self.baseline[program.target] = self._measure(program)
                        self.baseline_path.write_text(json.dumps({"tree": self.digest, "seconds": self.baseline}))

    def _load_baseline(self, digest):
        """What an interrupted run has measured, if the tree is still the same."""
        self.digest = digest
        if self.baseline_path.exists():
            known = json.loads(self.baseline_path.read_text())
            self.baseline = known["seconds"] if known["tree"] == digest else {}

    def _measure(self, program):
        """The seconds of each test, which must pass; of a program that names none, of all of it."""
        begin = time.monotonic()
        code, text = self._call(self._command(program, Tests()), BASELINE_SECONDS)
        if code != 0:
            sys.exit(f"run.py: {self._reason(program, code, text)} without a mutant\n{text[-3000:]}")
        return ({name: int(milliseconds) / 1000 for name, milliseconds in PASSED_TEST.findall(text)}
                or {"": time.monotonic() - begin})

    def _limit(self, program, tests):
        """Follows what the same tests took on the unchanged tree, so that a busy machine makes no mutant hang."""
        took = sum(seconds for name, seconds in self.baseline.get(program.target, {}).items() if tests.has(name))
        return max(program.seconds, SLOWER * took)

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
                layers = self._test(mutant)
        finally:
            file.write_text(original)
        for said in layers.values():
            said.pop("output", None)
        killed = any(said["verdict"] == "killed" for said in layers.values())
        return {"name": mutant.name, "file": mutant.file, "area": mutant.area, "harm": mutant.harm, "killed": killed,
                "host_blind": mutant.host_blind, "accepted": mutant.accepted,
                "build_seconds": round(build_seconds, 1), "layers": layers}

    def _copy_tree(self):
        """Files that are equal keep their times, so that a second run builds what has changed only. Returns a digest."""
        wanted, digest = set(), hashlib.sha256()
        skip = {".git", "build", "__pycache__"}
        for folder, folders, names in os.walk(self.root):
            at = pathlib.Path(folder)
            if at == self.root:
                folders[:] = [name for name in folders if name not in skip and not name.startswith("build-")]
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                source = at / name
                target = self.tree / source.relative_to(self.root)
                wanted.add(target)
                if source.is_symlink() or not source.is_file():
                    continue
                data = source.read_bytes()
                digest.update(f"{target} {len(data)} ".encode() + data)
                if target.exists() and target.read_bytes() == data:
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                shutil.copymode(source, target)
        for folder, _, names in os.walk(self.tree):
            for name in names:
                if (path := pathlib.Path(folder) / name) not in wanted:
                    path.unlink()
        return digest.hexdigest()

    def _build(self, area, seconds=BUILD_SECONDS):
        targets = sorted({program.target for layer in self.layers for program in programs_for(area, layer)})
        if not targets:
            return False, ""
        code, text = self._call(["cmake", "--build", str(self.build), "-j", "2", "--target", *targets], seconds)
        return code != 0, text

    def _command(self, program, tests):
        return [str(self.build / program.folder / program.target), *program.arguments, *tests.arguments]

    def _test(self, mutant):
        layers = {}
        for layer in self.layers:
            programs = programs_for(mutant.area, layer)
            if not programs:
                continue
            begin = time.monotonic()
            layers[layer] = self._run_until_one_fails(mutant, programs)
            layers[layer]["seconds"] = round(time.monotonic() - begin, 1)
            if self.first and layers[layer]["verdict"] == "killed":
                break
        return layers

    def _run_until_one_fails(self, mutant, programs):
        """Each program in steps, and the first steps of all programs before any second one."""
        steps = [(number, program, tests) for program in programs
                 for number, tests in enumerate(steps_of(program, mutant))]
        for _, program, tests in sorted(steps, key=lambda step: step[0]):
            code, text = self._call(self._command(program, tests), self._limit(program, tests))
            if code != 0:
                return {"verdict": "killed", "by": self._reason(program, code, text), "output": text[-3000:]}
        return {"verdict": "survived", "by": ""}

    @staticmethod
    def _reason(program, code, text):
        if code is None:
            return f"{program.target} hangs"
        # What ends with the first failure says only what it began last.
        named = FAILED_TEST.findall(text)[:1] or BEGUN_TEST.findall(text)[-1:]
        if named:
            return named[0]
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
