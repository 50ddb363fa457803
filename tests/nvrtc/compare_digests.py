#!/usr/bin/env python3
"""Compares two outputs of kernel_digests: which plans launch, say and compile to the same. Exits with 1 if a launch or
machine code differs, so that a change of text alone passes.
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


def without_text(kernels: list[Kernel]) -> list[Kernel]:
    return [kernel[:2] + kernel[3:] for kernel in kernels]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    arguments = parser.parse_args()
    before, after = read(arguments.before), read(arguments.after)
    only_one = sorted(set(before) ^ set(after))
    both = [plan for plan in before if plan in after]
    different = [plan for plan in both if without_text(before[plan]) != without_text(after[plan])]
    same_text = sum(before[plan] == after[plan] for plan in both)
    print(f"{len(both)} plans in both, {sum(len(before[plan]) for plan in both)} kernels: {same_text} plans have the same "
          f"text, {len(both) - same_text - len(different)} another text and the same launches and machine code, "
          f"{len(different)} differ; {len(only_one)} in one only")
    for plan in different:
        print(*plan, sep="\t")
        for kernel_before, kernel_after in zip(before[plan], after[plan]):
            if kernel_before[:2] + kernel_before[3:] != kernel_after[:2] + kernel_after[3:]:
                print("  before", *kernel_before, sep="\t")
                print("  after", *kernel_after, sep="\t")
    return 1 if different or only_one else 0


if __name__ == "__main__":
    sys.exit(main())
