/*
 * jitconv's C interface: compile a convolution, ask about it, launch it. Plain C99, for ctypes and other languages.
 *
 * Every function that can fail returns a jitconv_status; jitconv_last_error() then says why, for the calling thread.
 * Structs start with their size, so that a program built against an older header keeps working: set struct_size to the
 * sizeof your compiler sees, and leave what you do not know zero. No C++ exception leaves this interface. All functions
 * may be called from any thread; a kernel may be launched by several at once.
 */
#ifndef JITCONV_JITCONV_H
#define JITCONV_JITCONV_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define JITCONV_C_API __attribute__((visibility("default")))
#else
#define JITCONV_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Numbers of ErrorCode in jitconv/error.h, and 0. */
typedef enum jitconv_status {
  JITCONV_OK = 0,
  JITCONV_INVALID_SPEC = 1,     /**< a field of the spec breaks a rule */
  JITCONV_INVALID_ARGUMENT = 2, /**< a launch or API argument breaks a rule */
  JITCONV_UNSUPPORTED = 3,      /**< a valid request this build or target cannot serve */
  JITCONV_COMPILE_FAILED = 4,   /**< the compiler rejected the generated source, or JITCONV_NO_COMPILE is set */
  JITCONV_COMPILER_MISSING = 5, /**< NVRTC, its builtins library or, for the host, a C++ compiler is not there */
  JITCONV_NO_DRIVER = 6,        /**< libcuda cannot be loaded or is a stub */
  JITCONV_NO_DEVICE = 7,        /**< the driver reports no usable device */
  JITCONV_CUDA = 8,             /**< a driver call failed */
  JITCONV_INTERNAL = 9,         /**< a bug in jitconv, or memory is exhausted */
  JITCONV_KERNEL_FAULT = 10     /**< host execution found the kernel breaking a rule */
} jitconv_status;

typedef enum jitconv_dtype { JITCONV_F32 = 0, JITCONV_F16 = 1, JITCONV_BF16 = 2 } jitconv_dtype;

typedef enum jitconv_layout { JITCONV_NCHW = 0, JITCONV_NHWC = 1 } jitconv_layout;

typedef enum jitconv_math { JITCONV_MATH_IEEE = 0, JITCONV_MATH_FP32 = 1, JITCONV_MATH_TF32 = 2 } jitconv_math;

typedef enum jitconv_activation {
  JITCONV_ACTIVATION_NONE = 0,
  JITCONV_RELU = 1,
  JITCONV_LEAKY_RELU = 2,
  JITCONV_GELU_ERF = 3,
  JITCONV_GELU_TANH = 4,
  JITCONV_SILU = 5,
  JITCONV_SIGMOID = 6,
  JITCONV_TANH = 7,
  JITCONV_HARDSWISH = 8,
  JITCONV_CLAMP = 9
} jitconv_activation;

/** One forward convolution; the fields are those of jitconv::ConvSpec in jitconv/spec.h. Fixed-width members, so that
 *  other languages can declare it without knowing a C compiler's enums. */
typedef struct jitconv_spec {
  uint32_t struct_size; /**< sizeof(jitconv_spec) */
  int32_t dtype;        /**< jitconv_dtype of every tensor */
  int64_t input[4];     /**< N, C, H, W */
  int64_t filter[4];    /**< K, C/groups, R, S */
  int64_t stride[2];    /**< vertical, horizontal */
  int64_t padding[4];   /**< top, bottom, left, right */
  int64_t dilation[2];
  int64_t groups;
  int32_t input_layout;  /**< jitconv_layout */
  int32_t output_layout; /**< jitconv_layout */
  int32_t math;          /**< jitconv_math */
  int32_t bias;          /**< 1: add bias[k] */
  int32_t residual;      /**< 1: add a tensor of the output's shape */
  int32_t activation;    /**< jitconv_activation */
  float slope;           /**< of leaky_relu */
  float clamp_min;       /**< of clamp */
  float clamp_max;       /**< of clamp */
  int32_t reserved;      /**< 0 */
  int64_t alignment;     /**< bytes every pointer of a launch is a multiple of */
} jitconv_spec;

/** Device pointers of one launch, or ordinary ones for a kernel on the host; see jitconv::LaunchArgs. */
typedef struct jitconv_launch_args {
  uint32_t struct_size; /**< sizeof(jitconv_launch_args) */
  uint32_t reserved;    /**< 0 */
  const void *x;
  const void *w;        /**< null if packed_w is given */
  const void *bias;     /**< null unless the spec has a bias */
  const void *residual; /**< null unless the spec has a residual; may be y */
  void *y;
  void *workspace; /**< jitconv_kernel_workspace_bytes() bytes, or null; of this launch alone while it runs; see
                      packed_w */
  /** What jitconv_kernel_pack_weights() wrote for this kernel, in place of w; the workspace then has
   *  jitconv_kernel_workspace_bytes_with_packed_weights() bytes. Null otherwise. */
  const void *packed_w;
} jitconv_launch_args;

/** What one GPU kernel uses; see jitconv::Resources, also for what is 0 on the host. */
typedef struct jitconv_resources {
  uint32_t struct_size; /**< sizeof(jitconv_resources) */
  int32_t registers;    /**< per thread */
  int32_t threads;      /**< per block */
  int32_t reserved;     /**< 0 */
  int64_t local_bytes;  /**< stack and spills per thread */
  int64_t shared_bytes; /**< per block */
} jitconv_resources;

