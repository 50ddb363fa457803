#!/usr/bin/env python3
"""y = relu(conv(x, w) + b) in TF32 through jitconv's C interface with ctypes: compiled, run, checked and timed.

    python3 examples/convolve.py --library build/release/runtime/libjitconv.so         # on the GPU of this machine
    python3 examples/convolve.py --library build/release/runtime/libjitconv.so host    # on the CPU, a smaller image

Needs nothing but Python and, for the GPU, its driver. A PyTorch program passes `tensor.data_ptr()` where copy_of() is
used here, and `torch.cuda.current_stream().cuda_stream` as the stream.
"""

import argparse
import array
import ctypes
import math
import random
import sys
import time

ABI_VERSION = 1  # JITCONV_ABI_VERSION of the header that the structs below were written for
IEEE, FP32, TF32 = range(3)  # jitconv_math
RELU = 1  # of jitconv_activation
SAMPLES = 100


class Spec(ctypes.Structure):
    """jitconv_spec."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("dtype", ctypes.c_int32),
        ("input", ctypes.c_int64 * 4),
        ("weight", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 2),
        ("padding", ctypes.c_int64 * 4),
        ("dilation", ctypes.c_int64 * 2),
        ("groups", ctypes.c_int64),
        ("input_layout", ctypes.c_int32),
        ("output_layout", ctypes.c_int32),
        ("math", ctypes.c_int32),
        ("bias", ctypes.c_int32),
        ("residual", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("slope", ctypes.c_float),
        ("clamp_min", ctypes.c_float),
        ("clamp_max", ctypes.c_float),
        ("operation", ctypes.c_int32),
        ("alignment", ctypes.c_int64),
        ("output_dtype", ctypes.c_int32),
        ("dy_activation", ctypes.c_int32),
    ]


class LaunchArgs(ctypes.Structure):
    """jitconv_launch_args."""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)] + [
        (name, ctypes.c_void_p) for name in ("x", "w", "bias", "residual", "y", "workspace", "packed_w")
    ]


class JitconvError(RuntimeError):
    """A call failed; `status` is its jitconv_status."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Jitconv:
    """The functions of libjitconv.so that this program uses; those that can fail raise JitconvError."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        if self.library.jitconv_abi_version() != ABI_VERSION:
            raise RuntimeError(f"{path} has another version of the C interface than this program")
        self.library.jitconv_last_error.restype = ctypes.c_char_p
        spec, kernel = ctypes.POINTER(Spec), ctypes.c_void_p
        self.spec_init = self.checked("spec_init", spec, ctypes.c_size_t)
        self.output_shape = self.checked("output_shape", spec, ctypes.c_int64 * 4)
        self.compile = self.checked("compile", spec, ctypes.c_char_p, ctypes.POINTER(kernel))
        self.launch = self.checked("kernel_launch", kernel, ctypes.c_void_p, ctypes.POINTER(LaunchArgs))
        self.workspace_bytes = self.library.jitconv_kernel_workspace_bytes
        self.workspace_bytes.argtypes, self.workspace_bytes.restype = [kernel], ctypes.c_int64
        self.explain = self.library.jitconv_kernel_explain
        self.explain.argtypes, self.explain.restype = [kernel], ctypes.c_char_p
        self.destroy = self.library.jitconv_kernel_destroy
        self.destroy.argtypes, self.destroy.restype = [kernel], None

    def checked(self, name, *argtypes):
        def check(status, _function, arguments):
            if status != 0:
                raise JitconvError(status, self.library.jitconv_last_error().decode())
            return arguments

        function = getattr(self.library, "jitconv_" + name)
        function.argtypes, function.errcheck = argtypes, check
        return function


class HostMemory:
    """Device memory and a timer for the host target: the process's own."""

    def __init__(self):
        self.arrays = []  # what launches use must stay alive

    def copy_of(self, values):
        self.arrays.append(array.array("f", values))
        return self.arrays[-1].buffer_info()[0]

    def allocate(self, size):
        if size == 0:
            return None
        self.arrays.append(ctypes.create_string_buffer(size + 256))
        return (ctypes.addressof(self.arrays[-1]) + 255) // 256 * 256

    def download(self, address, count):
        return array.array("f", ctypes.string_at(address, 4 * count))

    def milliseconds(self, work):
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3


