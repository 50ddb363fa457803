/* The C interface from C99: what every function does, what it refuses, and that nothing escapes it. Here specs, structs
 * and errors; c_api_kernel_test.c has compilations and launches. The process compiles with the fake NVRTC and launches
 * on the fake driver; see CMakeLists.txt. */
#include "c_api_test.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;

void expect(int condition, const char *what, const char *file, int line) {
  if (condition) return;
  ++failures;
  fprintf(stderr, "%s:%d: %s; last error: %s\n", file, line, what, jitconv_last_error());
}

jitconv_spec make_spec(void) {
  jitconv_spec spec;
  const int64_t input[4] = {2, 8, 16, 24}, filter[4] = {16, 8, 3, 5};
  EXPECT(jitconv_spec_init(&spec, sizeof spec) == JITCONV_OK);
  memcpy(spec.input, input, sizeof input);
  memcpy(spec.weight, filter, sizeof filter);
  return spec;
}

static void test_spec(void) {
  jitconv_spec spec = make_spec(), parsed;
  int64_t shape[4];
  EXPECT(spec.struct_size == sizeof spec && spec.stride[0] == 1 && spec.groups == 1 && spec.alignment == 16);
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_OK);
  EXPECT(shape[0] == 2 && shape[1] == 16 && shape[2] == 14 && shape[3] == 20);

  parsed.struct_size = sizeof parsed;
  EXPECT(jitconv_spec_parse("input=2,8,16,24 weight=16,8,3,5 padding=1,2", &parsed) == JITCONV_OK);
  EXPECT(parsed.weight[3] == 5 && parsed.padding[1] == 1 && parsed.padding[3] == 2 && parsed.dilation[0] == 1);
  EXPECT(jitconv_spec_parse("input=2,8,16,24 wait=1", &parsed) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("wait");

  spec.weight[2] = 99;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("weight");
  spec = make_spec();
  spec.dtype = 256; /* would be f32 if cut to a byte */
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("dtype has the unknown value 256, must be below 3");
  spec = make_spec();
  spec.output_layout = -5;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("output_layout has the unknown value -5, must be below 2");
  spec = make_spec();
  spec.operation = 3;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("operation has the unknown value 3, must be below 3");
  spec = make_spec();
  spec.output_dtype = 4;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("output_dtype has the unknown value 4, must be below 4");
  spec = make_spec();
  spec.operation = JITCONV_WEIGHT_GRADIENT; /* the shapes are the forward's */
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_OK && shape[1] == 16 && shape[3] == 20);
  spec = make_spec();
  spec.dy_activation = JITCONV_CLAMP + 1;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("dy_activation has the unknown value 10, must be below 10");
  spec.dy_activation = JITCONV_RELU;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("dy_activation is relu, must be none for forward");
  spec.operation = JITCONV_DATA_GRADIENT;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_OK);
  spec = make_spec();
  spec.bias = 2;
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("bias is 2");
}

/* A program built before there was output_dtype: its struct ends where the field begins. */
static void test_older_struct(void) {
  jitconv_spec spec;
  int64_t shape[4];
  memset(&spec, 0x5a, sizeof spec);
  EXPECT(jitconv_spec_init(&spec, offsetof(jitconv_spec, output_dtype)) == JITCONV_OK);
  EXPECT(spec.struct_size == 192 && spec.operation == JITCONV_FORWARD && spec.alignment == 16);
  EXPECT(spec.output_dtype == 0x5a5a5a5a);
  EXPECT(jitconv_spec_parse("input=2,8,16,24 weight=16,8,3,5", &spec) == JITCONV_OK);
  EXPECT(spec.output_dtype == 0x5a5a5a5a && spec.dy_activation == 0x5a5a5a5a);
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_OK && shape[3] == 20);
  EXPECT(jitconv_spec_parse("input=1,1,4,4 weight=1,1,1,1 output_dtype=f16", &spec) == JITCONV_UNSUPPORTED);
  LAST_ERROR_HAS("spec.struct_size is 192, which is too small for");
  EXPECT(spec.input[3] == 24);
  EXPECT(sizeof spec == 200);
}