/** Counters of this process; see jitconv::Statistics. */
typedef struct jitconv_stats {
  uint32_t struct_size; /**< sizeof(jitconv_stats) */
  uint32_t reserved;    /**< 0 */
  uint64_t memory_hits;
  uint64_t disk_hits;
  uint64_t disk_misses;
  uint64_t compilations;
  uint64_t disk_errors;
} jitconv_stats;

/** A compiled convolution; opaque. */
typedef struct jitconv_kernel jitconv_kernel;

/** "0.1.0". */
JITCONV_C_API const char *jitconv_version(void);

/** "invalid_spec" for JITCONV_INVALID_SPEC, and so on; "unknown" for any other number. */
JITCONV_C_API const char *jitconv_status_name(jitconv_status status);

/** Why the last call of this thread that failed did, with the compiler's log if there is one. Valid until the thread's
 *  next call of a function that returns a status. */
JITCONV_C_API const char *jitconv_last_error(void);

/** Sets struct_size to the given sizeof(jitconv_spec) and the rest to the defaults of jitconv::ConvSpec; input and
 *  filter stay to be filled in. */
JITCONV_C_API jitconv_status jitconv_spec_init(jitconv_spec *spec, size_t struct_size);

/** Reads `input=8,32,512,512 weight=64,32,5,9 padding=2,4 ...`, the form jitconv_kernel_spec() returns, into a spec
 *  whose struct_size is set. Fields the text does not name get their defaults. */
JITCONV_C_API jitconv_status jitconv_spec_parse(const char *text, jitconv_spec *spec);

/** N, K, P, Q of the output. Fails as jitconv_compile() does for a spec that cannot be computed. */
JITCONV_C_API jitconv_status jitconv_output_shape(const jitconv_spec *spec, int64_t shape[4]);

/** Compiles for `arch` ("sm_90a"), which needs no GPU, or, if `arch` is null, for the current device and loads the
 *  kernel there. "host" or "host-sm_90a" is code for that GPU which this machine's CPU runs and checks; it needs a C++
 *  compiler instead of NVRTC, see jitconv::Execution. `*kernel` is set to null on failure. */
JITCONV_C_API jitconv_status jitconv_compile(const jitconv_spec *spec, const char *arch, jitconv_kernel **kernel);

/** Releases the handle; null is allowed. */
JITCONV_C_API void jitconv_kernel_destroy(jitconv_kernel *kernel);

/** Enqueues the convolution on `stream` (a CUstream or cudaStream_t, null for the default stream). Asynchronous.
 *  On the host it returns when the convolution is done, and `stream` has to be null; JITCONV_KERNEL_FAULT lists in
 *  jitconv_last_error() which rules the kernel broke. */
JITCONV_C_API jitconv_status jitconv_kernel_launch(const jitconv_kernel *kernel, void *stream,
                                                   const jitconv_launch_args *args);

/** Enqueues on `stream` the packing that a launch with w begins with, so that launches with packed_w need not repeat
 *  it: for weights that many launches share. `packed_w` has jitconv_kernel_packed_weight_bytes() bytes and is a
 * multiple of 256. Its contents are for this kernel alone and not for storing, see jitconv::Kernel::pack_weights().
 *  JITCONV_UNSUPPORTED if the kernel takes w as it is. */
JITCONV_C_API jitconv_status jitconv_kernel_pack_weights(const jitconv_kernel *kernel, void *stream, const void *w,
                                                         void *packed_w);

/* Questions about a kernel. Texts and images are valid as long as the handle; a null handle gives null or 0. */

/** Of a launch with w. */
JITCONV_C_API int64_t jitconv_kernel_workspace_bytes(const jitconv_kernel *kernel);
/** Of a launch with packed_w. */
JITCONV_C_API int64_t jitconv_kernel_workspace_bytes_with_packed_weights(const jitconv_kernel *kernel);
/** 0 if the kernel takes w as it is; a launch then refuses packed_w. */
JITCONV_C_API int64_t jitconv_kernel_packed_weight_bytes(const jitconv_kernel *kernel);
JITCONV_C_API jitconv_status jitconv_kernel_output_shape(const jitconv_kernel *kernel, int64_t shape[4]);
JITCONV_C_API const char *jitconv_kernel_spec(const jitconv_kernel *kernel);
JITCONV_C_API const char *jitconv_kernel_source(const jitconv_kernel *kernel);
JITCONV_C_API const char *jitconv_kernel_plan(const jitconv_kernel *kernel);
JITCONV_C_API const char *jitconv_kernel_explain(const jitconv_kernel *kernel);
JITCONV_C_API const char *jitconv_kernel_cache_key(const jitconv_kernel *kernel);
JITCONV_C_API const char *jitconv_kernel_compile_log(const jitconv_kernel *kernel);
/** The cubin, or the shared object on the host; its size goes to `*bytes`. */
JITCONV_C_API const void *jitconv_kernel_image(const jitconv_kernel *kernel, size_t *bytes);
/** GPU kernels of one launch. */
JITCONV_C_API size_t jitconv_kernel_entry_count(const jitconv_kernel *kernel);
/** Resources of one of them. Set resources->struct_size before the call. */
JITCONV_C_API jitconv_status jitconv_kernel_resources(const jitconv_kernel *kernel, size_t entry,
                                                      jitconv_resources *resources);

/** Set statistics->struct_size before the call. */
JITCONV_C_API jitconv_status jitconv_statistics(jitconv_stats *statistics);

#ifdef __cplusplus
}
#endif

#endif /* JITCONV_JITCONV_H */