class GpuMemory:
    """Device memory and a timer of device 0, through the CUDA driver's functions. The end of the process frees both."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'failed').decode()}")

    def copy_of(self, values):
        address = self.allocate(4 * len(values))
        source = ctypes.c_void_p(values.buffer_info()[0])
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(4 * len(values)))
        return address

    def allocate(self, size):
        if size == 0:
            return None
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def download(self, address, count):
        values = array.array("f", bytes(4 * count))
        target = ctypes.c_void_p(values.buffer_info()[0])
        self.call("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(4 * count))
        return values

    def milliseconds(self, work):
        begin, end, ms = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
        for event in (begin, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.call("cuEventRecord", begin, None)
        work()
        self.call("cuEventRecord", end, None)
        self.call("cuEventSynchronize", end)
        self.call("cuEventElapsedTime", ctypes.byref(ms), begin, end)
        return ms.value


def random_values(count):
    """`count` random numbers from -1 to 1, in blocks that repeat: drawing all of them would take Python long."""
    block = array.array("f", (random.uniform(-1, 1) for _ in range(min(count, 1_000_003))))
    return (block * math.ceil(count / len(block)))[:count]


def reference(spec, x, w, b, at):
    """Output `at` before the activation, in double, and the sum of the magnitudes of its terms. The spec has stride 1,
    one group and NCHW tensors."""
    n, k, p, q = at
    _, channels, height, width = spec.input
    terms = [b[k]]
    for c in range(channels):
        for r in range(spec.weight[2]):
            for s in range(spec.weight[3]):
                row = p - spec.padding[0] + r * spec.dilation[0]
                column = q - spec.padding[2] + s * spec.dilation[1]
                if 0 <= row < height and 0 <= column < width:
                    weight = w[((k * channels + c) * spec.weight[2] + r) * spec.weight[3] + s]
                    terms.append(x[((n * channels + c) * height + row) * width + column] * weight)
    return sum(terms), sum(abs(term) for term in terms)


def wrong_outputs(spec, x, w, b, y, shape):
    """How many sampled outputs are further from the reference than TF32 can explain: docs/accuracy.md has the bound."""
    relative_bound = 1.01 * (2**-10 + (math.prod(spec.weight[1:]) + 2) * 2**-22)
    wrong = 0
    for _ in range(SAMPLES):
        index, at = random.randrange(len(y)), []
        rest = index
        for extent in reversed(shape):
            rest, coordinate = divmod(rest, extent)
            at.insert(0, coordinate)
        right, magnitude = reference(spec, x, w, b, at)
        if not abs(max(right, 0) - y[index]) <= relative_bound * magnitude:  # a NaN is wrong, too
            wrong += 1
    return wrong


def convolve(jitconv, on_host):
    spec = Spec()
    jitconv.spec_init(spec, ctypes.sizeof(spec))
    spec.input[:] = (1, 32, 8, 32) if on_host else (8, 32, 512, 512)  # N, C, H, W
    spec.weight[:] = 64, 32, 5, 9  # K, C/groups, R, S
    spec.padding[:] = 4, 4, 12, 12  # top, bottom, left, right: y is as large as x
    spec.dilation[:] = 2, 3
    spec.math = TF32  # operands are rounded to TF32; the default, fp32, is as accurate as FMA
    spec.bias, spec.activation = 1, RELU

    kernel = ctypes.c_void_p()
    jitconv.compile(spec, b"host" if on_host else None, ctypes.byref(kernel))  # None: the GPU of this machine

    random.seed(1)
    memory = HostMemory() if on_host else GpuMemory()
    shape = (ctypes.c_int64 * 4)()
    jitconv.output_shape(spec, shape)
    x, w, b = (random_values(count) for count in (math.prod(spec.input), math.prod(spec.weight), spec.weight[0]))
    args = LaunchArgs(
        struct_size=ctypes.sizeof(LaunchArgs),
        x=memory.copy_of(x),
        w=memory.copy_of(w),
        bias=memory.copy_of(b),
        y=memory.allocate(4 * math.prod(shape)),
        workspace=memory.allocate(jitconv.workspace_bytes(kernel)),
    )

    jitconv.launch(kernel, None, args)  # asynchronous, on the default stream
    wrong = wrong_outputs(spec, x, w, b, memory.download(args.y, math.prod(shape)), shape)

    launches = 1 if on_host else 20
    ms = memory.milliseconds(lambda: [jitconv.launch(kernel, None, args) for _ in range(launches)]) / launches
    flop = 2 * math.prod(shape) * math.prod(spec.weight[1:])
    print(f"{jitconv.explain(kernel).decode()}{ms:.3f} ms, {flop / ms * 1e-9:.4g} TFLOP/s, "
          f"{wrong} of {SAMPLES} sampled outputs wrong")
    jitconv.destroy(kernel)
    return 0 if wrong == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libjitconv.so", help="path of libjitconv.so")
    parser.add_argument("device", nargs="?", choices=("gpu", "host"), default="gpu")
    arguments = parser.parse_args()
    try:
        return convolve(Jitconv(arguments.library), arguments.device == "host")
    except JitconvError as error:
        print(error, file=sys.stderr)
        return error.status
    except (OSError, RuntimeError) as error:  # a library is missing, or a call of the driver failed
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
