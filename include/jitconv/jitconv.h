/*
 * jitconv's C interface: compile a convolution, ask about it, launch it. Plain C99, for ctypes and other languages.
 *
 * Every function that can fail returns a jitconv_status. jitconv_last_error() then says why, for the calling thread.
 * No C++ exception leaves this interface. All functions may be called from any thread; several threads may launch one
 * kernel at the same time.
 *
 * Structs start with their size, so that a program works with an older or a newer library: set struct_size to the
 * sizeof that your compiler sees, and set fields that you do not use to zero. New fields are appended, and zero means
 * the default of each. So the library accepts the smaller struct_size of an older header and takes the missing fields
 * for zero. When it reads a struct, fields that it does not know must be zero; when it writes one, it sets them to
 * zero. JITCONV_INVALID_ARGUMENT if struct_size is less than the size of the struct's first version or more than
 * JITCONV_MAX_STRUCT_SIZE. docs/abi.md says what stays compatible.
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

/** The version of this binary interface. It grows when a function or struct changes in a way that breaks programs built
 *  before, and not when something is added. */
#define JITCONV_ABI_VERSION 1

/** The most bytes that a struct of this interface has, in this version or a later one. A larger struct_size is a
 * mistake, such as a struct that is not initialised. */
#define JITCONV_MAX_STRUCT_SIZE 1024

/** What went wrong, or 0. The numbers equal those of jitconv::ErrorCode in jitconv/error.h. */
typedef enum jitconv_status {
  JITCONV_OK = 0,               /**< success */
  JITCONV_INVALID_SPEC = 1,     /**< a field of the spec breaks a rule */
  JITCONV_INVALID_ARGUMENT = 2, /**< a launch or API argument breaks a rule */
  JITCONV_UNSUPPORTED = 3,      /**< a valid request that this build or target cannot serve */
  JITCONV_COMPILE_FAILED = 4,   /**< the compiler rejected the generated source, or JITCONV_NO_COMPILE is set */
  JITCONV_COMPILER_MISSING = 5, /**< NVRTC, its builtins library or, for the host, a C++ compiler is missing */
  JITCONV_NO_DRIVER = 6,        /**< libcuda cannot be loaded or is a stub */
  JITCONV_NO_DEVICE = 7,        /**< the driver reports no usable device */
  JITCONV_CUDA = 8,             /**< a driver call failed */
  JITCONV_INTERNAL = 9,         /**< a bug in jitconv, or memory is exhausted */
  JITCONV_KERNEL_FAULT = 10     /**< host execution found that the kernel breaks a rule */
} jitconv_status;

/** What is computed of a convolution; jitconv::Operation in jitconv/spec.h has the formulas. */
typedef enum jitconv_operation {
  JITCONV_FORWARD = 0,
  JITCONV_DATA_GRADIENT = 1,
  JITCONV_WEIGHT_GRADIENT = 2
} jitconv_operation;

/** The element type of every tensor, unless output_dtype names another for the result and residual. */
typedef enum jitconv_dtype { JITCONV_F32 = 0, JITCONV_F16 = 1, JITCONV_BF16 = 2 } jitconv_dtype;

/** The element type of the operation's result and of residual. The numbers are not those of jitconv_dtype: 0 is the
 *  default. There are kernels for the type of the other tensors and, for a weight gradient, whose dw, db and residual
 *  have this type, also for f32. jitconv_compile() answers JITCONV_UNSUPPORTED for others. */
typedef enum jitconv_output_dtype {
  JITCONV_OUTPUT_SAME = 0, /**< that of the other tensors */
  JITCONV_OUTPUT_F32 = 1,
  JITCONV_OUTPUT_F16 = 2,
  JITCONV_OUTPUT_BF16 = 3
} jitconv_output_dtype;

/** The memory order of x, y and residual; the last letter is contiguous. Filters are always K, C/groups, R, S. */
typedef enum jitconv_layout { JITCONV_NCHW = 0, JITCONV_NHWC = 1 } jitconv_layout;