static void test_versions(void) {
  struct {
    jitconv_spec spec;
    char later[16];
  } newer;
  int64_t shape[4];
  EXPECT(jitconv_spec_init(&newer.spec, sizeof newer) == JITCONV_OK);
  EXPECT(newer.spec.struct_size == sizeof newer && newer.later[0] == 0 && newer.later[15] == 0);
  EXPECT(jitconv_spec_parse("input=1,1,4,4 weight=1,1,1,1", &newer.spec) == JITCONV_OK);
  EXPECT(newer.spec.struct_size == sizeof newer);
  EXPECT(jitconv_output_shape(&newer.spec, shape) == JITCONV_OK);
  newer.later[15] = 1; /* asks for something this version cannot know */
  EXPECT(jitconv_output_shape(&newer.spec, shape) == JITCONV_UNSUPPORTED);
  newer.spec.struct_size = 8;
  EXPECT(jitconv_output_shape(&newer.spec, shape) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("spec.struct_size is 8, must be from 192 to 1024");
}

/* What an uninitialised struct may say. Nothing is written then, neither of the struct nor behind it. */
static void test_struct_sizes(void) {
  jitconv_stats statistics;
  jitconv_spec spec = make_spec();
  jitconv_launch_args args;
  int64_t shape[4];
  memset(&statistics, 0x5a, sizeof statistics);
  EXPECT(jitconv_statistics(&statistics) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("statistics.struct_size is 1515870810, must be from 48 to 1024");
  EXPECT(statistics.struct_size == 0x5a5a5a5a && statistics.memory_hits == 0x5a5a5a5a5a5a5a5a);
  spec.struct_size = JITCONV_MAX_STRUCT_SIZE + 1;
  EXPECT(jitconv_spec_parse("input=1,1,4,4 weight=1,1,1,1", &spec) == JITCONV_INVALID_ARGUMENT);
  EXPECT(spec.input[3] == 24);
  EXPECT(jitconv_output_shape(&spec, shape) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("spec.struct_size is 1025, must be from 192 to 1024");
  memset(&args, 0xff, sizeof args);
  EXPECT(jitconv_kernel_launch(NULL, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("args.struct_size is 4294967295");
  spec = make_spec();
  EXPECT(jitconv_spec_init(&spec, ((size_t)1 << 32) + sizeof spec) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("spec.struct_size is 4294967496, must be from 192 to 1024");
  EXPECT(spec.input[3] == 24);
}

static void test_null(void) {
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL;
  size_t bytes = 1;
  EXPECT(jitconv_spec_init(NULL, sizeof spec) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_spec_parse(NULL, &spec) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_output_shape(&spec, NULL) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_compile(NULL, "sm_90a", &kernel) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_compile(&spec, "sm_90a", NULL) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_kernel_launch(NULL, NULL, NULL) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_kernel_pack_weights(NULL, NULL, &spec, &kernel) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("kernel is null");
  EXPECT(jitconv_kernel_workspace_bytes_with_packed_weights(NULL) == 0);
  EXPECT(jitconv_kernel_packed_weight_bytes(NULL) == 0);
  EXPECT(jitconv_statistics(NULL) == JITCONV_INVALID_ARGUMENT);
  EXPECT(jitconv_kernel_source(NULL) == NULL && jitconv_kernel_workspace_bytes(NULL) == 0);
  EXPECT(jitconv_kernel_image(NULL, &bytes) == NULL && bytes == 0);
  jitconv_kernel_destroy(NULL);
}

static void test_errors(void) {
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = (jitconv_kernel *)&spec;
  EXPECT(jitconv_compile(&spec, "sm_12345", &kernel) == JITCONV_UNSUPPORTED);
  EXPECT(kernel == NULL);
  LAST_ERROR_HAS("sm_12345");
  spec.groups = 3;
  EXPECT(jitconv_compile(&spec, "sm_90a", &kernel) == JITCONV_INVALID_SPEC);
  spec = make_spec();
  spec.input[3] = 77;
  putenv("FAKE_NVRTC_RESULT=6");
  EXPECT(jitconv_compile(&spec, "sm_90a", &kernel) == JITCONV_COMPILE_FAILED);
  LAST_ERROR_HAS("as the test asked");
  putenv("FAKE_NVRTC_RESULT=0");
  EXPECT(strcmp(jitconv_status_name(JITCONV_COMPILE_FAILED), "compile_failed") == 0);
  EXPECT(strcmp(jitconv_status_name((jitconv_status)77), "unknown") == 0);
}

static void test_compile_options(void) {
  jitconv_spec spec = make_spec();
  jitconv_compile_options options;
  jitconv_kernel *plain = NULL, *lines = NULL, *same = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  EXPECT(jitconv_compile_with(&spec, "sm_90a", NULL, &plain) == JITCONV_OK);
  EXPECT(jitconv_compile_with(&spec, "sm_90a", &options, &same) == JITCONV_OK);
  EXPECT(jitconv_kernel_source(plain) == jitconv_kernel_source(same));
  options.line_info = 1;
  EXPECT(jitconv_compile_with(&spec, "sm_90a", &options, &lines) == JITCONV_OK);
  EXPECT(strcmp(jitconv_kernel_cache_key(plain), jitconv_kernel_cache_key(lines)) != 0);
  jitconv_kernel_destroy(plain);
  jitconv_kernel_destroy(same);
  jitconv_kernel_destroy(lines);

  options.counters = 1;
  EXPECT(jitconv_compile_with(&spec, "sm_90a", &options, &lines) == JITCONV_UNSUPPORTED && lines == NULL);
  LAST_ERROR_HAS("counters");
  options.counters = 2;
  EXPECT(jitconv_compile_with(&spec, "host", &options, &lines) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("counters is 2, must be 0 or 1");
  options.counters = 0;
  options.reserved = -1;
  EXPECT(jitconv_compile_with(&spec, "host", &options, &lines) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("options.reserved is -1, must be 0");
  options.struct_size = 4;
  EXPECT(jitconv_compile_with(&spec, "host", &options, &lines) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("options.struct_size is 4, must be from 16 to 1024");
}

static void test_unsupported(void) {
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL;
  spec.output_dtype = JITCONV_OUTPUT_BF16;
  EXPECT(jitconv_compile(&spec, "sm_90a", &kernel) == JITCONV_UNSUPPORTED && kernel == NULL);
  LAST_ERROR_HAS("output_dtype is bf16, must be same or f32");
  spec.output_dtype = JITCONV_OUTPUT_F32;
  EXPECT(jitconv_compile(&spec, "sm_90a", &kernel) == JITCONV_OK);
  jitconv_kernel_destroy(kernel);
}

static void test_gradients(void) {
  const int operations[] = {JITCONV_DATA_GRADIENT, JITCONV_WEIGHT_GRADIENT};
  for (int i = 0; i < 2; ++i) {
    jitconv_spec spec = make_spec();
    jitconv_kernel *kernel = NULL;
    spec.operation = operations[i];
    EXPECT(jitconv_compile(&spec, "sm_90a", &kernel) == JITCONV_OK);
    jitconv_kernel_destroy(kernel);
  }
}

int main(void) {
  EXPECT(jitconv_abi_version() == JITCONV_ABI_VERSION);
  EXPECT(strchr(jitconv_version(), '.') != NULL);
  EXPECT(strcmp(jitconv_last_error(), "") == 0);
  test_spec();
  test_older_struct();
  test_versions();
  test_struct_sizes();
  test_null();
  test_errors();
  test_unsupported();
  test_gradients();
  test_compile_options();
  test_prepare();
  test_tune();
  test_prepare_older_structs();
  EXPECT(jitconv_release_unused_kernels(NULL) == JITCONV_OK);
  test_kernel();
  test_host();
  test_packed_weights();
  test_saved();
  if (failures == 0) printf("all of the C interface works\n");
  return failures == 0 ? 0 : 1;
}
