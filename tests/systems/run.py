#!/usr/bin/env python3
"""Does what the README says on bare systems: bootstraps minimal roots of Debian 12 and Ubuntu 24.04 with debootstrap,
adds a user with sudo, copies this checkout's commit there, runs the README's commands as that user, and prints a table
of what each took: time, packages, download, disk. Needs root, debootstrap, git, gpg and a network; not a part of ctest.

The roots lie in a folder outside the repository and are used again by the next run unless --fresh is given. Whatever is
mounted lives in a namespace of its own, which ends with the command that ran in it.
"""

import argparse
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SYSTEMS = {
    "debian-12": {"suite": "bookworm", "components": "main", "updates": ["bookworm-updates"]},
    # All suites of Ubuntu share one script of debootstrap's; jammy is the newest that Debian 12 has a name for.
    "ubuntu-24.04": {"suite": "noble", "script": "/usr/share/debootstrap/scripts/jammy", "components": "main,universe",
                     "updates": ["noble-updates", "noble-security"],
                     # "Ubuntu Archive Automatic Signing Key (2018)", which signs noble.
                     "fingerprint": "F6ECB3762474EDA9D21B7022871920D1991BC93C"},
}
# What runs in the root, and what of it must stand in the README letter for letter.
STEPS = {
    "run": "./dev run",
    "config": "./dev run --config=A",
    "dump": "build/release/tools/jitconv-dump --input=8,32,512,512 --weight=64,32,5,9 --padding=2,4 --dilation=2,3 "
            "--bias --arch=sm_90a >/dev/null",
    "install": "cmake --install build/release --prefix ~/jitconv-installed >/dev/null",
    "use": "rm -rf ~/consumer && cmake -G Ninja -S tests/install/consumer -B ~/consumer "
           "-DCMAKE_PREFIX_PATH=~/jitconv-installed >/dev/null && cmake --build ~/consumer >/dev/null && "
           "~/consumer/from_c && ~/consumer/from_cpp",
    "test": "./dev test",
}
IN_README = {"run": "./dev run", "dump": "build/release/tools/jitconv-dump --input=",
             "install": "cmake --install build/release --prefix", "use": "find_package(jitconv", "test": "./dev test"}
USER = "newcomer"