/** The accuracy that a kernel promises; see docs/accuracy.md. */
typedef enum jitconv_math {
  JITCONV_MATH_IEEE = 0,
  JITCONV_MATH_FP32 = 1,
  JITCONV_MATH_TF32 = 2,
  JITCONV_MATH_FP16X3 = 3
} jitconv_math;

/** The last step of the epilogue; jitconv::Activation in jitconv/spec.h has the formulas. */
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

/** One convolution, with the fields of jitconv::ConvSpec in jitconv/spec.h. Members have fixed widths, so that
 *  other languages can declare the struct without knowing the size of a C compiler's enums. */
typedef struct jitconv_spec {
  uint32_t struct_size;  /**< sizeof(jitconv_spec) */
  int32_t dtype;         /**< jitconv_dtype */
  int64_t input[4];      /**< N, C, H, W */
  int64_t weight[4];     /**< K, C/groups, R, S */
  int64_t stride[2];     /**< vertical, horizontal */
  int64_t padding[4];    /**< top, bottom, left, right */
  int64_t dilation[2];   /**< vertical, horizontal */
  int64_t groups;        /**< divides C and K */
  int32_t input_layout;  /**< jitconv_layout */
  int32_t output_layout; /**< jitconv_layout */
  int32_t math;          /**< jitconv_math */
  int32_t bias;          /**< 1: add a bias; of a weight gradient: compute db */
  int32_t residual;      /**< 1: add a tensor of the result's shape */
  int32_t activation;    /**< jitconv_activation */
  float slope;           /**< used by JITCONV_LEAKY_RELU */
  float clamp_min;       /**< used by JITCONV_CLAMP */
  float clamp_max;       /**< used by JITCONV_CLAMP */
  int32_t operation;     /**< jitconv_operation; input, weight and output are always the forward convolution's */
  int64_t alignment;     /**< every tensor's pointer is a multiple of this many bytes */
  int32_t output_dtype;  /**< jitconv_output_dtype */
  /** jitconv_activation: of gradients, the activation by whose derivative dy is multiplied first, from `saved` of the
   *  launch. It shares slope, clamp_min and clamp_max with `activation`. */
  int32_t dy_activation;
} jitconv_spec;

/** Options that change neither the plan nor the results, as jitconv::CompileOptions. */
typedef struct jitconv_compile_options {
  uint32_t struct_size; /**< sizeof(jitconv_compile_options) */
  int32_t line_info;    /**< 1: pass -lineinfo, for profilers */
  int32_t counters;     /**< 1: count memory requests and FMAs while the kernel runs; on the host only */
  int32_t reserved;     /**< 0 */
} jitconv_compile_options;

/** How jitconv_tune() works, as jitconv::TuneOptions. */
typedef struct jitconv_tune_options {
  uint32_t struct_size;                   /**< sizeof(jitconv_tune_options) */
  int32_t candidates;                     /**< at most so many are measured; 0: the default, 8 */
  const jitconv_compile_options *compile; /**< null for the defaults */
  int32_t launches;                       /**< timed launches of each; 0: the default, 15 */
  int32_t again;                          /**< 1: measure even if a choice is remembered */
} jitconv_tune_options;

/** Where a kernel came from, as jitconv::Origin. */
typedef enum jitconv_origin {
  JITCONV_FROM_MEMORY = 0,   /**< it was in memory, or an equal spec was being compiled */
  JITCONV_FROM_DISK = 1,     /**< its image was in the disk cache */
  JITCONV_FROM_COMPILER = 2, /**< it was generated and compiled now */
  JITCONV_NO_KERNEL = 3      /**< there is none: jitconv_prepare() will fail */
} jitconv_origin;

/** What jitconv_prepare() says each time it is done with a spec. Fields behind struct_size bytes do not exist: the
 *  library may be older than the header. */
typedef struct jitconv_progress {
  uint32_t struct_size; /**< the library's sizeof(jitconv_progress) */
  int32_t origin;       /**< jitconv_origin of this spec's kernel */
  uint64_t done;        /**< specs that are finished, this one included */
  uint64_t total;       /**< specs of the call */
  uint64_t index;       /**< of this spec, from 0 */
} jitconv_progress;

