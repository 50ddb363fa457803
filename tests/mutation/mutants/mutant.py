"""What one mutant is: an exact replacement of text in one file, and what its user would suffer.

Not here: the lists (the other files of this folder) and how they are run (../run.py).
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str  # from the repository's root
    old: str  # occurs exactly `count` times; every occurrence is replaced
    new: str
    harm: str  # what somebody would meet who used the result
    count: int = 1
    # Why the kernels' behaviour on a CPU cannot show it; empty where host execution has to kill it.
    host_blind: str = ""
    # Why no test of any layer kills it and none should; empty where a survivor is a hole in the tests.
    accepted: str = ""

    @property
    def area(self):
        """The part of the tree, which decides the test layers a mutant meets."""
        top = self.file.split("/")[0]
        return {"templates": "template", "codegen": "generator"}.get(top, top)


class File:
    """Collects the mutants of one file: mutants.append(file("name", old, new, harm))."""

    def __init__(self, path, prefix):
        self.path = path
        self.prefix = prefix

    def __call__(self, name, old, new, harm, **more):
        return Mutant(f"{self.prefix}_{name}", self.path, old, new, harm, **more)