def default_mirror(system):
    """The mirror that debootstrap takes for Ubuntu by itself, from its script for the suite."""
    asked = 'default_mirror() { echo "$1"; exit; }; . "$0"'
    environment = dict(os.environ, ARCH="amd64", SUITE=system["suite"])
    return subprocess.run(["sh", "-c", asked, system["script"]], env=environment, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def download(url):
    with urllib.request.urlopen(url) as answer:
        return answer.read()


def trusted_key(system, mirror, folder):
    """A keyring with the system's signing key, which Debian has no package of. It comes from the mirror, in the package
    ubuntu-keyring, and is trusted because its fingerprint is the one above."""
    text = lzma.decompress(download(f"{mirror}/dists/{system['suite']}/main/binary-amd64/Packages.xz")).decode()
    paragraph = next(p for p in text.split("\n\n") if p.startswith("Package: ubuntu-keyring\n"))
    package = folder / "keyring.deb"
    package.write_bytes(download(f"{mirror}/{re.search('^Filename: (.*)$', paragraph, re.M)[1]}"))
    subprocess.run(["dpkg-deb", "--extract", package, folder / "keyring"], check=True)
    every_key = folder / "keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    keyring = folder / "trusted.gpg"
    with tempfile.TemporaryDirectory() as home:
        subprocess.run(["gpg", "--quiet", "--homedir", home, "--no-default-keyring", "--keyring", every_key,
                        "--output", keyring, "--yes", "--export", system["fingerprint"]], check=True)
    if not keyring.exists():
        sys.exit(f"{mirror}: ubuntu-keyring does not hold the key {system['fingerprint']}")
    return keyring


def bootstrap(name, root, mirror, log):
    """A minimal root with ca-certificates and sudo, nothing else, and a user who may use sudo."""
    system = SYSTEMS[name]
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        command = ["debootstrap", "--variant=minbase", f"--components={system['components']}",
                   "--include=ca-certificates,sudo"]
        if "fingerprint" in system:
            mirror = mirror or default_mirror(system)
            command.append(f"--keyring={trusted_key(system, mirror, pathlib.Path(folder))}")
        command += [system["suite"], root, *([mirror] if mirror else [])]
        command += [system["script"]] if "script" in system else []
        subprocess.run(command, check=True, stdout=log, stderr=log)
    mirror = (root / "etc/apt/sources.list").read_text().split()[1]
    suites = [system["suite"], *system["updates"]]
    components = system["components"].replace(",", " ")
    (root / "etc/apt/sources.list").write_text("".join(f"deb {mirror} {suite} {components}\n" for suite in suites))
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {os.uname().nodename}\n")
    subprocess.run(["chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER], check=True)
    (root / "etc/sudoers.d" / USER).write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")


def in_root(root, command, options, output):
    """Runs a line of shell as the user, in the root's copy of the repository. Its processes end with it."""
    enter = ('mount -t proc proc "$0/proc" && mkdir -p "$0/dev/shm" "$0/dev/pts" && mount -t tmpfs shm "$0/dev/shm" && '
             'mount -t devpts pts "$0/dev/pts" && exec chroot "$0" "$@"')
    passed = [f"{name}={os.environ[name]}" for name in options.env if name in os.environ]
    environment = ["env", "-i", f"HOME=/home/{USER}", f"USER={USER}", "PATH=/usr/local/bin:/usr/bin:/bin",
                   "LANG=C.UTF-8", *passed, *([f"JOBS={options.jobs}"] if options.jobs else [])]
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh",
                           "-c", enter, root, "runuser", "-u", USER, "--", *environment, "bash", "-c",
                           f"cd ~/jitconv && {command}"], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                          check=False).returncode


def copy_checkout(root):
    """A clone of HEAD without the means of git, which a bare system lacks: what `git archive` writes."""
    target = root / "home" / USER / "jitconv"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    archive = subprocess.Popen(["git", "-C", REPOSITORY, "archive", "HEAD"], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", target], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        sys.exit("git archive failed")
    subprocess.run(["chroot", root, "chown", "-R", f"{USER}:", f"/home/{USER}"], check=True)


def packages(root):
    """Installed packages, by name, with their size in KiB."""
    lines = subprocess.run(["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Installed-Size}\n"],
                           check=True, text=True, stdout=subprocess.PIPE).stdout.split("\n")
    return {name: int(size or 0) for name, size in (line.split(" ", 1) for line in lines if line)}


def fetched_mb(log):
    """What apt says it has fetched: package lists, packages to install, LLVM's package. Not what pip fetches."""
    scale = {"kB": 1e-3, "MB": 1, "GB": 1e3}
    return sum(float(number.replace(",", "")) * scale[unit]
               for number, unit in re.findall(r"^Fetched ([0-9.,]+) (kB|MB|GB) in ", log, re.M))


def folder_mb(path):
    out = subprocess.run(["du", "-sxk", path], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         check=False).stdout
    return round(int(out.split()[0]) / 1000) if out else 0


def try_system(name, options):
    root = options.folder / name
    if options.fresh:
        subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)
    if not (root / "etc/sudoers.d" / USER).exists():
        print(f"{name}: bootstrapping {root}", flush=True)
        with open(options.folder / f"{name}.bootstrap.log", "wb") as log:
            bootstrap(name, root, options.mirror.get(name), log)
    for path in ["/etc/resolv.conf", *options.copy]:
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, root / path.lstrip("/"))
    copy_checkout(root)
    before, result, fetched = packages(root), {"system": name, "steps": {}}, 0
    for step in options.steps:
        log = options.folder / f"{name}.{step}.log"
        print(f"{name}: {STEPS[step]}   (log: {log})", flush=True)
        start = time.monotonic()
        with open(log, "wb") as output:
            code = in_root(root, STEPS[step], options, output)
        result["steps"][step] = {"command": STEPS[step], "exit_code": code,
                                 "minutes": round((time.monotonic() - start) / 60, 1)}
        text = log.read_text(errors="replace")
        fetched += fetched_mb(text)
        if code != 0:
            print(f"{name}: failed with {code}\n{text[-3000:]}", flush=True)
            break
    after = packages(root)
    added = sorted(set(after) - set(before))
    result.update(ok=all(s["exit_code"] == 0 for s in result["steps"].values()), packages=added,
                  packages_mb=round(sum(after[p] for p in added) / 1000),
                  fetched_mb=round(fetched),
                  build_mb=folder_mb(root / "home" / USER / "jitconv/build"))
    return result


def table(results):
    lines = ["| system | step | result | minutes | packages added | their size | fetched by apt | build/ |",
             "|---|---|---|---|---|---|---|---|"]
    for one in results:
        rest = f"{len(one['packages'])} | {one['packages_mb']} MB | {one['fetched_mb']} MB | {one['build_mb']} MB |"
        for step, took in one["steps"].items():
            verdict = "ok" if took["exit_code"] == 0 else f"exit code {took['exit_code']}"
            lines.append(f"| {one['system']} | {step} | {verdict} | {took['minutes']} | {rest}")
            rest = "| | | |"
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this one; may be repeated")
    parser.add_argument("--steps", default=",".join(STEPS), help=f"in this order, default {','.join(STEPS)}")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/var/tmp/jitconv-systems"),
                        help="where the roots and the logs are (default %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="bootstrap anew even if there is a root")
    parser.add_argument("--mirror", action="append", default=[], metavar="SYSTEM=URL",
                        help="instead of debootstrap's default")
    parser.add_argument("--copy", action="append", default=[], metavar="FILE",
                        help="copy this file of the machine to the same path in the root, e.g. certificates or settings "
                             "of a proxy; may be repeated")
    parser.add_argument("--env", action="append", default=[], metavar="NAME",
                        help="pass this environment variable on; may be repeated")
    parser.add_argument("--jobs", type=int, help="JOBS of ./dev")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file, too")
    options = parser.parse_args()
    options.mirror = dict(one.split("=", 1) for one in options.mirror)
    options.steps = options.steps.split(",")
    for step in options.steps:
        if step not in STEPS:
            parser.error(f"--steps: '{step}' is none of {', '.join(STEPS)}")
    return options


def main():
    options = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("debootstrap and chroot need root")
    readme = (REPOSITORY / "README.md").read_text()
    for step in options.steps:
        if IN_README.get(step, "") not in readme:
            sys.exit(f"README.md no longer says '{IN_README[step]}': change STEPS of this script with it")
    options.folder.mkdir(parents=True, exist_ok=True)
    results = [try_system(name, options) for name in options.system or SYSTEMS]
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(one["ok"] for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