/** Called by jitconv_prepare(). `progress` is valid until it returns. */
typedef void (*jitconv_progress_callback)(const jitconv_progress *progress, void *user_data);

/** How jitconv_prepare() works, as jitconv::PrepareOptions. */
typedef struct jitconv_prepare_options {
  uint32_t struct_size;                   /**< sizeof(jitconv_prepare_options) */
  int32_t threads;                        /**< specs that are compiled at a time; 0: as many as there are cores */
  const jitconv_compile_options *compile; /**< of every spec; null for the defaults */
  /** Called once for each spec, in the order in which they are finished, by the thread that called jitconv_prepare().
   *  May be null. Must return: it may neither throw nor longjmp. */
  jitconv_progress_callback progress;
  void *user_data; /**< passed to `progress` */
} jitconv_prepare_options;

/** The pointers of one launch: to device memory, or to ordinary memory for a kernel on the host. Shapes, layouts and
 *  rules are those of jitconv::LaunchArgs. */
typedef struct jitconv_launch_args {
  uint32_t struct_size; /**< sizeof(jitconv_launch_args) */
  uint32_t reserved;    /**< 0 */
  const void *x;        /**< N, C, H, W in input_layout */
  const void *w;        /**< K, C/groups, R, S; null if packed_w is given */
  const void *bias;     /**< K elements (C of a data gradient); null unless the spec has a bias */
  const void *residual; /**< as the result, which it may be; null unless the spec has a residual */
  void *y;              /**< N, K, P, Q in output_layout */
  /** jitconv_kernel_workspace_bytes() bytes at a multiple of 256, which no other launch uses at the same time; may be
   *  null if that is 0. */
  void *workspace;
  /** What jitconv_kernel_pack_weights() wrote for this kernel, in place of w, or null. With it the workspace has
   *  jitconv_kernel_workspace_bytes_with_packed_weights() bytes. */
  const void *packed_w;
  const void *dy; /**< of gradients: N, K, P, Q in output_layout */
  void *dx;       /**< the data gradient's result: N, C, H, W in input_layout */
  void *dw;       /**< the weight gradient's result: K, C/groups, R, S, of the output type */
  void *db;       /**< its second result if the spec has a bias: K elements of the output type */
  /** As dy: what the derivative of the spec's dy_activation is computed from, the forward result y of relu, leaky_relu
   *  and clamp, what they were applied to of the others; null unless the spec has a dy_activation. */
  const void *saved;
} jitconv_launch_args;

/** What one GPU kernel uses. On the host registers and local_bytes are 0. */
typedef struct jitconv_resources {
  uint32_t struct_size; /**< sizeof(jitconv_resources) */
  int32_t registers;    /**< per thread */
  int32_t threads;      /**< per block */
  int32_t reserved;     /**< 0 */
  int64_t local_bytes;  /**< stack and spills per thread */
  int64_t shared_bytes; /**< per block */
} jitconv_resources;

/** Counters of this process, as in jitconv::Statistics. */
typedef struct jitconv_stats {
  uint32_t struct_size;  /**< sizeof(jitconv_stats) */
  uint32_t reserved;     /**< 0 */
  uint64_t memory_hits;  /**< compilations that found the kernel in memory, or waited for another thread */
  uint64_t disk_hits;    /**< images read from the disk cache */
  uint64_t disk_misses;  /**< look-ups in the disk cache without a result */
  uint64_t compilations; /**< calls of NVRTC or the C++ compiler, including those that failed */
  uint64_t disk_errors;  /**< cache files that were damaged, or could not be read or written */
  uint64_t kernels;      /**< kernels in memory now */
} jitconv_stats;

/** A compiled convolution. Opaque. */
typedef struct jitconv_kernel jitconv_kernel;

/** The JITCONV_ABI_VERSION of the library. A program that opens the library by name, with dlopen or ctypes, compares it
 *  with the one that it was written for before it calls anything else. */
JITCONV_C_API int32_t jitconv_abi_version(void);

/** The library's version, "0.1.0". */
JITCONV_C_API const char *jitconv_version(void);

