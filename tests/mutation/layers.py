"""The test layers a mutant meets: which programs, how they are called, which part of the tree they are for, and which of
their tests run first."""
import dataclasses
import fnmatch
import re


@dataclasses.dataclass(frozen=True)
class Program:
    target: str  # of the build, and the file's name
    folder: str  # below the build folder
    areas: tuple  # of the mutants it runs for
    arguments: tuple = ()
    seconds: int = 120  # a mutant that takes longer, and much longer than the unchanged tree, hangs
    in_steps: bool = False  # whether OWN_TESTS of the mutant's file run first


KERNELS = ("template", "generator")

# In each layer, programs run until one fails: the quick ones first.
LAYERS = {
    "unit": [
        Program("codegen_test", "tests/unit/codegen", KERNELS, in_steps=True),
        Program("cache_test", "tests/unit/cache", ("cache",)),
        Program("cache_fault_test", "tests/unit/cache", ("cache",)),
        Program("runtime_test", "tests/unit/runtime", ("runtime",)),
        Program("runtime_search_test", "tests/unit/runtime", ("runtime",)),
    ],
    "golden": [Program("golden_test", "tests/golden", KERNELS)],
    "nvrtc": [Program("nvrtc_test", "tests/nvrtc", KERNELS, ("--gtest_filter=*sm_90a*",), seconds=300)],
    "host": [
        Program("host_translation_test", "tests/host", ("host",)),
        Program("host_frontend_test", "tests/host", ("host",)),
        Program("host_engine_test", "tests/host/engine", ("host",)),
        Program("host_planted_test", "tests/host/planted", ("host",)),
        Program("host_quick_test", "tests/host/quick", (*KERNELS, "host", "runtime"), in_steps=True),
        Program("host_sector_test", "tests/host/suite", (*KERNELS, "host")),
        Program("conformance_test", "tests/conformance", ("template", "host")),
    ],
    "stress": [Program("cache_stress_test", "tests/stress", ("cache",))],
}


def programs_for(area, layer):
    return [program for program in LAYERS[layer] if area in program.areas]


# Which tests are most likely to notice a mutant of a file or name. Of several lines that fit, each is a step of its own:
# the tests of a feature, then short ones of the family, then all of the family.
OWN_TESTS = (
    ("joined", "*Joined*"),
    ("packed_rows|/pack_pixels/", "Packed*"),
    ("wgmma.*(pingpong|pair|grid|stages)", "*Pingpong*"),
    ("wgmma.*sliced_k", "*SlicedK*"),
    ("wgmma.*im2col", "Quick.WgmmaIm2col"),
    ("wgmma/.*box", "Quick.WgmmaBoxes:StridedGradient.*Boxes*"),
    ("wgmma/.*fold", "Quick.WgmmaFolded*"),
    ("wgmma/.*(planes|align|periods)", "Quick.*Planes"),
    ("wgmma/.*(weights|raw)|/pack_weights/", "QuickPackedWeights.*:Quick.WgmmaUnpackedWeights"),
    ("wgmma/.*(split|promote|emit_multiply)|device/(split|promote)", "QuickFp32Accuracy*"),
    ("f16_pairs|split_f16|split_rows|find_range|undo_scales", "F16Pairs*:QuickFp32Accuracy.OfF16Pairs*"),
    ("/transpose_input/", "Quick.WgmmaTransposedInput"),
    ("/gather_patches/", "Patches.*"),
    ("/wgmma/|device/fragments|staging",
     "Quick.WgmmaUnpackedWeights:Quick.WgmmaBoxes:Quick.WgmmaStoresPlanes:Quick.WgmmaChannelsOfNoWholeSlices"),
    ("/wgmma/|device/fragments|/transpose_input/|/pack_weights/", "*Wgmma*"),
    ("/wgmma_rows/", "*RowsOf*:*WgmmaRows*"),
    ("/bias_gradient/|emit_filters|wgrad_wgmma/(tiling|family|candidates)", "*Exchanged*"),
    ("/pointwise/|_planes|pack_pixels|problem", "*Pointwise*"),
    ("transposed_weights|multiply_transposed|/transpose_weights/", "*WgmmaTransposedWeights"),
    ("/direct/|device/copy_async|codegen/text/", "Quick.Direct*"),
    ("/direct/", "*Direct*"),
    ("/depthwise/", "Quick.Depthwise*:DepthwisePlan*"),
    ("/depthwise_nhwc/", "DepthwiseNhwc*"),
    ("/depthwise_planes/", "DepthwisePlanes*"),
    ("/fallback/", "*Fallback*"),
    ("/wgrad_wgmma/.*boxes", "*NhwcWeightGradient*"),
    ("/wgrad_wgmma/", "Gradients.*TensorCores*:*NhwcWeightGradient*"),
    ("/wgrad_depthwise/", "DepthwiseWeight*:Gradients.OfDepthwise*"),
    ("/wgrad/", "Gradients.OfWeightsByFma*:Gradients.OfEveryFamily"),
    ("/activation_gradient/", "ActivationGradient*"),
    ("/(reduce|wgrad|split_operands)", "*Gradients*:*Reduction*"),
    ("/(phases|transpose_weights|problem|text/phases)", "*StridedGradient*:*Phases*:*Problem*"),
    ("/epilogue", "*Epilogue*:*SpecialValues*"),
    ("/spec", "*Spec*"),
    ("/cost", "*Cost*"),
)


@dataclasses.dataclass(frozen=True)
class Tests:
    """Some tests of a program. Both lists are of shell patterns, as gtest's filters are."""
    wanted: tuple = ("*",)
    unwanted: tuple = ()

    @property
    def arguments(self):
        if self == Tests():
            return ()
        return (f"--gtest_filter={':'.join(self.wanted)}" + (f"-{':'.join(self.unwanted)}" if self.unwanted else ""),)

    def has(self, name):
        return (any(fnmatch.fnmatchcase(name, pattern) for pattern in self.wanted)
                and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.unwanted))


def steps_of(program, mutant):
    """The parts in which the program runs for the mutant: its own tests, then all others."""
    steps, done = [], ()
    for path, tests in OWN_TESTS if program.in_steps else ():
        if re.search(path, f"{mutant.file} {mutant.name}"):
            wanted = tuple(tests.split(":"))
            steps.append(Tests(wanted, done))
            done += wanted
    return [*steps, Tests(unwanted=done)]
