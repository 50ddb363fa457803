"""libjitconv.so through its C interface (include/jitconv/jitconv.h), on PyTorch's current stream.

Used by bench/compare_pytorch.py. Not a binding: it has what a comparison needs.
"""

import ctypes

try:
    import torch
except ImportError:  # scripts that use this module say so themselves
    torch = None


ABI_VERSION = 1  # JITCONV_ABI_VERSION of the header that the structs below were written for


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
        (name, ctypes.c_void_p) for name in ("x", "w", "bias", "residual", "y", "workspace", "packed_w", "dy", "dx", "dw", "db", "saved")
    ]


class Library:
    """libjitconv.so."""

    def __init__(self, path):
        lib = ctypes.CDLL(path)
        self.lib = lib
        self.prepared = []
        if lib.jitconv_abi_version() != ABI_VERSION:
            raise RuntimeError(f"{path} has another version of the C interface than this module")
        lib.jitconv_version.restype = ctypes.c_char_p
        lib.jitconv_last_error.restype = ctypes.c_char_p
        lib.jitconv_spec_init.argtypes = [ctypes.POINTER(Spec), ctypes.c_size_t]
        lib.jitconv_spec_parse.argtypes = [ctypes.c_char_p, ctypes.POINTER(Spec)]
        lib.jitconv_output_shape.argtypes = [ctypes.POINTER(Spec), ctypes.c_int64 * 4]
        lib.jitconv_compile.argtypes = [ctypes.POINTER(Spec), ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
        lib.jitconv_prepare.argtypes = [ctypes.POINTER(Spec), ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p,
                                        ctypes.POINTER(ctypes.c_void_p)]
        lib.jitconv_kernel_destroy.argtypes = [ctypes.c_void_p]
        lib.jitconv_kernel_destroy.restype = None
        lib.jitconv_kernel_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(LaunchArgs)]
        lib.jitconv_kernel_workspace_bytes.argtypes = [ctypes.c_void_p]
        lib.jitconv_kernel_workspace_bytes.restype = ctypes.c_int64
        lib.jitconv_kernel_packed_weight_bytes.argtypes = [ctypes.c_void_p]
        lib.jitconv_kernel_packed_weight_bytes.restype = ctypes.c_int64
        lib.jitconv_kernel_pack_weights.argtypes = [ctypes.c_void_p] * 4
        lib.jitconv_kernel_explain.argtypes = [ctypes.c_void_p]
        lib.jitconv_kernel_explain.restype = ctypes.c_char_p

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.jitconv_last_error().decode())

    def parse(self, text):
        spec = Spec()
        self.check(self.lib.jitconv_spec_init(ctypes.byref(spec), ctypes.sizeof(spec)))
        self.check(self.lib.jitconv_spec_parse(text.encode(), ctypes.byref(spec)))
        return spec

    def prepare(self, specs):
        """Compiles all specs at once, in threads, and keeps their kernels: Kernel() then finds them in memory. A spec
        that fails keeps none of them, and Kernel() names it."""
        kernels = (ctypes.c_void_p * len(specs))()
        if self.lib.jitconv_prepare((Spec * len(specs))(*specs), len(specs), None, None, kernels) == 0:
            self.prepared.extend(kernels)

    def output_shape(self, spec):
        shape = (ctypes.c_int64 * 4)()
        self.check(self.lib.jitconv_output_shape(ctypes.byref(spec), shape))
        return tuple(shape)


class Kernel:
    """A compiled operation and the arguments of its launches: tensors by the names of jitconv_launch_args."""

    def __init__(self, library, spec, **tensors):
        self.library = library
        self.handle = ctypes.c_void_p()
        library.check(library.lib.jitconv_compile(ctypes.byref(spec), None, ctypes.byref(self.handle)))
        size = library.lib.jitconv_kernel_workspace_bytes(self.handle)
        self.workspace = torch.empty(size, dtype=torch.uint8, device="cuda") if size > 0 else None
        self.args = LaunchArgs(struct_size=ctypes.sizeof(LaunchArgs))
        for name, tensor in (*tensors.items(), ("workspace", self.workspace)):
            setattr(self.args, name, tensor.data_ptr() if tensor is not None else None)
        size = library.lib.jitconv_kernel_packed_weight_bytes(self.handle)
        self.packed = torch.empty(size, dtype=torch.uint8, device="cuda") if size > 0 else None
        self.packed_args = LaunchArgs.from_buffer_copy(self.args)
        if self.packed is not None:
            stream = torch.cuda.current_stream().cuda_stream
            library.check(library.lib.jitconv_kernel_pack_weights(self.handle, stream, self.args.w,
                                                                  self.packed.data_ptr()))
            self.packed_args.w, self.packed_args.packed_w = None, self.packed.data_ptr()

    def launch(self, args=None):
        stream = torch.cuda.current_stream().cuda_stream
        args = ctypes.byref(self.args if args is None else args)
        self.library.check(self.library.lib.jitconv_kernel_launch(self.handle, stream, args))

    def launch_packed(self):
        """With weights that were packed once, as cuDNN's channels_last weights were arranged once."""
        self.launch(self.packed_args)

    def family(self):
        text = self.library.lib.jitconv_kernel_explain(self.handle).decode()
        return text.splitlines()[0].removeprefix("family: ")

    def close(self):
        self.library.lib.jitconv_kernel_destroy(self.handle)
        self.handle = ctypes.c_void_p()