/** The name of a status: "invalid_spec" for JITCONV_INVALID_SPEC, and so on; "unknown" for any other number. */
JITCONV_C_API const char *jitconv_status_name(jitconv_status status);

/** The message of the last call that failed in the calling thread, with the compiler's log if there is one. Empty if
 *  none has failed. Valid until this thread ends or another of its calls fails. A function without a status fails where
 *  it has no memory for its answer. */
JITCONV_C_API const char *jitconv_last_error(void);

/** Sets struct_size to the given sizeof(jitconv_spec), input and weight to zero, and the other fields to the defaults
 *  of jitconv::ConvSpec. JITCONV_INVALID_ARGUMENT if the size cannot be that of the struct. */
JITCONV_C_API jitconv_status jitconv_spec_init(jitconv_spec *spec, size_t struct_size);

/** Reads a line such as `input=8,32,512,512 weight=64,32,5,9 padding=2,4`, in the form that jitconv_kernel_spec()
 *  returns, into a spec whose struct_size is set. Fields that the line does not name get their defaults.
 *  Reads PyTorch's words as jitconv::parse_spec() does. JITCONV_INVALID_SPEC if a key is unknown or a value cannot be
 *  read; JITCONV_UNSUPPORTED if the line sets a field that the struct is too small to have. */
JITCONV_C_API jitconv_status jitconv_spec_parse(const char *text, jitconv_spec *spec);

/** Writes N, K, P, Q of the output to `shape`. JITCONV_INVALID_SPEC if the convolution cannot be computed. */
JITCONV_C_API jitconv_status jitconv_output_shape(const jitconv_spec *spec, int64_t shape[4]);

/** Compiles a kernel. `arch` says for what:
 *  null is the current device, on which the kernel is then loaded;
 *  a name such as "sm_90a" is that GPU, and no GPU is needed to compile for it;
 *  "host-sm_90a" is code for that GPU which this machine's CPU runs and checks, see jitconv::Execution. It needs a C++
 *  compiler instead of NVRTC. "host" is short for "host-sm_90a".
 *  On failure `*kernel` is set to null. */
JITCONV_C_API jitconv_status jitconv_compile(const jitconv_spec *spec, const char *arch, jitconv_kernel **kernel);

/** As jitconv_compile(), with options; null for the defaults. JITCONV_UNSUPPORTED for counters on a GPU. */
JITCONV_C_API jitconv_status jitconv_compile_with(const jitconv_spec *spec, const char *arch,
                                                  const jitconv_compile_options *options, jitconv_kernel **kernel);

/** Compiles `count` specs at once, in threads of its own, and writes their kernels to `kernels`, in the same order.
 * They are those of jitconv_compile(), and each is destroyed like those. `specs` is an array whose elements all have
 * the struct_size of the first. `options` may be null. An error of one spec does not keep the others from being
 * compiled. When all are finished, the status and message are those of the first spec that has an error, and all of
 * `kernels` are null. What was compiled is then in memory and in the disk cache, as far as these keep it, and
 * jitconv_compile() of it returns soon. JITCONV_INVALID_ARGUMENT if a pointer is missing or threads is negative. */
JITCONV_C_API jitconv_status jitconv_prepare(const jitconv_spec *specs, size_t count, const char *arch,
                                             const jitconv_prepare_options *options, jitconv_kernel **kernels);

/** As jitconv::tune(): measures candidates on the current device and remembers the fastest. `options` may be null.
 *  JITCONV_INVALID_ARGUMENT if a count is negative. On failure `*kernel` is set to null. */
JITCONV_C_API jitconv_status jitconv_tune(const jitconv_spec *spec, const jitconv_tune_options *options,
                                          jitconv_kernel **kernel);

/** Releases the handle. Null is allowed. No other thread may be using it, the launches made with it must be complete,
 *  and no CUDA graph may contain them. */
JITCONV_C_API void jitconv_kernel_destroy(jitconv_kernel *kernel);

