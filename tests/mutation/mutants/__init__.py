"""All mutants, in the order they are run: what is quick to build first."""
from mutants import cache, depthwise, direct, fallback, generator, host, runtime, tensor

MUTANTS = [
    mutant for part in (cache, runtime, host, direct, depthwise, fallback, tensor, generator) for mutant in part.MUTANTS
]
