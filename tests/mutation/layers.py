"""The test layers a mutant meets: which programs, how they are called, and which part of the tree they are for."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Program:
    target: str  # of the build, and the file's name
    folder: str  # below the build folder
    areas: tuple  # of the mutants it runs for
    arguments: tuple = ()
    seconds: int = 120  # a mutant that takes longer hangs


KERNELS = ("template", "generator")

# In each layer, programs run until one fails: the quick ones first.
LAYERS = {
    "unit": [
        Program("codegen_test", "tests/unit/codegen", KERNELS, seconds=600),
        Program("cache_test", "tests/unit/cache", ("cache",)),
        Program("cache_fault_test", "tests/unit/cache", ("cache",)),
        Program("runtime_test", "tests/unit/runtime", ("runtime",)),
        Program("runtime_search_test", "tests/unit/runtime", ("runtime",)),
    ],
    "golden": [Program("golden_test", "tests/golden", KERNELS)],
    "nvrtc": [Program("nvrtc_test", "tests/nvrtc", KERNELS, ("--gtest_filter=*sm_90a*",), seconds=300)],
    "host": [
        Program("host_frontend_test", "tests/host", ("host",)),
        Program("host_engine_test", "tests/host/engine", ("host",)),
        Program("host_planted_test", "tests/host/planted", ("host",)),
        Program("host_quick_test", "tests/host/quick", (*KERNELS, "host", "runtime"), seconds=300),
        Program("host_sector_test", "tests/host/suite", (*KERNELS, "host")),
        Program("conformance_test", "tests/conformance", ("template", "host")),
    ],
    "stress": [Program("cache_stress_test", "tests/stress", ("cache",))],
}


def programs_for(area, layer):
    return [program for program in LAYERS[layer] if area in program.areas]
