#!/usr/bin/env python3
"""Compares two outputs of kernel_digests: which plans launch, say and compile to the same, names and comments apart.
Exits with 1 if a launch differs, or machine code of a text that differs. NVRTC 13.0 sometimes compiles one text to two
machine codes, so those are only counted.
"""

import argparse
import collections
import sys

Plan = tuple[str, str, str]  # convolution, architecture, candidate
Kernel = list[str]  # number, launch, text, code, constants, registers


def read(path: str) -> dict[Plan, list[Kernel]]:
    plans: dict[Plan, list[Kernel]] = collections.defaultdict(list)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, arch, candidate, *kernel = line.rstrip("\n").split("\t")
            plans[name, arch, candidate].append(kernel)
    return dict(plans)


def differs(before: list[Kernel], after: list[Kernel]) -> bool:
    """Whether a launch differs, or the machine code of another text."""
    if len(before) != len(after):
        return True
    return any(a[:2] != b[:2] or (a[2] != b[2] and a[3:] != b[3:]) for a, b in zip(before, after))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    arguments = parser.parse_args()
    before, after = read(arguments.before), read(arguments.after)
    only_one = sorted(set(before) ^ set(after))
    both = [plan for plan in before if plan in after]
    different = [plan for plan in both if differs(before[plan], after[plan])]
    same_text = [plan for plan in both if [k[2:3] for k in before[plan]] == [k[2:3] for k in after[plan]]]
    other_code = [plan for plan in same_text if before[plan] != after[plan] and plan not in different]
    print(f"{len(both)} plans in both, {sum(len(before[plan]) for plan in both)} kernels: {len(same_text)} plans have the "
          f"same text ({len(other_code)} of them compiled to other machine code), {len(different)} differ in launches or "
          f"in machine code of another text; {len(only_one)} in one only")
    for plan in different:
        print(*plan, sep="\t")
        for kernel_before, kernel_after in zip(before[plan], after[plan]):
            if kernel_before != kernel_after:
                print("  before", *kernel_before, sep="\t")
                print("  after", *kernel_after, sep="\t")
    return 1 if different or only_one else 0


if __name__ == "__main__":
    sys.exit(main())