/** Enqueues the convolution on `stream` (a CUstream or cudaStream_t, null for the default stream) and returns without
 *  waiting for it. JITCONV_INVALID_ARGUMENT if a pointer is missing, superfluous, misaligned or overlaps.
 *  On the host it returns when y is complete, and `stream` must be null. If the status is JITCONV_KERNEL_FAULT,
 *  jitconv_last_error() lists the rules that the kernel broke. */
JITCONV_C_API jitconv_status jitconv_kernel_launch(const jitconv_kernel *kernel, void *stream,
                                                   const jitconv_launch_args *args);

/** Enqueues on `stream` the packing of w, which a launch with w repeats every time. Use it for weights that many
 *  launches share, and pass the result as packed_w. `packed_w` has jitconv_kernel_packed_weight_bytes() bytes and is a
 *  multiple of 256. Only this kernel can read the result, so do not store it; see jitconv::Kernel::pack_weights().
 *  JITCONV_UNSUPPORTED if the kernel reads w in PyTorch's order. */
JITCONV_C_API jitconv_status jitconv_kernel_pack_weights(const jitconv_kernel *kernel, void *stream, const void *w,
                                                         void *packed_w);

/* Questions about a kernel. Texts and images are valid as long as the handle; a null handle gives null or 0. */

/** The size of the workspace in bytes, for a launch with w. */
JITCONV_C_API int64_t jitconv_kernel_workspace_bytes(const jitconv_kernel *kernel);
/** The size of the workspace in bytes, for a launch with packed_w. */
JITCONV_C_API int64_t jitconv_kernel_workspace_bytes_with_packed_weights(const jitconv_kernel *kernel);
/** The size of the packed weights in bytes. 0 if the kernel reads w in PyTorch's order and refuses packed_w. */
JITCONV_C_API int64_t jitconv_kernel_packed_weight_bytes(const jitconv_kernel *kernel);
/** Writes N, K, P, Q of the output to `shape`. */
JITCONV_C_API jitconv_status jitconv_kernel_output_shape(const jitconv_kernel *kernel, int64_t shape[4]);
/** The spec in canonical form, as one line that jitconv_spec_parse() reads. */
JITCONV_C_API const char *jitconv_kernel_spec(const jitconv_kernel *kernel);
/** The complete CUDA source. */
JITCONV_C_API const char *jitconv_kernel_source(const jitconv_kernel *kernel);
/** The numbers of the plan, for people: lines of `name: value`. */
JITCONV_C_API const char *jitconv_kernel_plan(const jitconv_kernel *kernel);
/** Which kernel family was chosen and why, what was rejected, what is slow. */
JITCONV_C_API const char *jitconv_kernel_explain(const jitconv_kernel *kernel);
/** The key in the disk cache, 64 hex digits. Empty for a convolution without outputs. */
JITCONV_C_API const char *jitconv_kernel_cache_key(const jitconv_kernel *kernel);
/** The compiler's log when it made the image, possibly long ago. */
JITCONV_C_API const char *jitconv_kernel_compile_log(const jitconv_kernel *kernel);
/** The cubin, or for the host the shared object. Its size is written to `*bytes`. */
JITCONV_C_API const void *jitconv_kernel_image(const jitconv_kernel *kernel, size_t *bytes);
/** The number of GPU kernels of one launch. */
JITCONV_C_API size_t jitconv_kernel_entry_count(const jitconv_kernel *kernel);
/** What GPU kernel `entry` of a launch uses, counted from 0. Set resources->struct_size before the call. */
JITCONV_C_API jitconv_status jitconv_kernel_resources(const jitconv_kernel *kernel, size_t entry,
                                                      jitconv_resources *resources);

/** Drops every kernel that no handle refers to, as jitconv::release_unused_kernels() does. Writes their number to
 *  `*released`, which may be null. */
JITCONV_C_API jitconv_status jitconv_release_unused_kernels(size_t *released);

/** Writes the counters' present values. Set statistics->struct_size before the call. */
JITCONV_C_API jitconv_status jitconv_statistics(jitconv_stats *statistics);

#ifdef __cplusplus
}
#endif

#endif /* JITCONV_JITCONV_H */
