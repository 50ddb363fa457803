"""All mutants, in the order they are run: what is quick to build first."""
from mutants import cache, depthwise, direct, fallback, generator, host, runtime, wgmma

MUTANTS = [
    mutant for part in (cache, runtime, host, direct, depthwise, fallback, wgmma, generator) for mutant in part.MUTANTS
]
