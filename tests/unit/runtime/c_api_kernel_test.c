/* The C interface: many specs at once, tuning, and kernels on the fake driver and on the host. See c_api_test.c. */
#include "c_api_test.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* What jitconv_prepare() reported: calls, and one bit for each index and origin. */
struct reports {
  uint64_t calls;
  unsigned indices, origins;
};

static void record(const jitconv_progress *progress, void *user_data) {
  struct reports *reports = user_data;
  EXPECT(progress->struct_size == sizeof *progress);
  EXPECT(progress->done == ++reports->calls && progress->total == 3);
  reports->indices |= 1u << progress->index;
  reports->origins |= 1u << progress->origin;
}

void test_prepare(void) {
  jitconv_spec specs[3];
  jitconv_kernel *kernels[3] = {NULL, NULL, NULL}, *same = NULL;
  jitconv_prepare_options options;
  jitconv_compile_options compile;
  struct reports reports = {0, 0, 0};
  size_t i;
  for (i = 0; i < 3; ++i) {
    specs[i] = make_spec();
    specs[i].input[2] = 40 + (int64_t)i / 2; /* the first two are equal */
  }
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threads = 2;
  options.progress = record;
  options.user_data = &reports;
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", &options, kernels) == JITCONV_OK);
  EXPECT(reports.calls == 3 && reports.indices == 7);
  EXPECT(reports.origins == (1u << JITCONV_FROM_MEMORY | 1u << JITCONV_FROM_COMPILER));
  EXPECT(kernels[0] != kernels[1] && jitconv_kernel_source(kernels[0]) == jitconv_kernel_source(kernels[1]));
  EXPECT(strstr(jitconv_kernel_spec(kernels[2]), "input=2,8,41,24") != NULL);
  EXPECT(jitconv_compile(&specs[2], "sm_90a", &same) == JITCONV_OK);
  EXPECT(jitconv_kernel_source(same) == jitconv_kernel_source(kernels[2]));
  jitconv_kernel_destroy(same);
  for (i = 0; i < 3; ++i) jitconv_kernel_destroy(kernels[i]);

  /* Without options, for the current device. */
  EXPECT(jitconv_prepare(specs, 3, NULL, NULL, kernels) == JITCONV_OK);
  for (i = 0; i < 3; ++i) jitconv_kernel_destroy(kernels[i]);
  EXPECT(jitconv_prepare(NULL, 0, "sm_90a", NULL, NULL) == JITCONV_OK);

  /* One error: no kernel, its message, and all were tried. */
  specs[1].groups = 3;
  memset(&reports, 0, sizeof reports);
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", &options, kernels) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("groups is 3");
  EXPECT(kernels[0] == NULL && kernels[1] == NULL && kernels[2] == NULL);
  EXPECT(reports.calls == 3 && (reports.origins & 1u << JITCONV_NO_KERNEL) != 0);
  specs[1].groups = 1;

  EXPECT(jitconv_prepare(NULL, 3, "sm_90a", NULL, kernels) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("specs is null");
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", NULL, NULL) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("kernels is null");
  EXPECT(jitconv_prepare(specs, 3, "sm_12345", NULL, kernels) == JITCONV_UNSUPPORTED);
  options.threads = -2;
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", &options, kernels) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("threads is -2");
  memset(&compile, 0, sizeof compile);
  options.threads = 0;
  options.compile = &compile;
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", &options, kernels) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("options.compile.struct_size is 0");
  specs[2].struct_size = 192;
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", NULL, kernels) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("specs[2].struct_size is 192, must be 200, as that of specs[0]");
  specs[0].struct_size = 194;
  EXPECT(jitconv_prepare(specs, 3, "sm_90a", NULL, kernels) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("specs[0].struct_size is 194, must be a multiple of 8");
}

void test_tune(void) {
  const jitconv_spec spec = make_spec();
  jitconv_tune_options options;
  jitconv_kernel *kernel = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.candidates = -1;
  EXPECT(jitconv_tune(&spec, &options, &kernel) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("candidates is -1, must be at least 1");
  EXPECT(jitconv_tune(&spec, NULL, NULL) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("kernel is null");
  options.candidates = 2;
  options.again = 2;
  EXPECT(jitconv_tune(&spec, &options, &kernel) == JITCONV_INVALID_SPEC);
  LAST_ERROR_HAS("again is 2, must be 0 or 1");
  /* The fake driver has no memory to measure in. */
  options.again = 1;
  EXPECT(jitconv_tune(&spec, &options, &kernel) == JITCONV_NO_DRIVER);
  EXPECT(kernel == NULL);
}

/* An array of a program whose header is older: its specs lie closer. */
void test_prepare_older_structs(void) {
  const size_t size = offsetof(jitconv_spec, output_dtype);
  jitconv_kernel *kernels[2] = {NULL, NULL};
  jitconv_spec room[2]; /* of which 2 * 192 bytes are used */
  char *bytes = (char *)room;
  size_t i;
  for (i = 0; i < 2; ++i) {
    jitconv_spec spec = make_spec();
    spec.struct_size = (uint32_t)size;
    spec.input[2] = 50 + (int64_t)i;
    memcpy(bytes + i * size, &spec, size);
  }
  EXPECT(jitconv_prepare(room, 2, "sm_90a", NULL, kernels) == JITCONV_OK);
  EXPECT(strstr(jitconv_kernel_spec(kernels[1]), "input=2,8,51,24") != NULL);
  for (i = 0; i < 2; ++i) jitconv_kernel_destroy(kernels[i]);
}

void test_kernel(void) {
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL, *same = NULL;
  jitconv_launch_args args;
  jitconv_resources resources;
  jitconv_stats before, after;
  int64_t shape[4];
  size_t bytes = 0;

  before.struct_size = after.struct_size = sizeof before;
  EXPECT(jitconv_compile(&spec, NULL, &kernel) == JITCONV_OK);
  EXPECT(jitconv_statistics(&before) == JITCONV_OK && before.compilations >= 1);
  EXPECT(jitconv_compile(&spec, NULL, &same) == JITCONV_OK);
  EXPECT(jitconv_statistics(&after) == JITCONV_OK);
  EXPECT(after.memory_hits == before.memory_hits + 1 && after.compilations == before.compilations);
  EXPECT(jitconv_kernel_source(kernel) == jitconv_kernel_source(same));
  jitconv_kernel_destroy(same);

  EXPECT(strstr(jitconv_kernel_source(kernel), "__global__") != NULL);
  EXPECT(strstr(jitconv_kernel_spec(kernel), "weight=16,8,3,5") != NULL);
  EXPECT(strstr(jitconv_kernel_explain(kernel), "family") != NULL);
  EXPECT(strlen(jitconv_kernel_plan(kernel)) > 0 && jitconv_kernel_plan(kernel) == jitconv_kernel_plan(kernel));
  EXPECT(strlen(jitconv_kernel_cache_key(kernel)) == 64);
  EXPECT(strstr(jitconv_kernel_compile_log(kernel), "registers") != NULL);
  EXPECT(jitconv_kernel_image(kernel, &bytes) != NULL && bytes > 10);
  EXPECT(jitconv_kernel_output_shape(kernel, shape) == JITCONV_OK && shape[3] == 20);
  EXPECT(jitconv_kernel_workspace_bytes(kernel) >= 0);

  resources.struct_size = sizeof resources;
  EXPECT(jitconv_kernel_entry_count(kernel) >= 1);
  EXPECT(jitconv_kernel_resources(kernel, 0, &resources) == JITCONV_OK);
  EXPECT(resources.registers == 77 && resources.local_bytes == 16 && resources.threads > 0);
  EXPECT(jitconv_kernel_resources(kernel, 1000, &resources) == JITCONV_INVALID_ARGUMENT);

  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("x is null");
  args.x = (const void *)(uintptr_t)0x100000000;
  args.w = (const void *)(uintptr_t)0x200000000;
  args.y = (void *)(uintptr_t)0x300000000;
  args.workspace = (void *)(uintptr_t)0x400000000;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_OK);

  /* A program built before there was a count of kernels. */
  before.struct_size = (uint32_t)offsetof(jitconv_stats, kernels);
  before.kernels = 77;
  EXPECT(jitconv_statistics(&before) == JITCONV_OK && before.kernels == 77);
  before.struct_size = sizeof before;
  EXPECT(jitconv_release_unused_kernels(NULL) == JITCONV_OK);
  EXPECT(jitconv_statistics(&before) == JITCONV_OK && before.kernels == 1);
  jitconv_kernel_destroy(kernel);
  EXPECT(jitconv_release_unused_kernels(&bytes) == JITCONV_OK && bytes == 1);
  EXPECT(jitconv_statistics(&after) == JITCONV_OK && after.kernels == 0);
}

/* On the host, where the result can be looked at: every input is 1, so an output counts its products. */
void test_host(void) {
  static float x[2 * 8 * 16 * 24], w[16 * 8 * 3 * 5], y[2 * 16 * 14 * 20];
  const size_t outputs = sizeof y / sizeof *y;
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL, *same = NULL;
  jitconv_launch_args args;
  size_t i, wrong = 0;

  EXPECT(jitconv_compile(&spec, "host-sm_12345", &kernel) == JITCONV_UNSUPPORTED && kernel == NULL);
  LAST_ERROR_HAS("sm_12345");
  EXPECT(jitconv_compile(&spec, "hostess", &kernel) == JITCONV_UNSUPPORTED && kernel == NULL);
  EXPECT(jitconv_compile(&spec, "host-", &kernel) == JITCONV_UNSUPPORTED && kernel == NULL);
  LAST_ERROR_HAS("arch is \"host-\"");

  spec.alignment = 4; /* all that C99 promises for an array of floats */
  EXPECT(jitconv_compile(&spec, "host", &kernel) == JITCONV_OK);
  EXPECT(jitconv_compile(&spec, "host-sm_90a", &same) == JITCONV_OK);
  if (kernel == NULL || same == NULL) return;
  EXPECT(jitconv_kernel_source(kernel) == jitconv_kernel_source(same));
  jitconv_kernel_destroy(same);
  EXPECT(jitconv_compile(&spec, "sm_90a", &same) == JITCONV_OK);
  EXPECT(strcmp(jitconv_kernel_source(kernel), jitconv_kernel_source(same)) == 0);
  EXPECT(strcmp(jitconv_kernel_cache_key(kernel), jitconv_kernel_cache_key(same)) != 0);
  jitconv_kernel_destroy(same);

  for (i = 0; i < sizeof x / sizeof *x; ++i) x[i] = 1;
  for (i = 0; i < sizeof w / sizeof *w; ++i) w[i] = 1;
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.x = x;
  args.w = w;
  args.y = y;
  EXPECT(jitconv_kernel_launch(kernel, &args, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("stream");
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_OK);
  for (i = 0; i < outputs; ++i) wrong += y[i] != 8 * 3 * 5;
  EXPECT(wrong == 0);
  jitconv_kernel_destroy(kernel);
  EXPECT(strcmp(jitconv_status_name(JITCONV_KERNEL_FAULT), "kernel_fault") == 0);
}

/* A multiple of 256, as workspaces and packed weights have to be; filled with NaN. */
static void *allocate(int64_t bytes) {
  void *memory = NULL;
  EXPECT(posix_memalign(&memory, 256, (size_t)bytes + 256) == 0);
  if (memory == NULL) exit(1);
  return memset(memory, 0xff, (size_t)bytes + 256);
}

static float *allocate_ones(size_t count) {
  float *values = allocate((int64_t)(count * sizeof *values));
  size_t i;
  for (i = 0; i < count; ++i) values[i] = 1;
  return values;
}

/* On the host again: each output is the count of its products, whichever weights a launch is given. Of an even number
   of taps they are packed. */
void test_packed_weights(void) {
  const int64_t input[4] = {1, 64, 16, 31}, filter[4] = {128, 64, 3, 2};
  const size_t outputs = 128 * 14 * 30;
  float *x = allocate_ones(64 * 16 * 31), *w = allocate_ones(128 * 64 * 3 * 2), *y = allocate(128 * 14 * 30 * 4);
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL, *plain = NULL;
  jitconv_launch_args args;
  void *packed;
  size_t i, wrong = 0;

  spec.math = JITCONV_MATH_IEEE; /* kernels of FMAs read w as it is */
  EXPECT(jitconv_compile(&spec, "host-sm_90a", &plain) == JITCONV_OK);
  memcpy(spec.input, input, sizeof input);
  memcpy(spec.weight, filter, sizeof filter);
  spec.math = JITCONV_MATH_TF32;
  EXPECT(jitconv_compile(&spec, "host-sm_90a", &kernel) == JITCONV_OK);
  if (kernel == NULL || plain == NULL) return;
  EXPECT(jitconv_kernel_packed_weight_bytes(plain) == 0);
  EXPECT(jitconv_kernel_packed_weight_bytes(kernel) >= 128 * 64 * 3 * 2 * 4);
  EXPECT(jitconv_kernel_workspace_bytes(kernel) ==
         jitconv_kernel_workspace_bytes_with_packed_weights(kernel) + jitconv_kernel_packed_weight_bytes(kernel));
  EXPECT(jitconv_kernel_entry_count(kernel) >= 2);
  packed = allocate(jitconv_kernel_packed_weight_bytes(kernel));

  EXPECT(jitconv_kernel_pack_weights(plain, NULL, w, packed) == JITCONV_UNSUPPORTED);
  LAST_ERROR_HAS("packed_w");
  EXPECT(jitconv_kernel_pack_weights(kernel, NULL, NULL, packed) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("w is null");
  EXPECT(jitconv_kernel_pack_weights(kernel, NULL, w, packed) == JITCONV_OK);

  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.x = x;
  args.w = w;
  args.y = y;
  args.workspace = allocate(jitconv_kernel_workspace_bytes(kernel));
  args.packed_w = packed;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("the launch has packed_w");
  args.w = NULL;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_OK);
  for (i = 0; i < outputs; ++i) wrong += y[i] != 64 * 3 * 2;
  EXPECT(wrong == 0);

  /* A program built before there was packed_w: its struct ends where the field begins. */
  memset(y, 0xff, outputs * sizeof *y);
  args.struct_size = (uint32_t)offsetof(jitconv_launch_args, packed_w);
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("w is null");
  args.w = w;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_OK);
  for (i = 0; i < outputs; ++i) wrong += y[i] != 64 * 3 * 2;
  EXPECT(wrong == 0);
  jitconv_kernel_destroy(kernel);
  jitconv_kernel_destroy(plain);
  free(args.workspace);
  free(packed);
  free(x);
  free(w);
  free(y);
}

/* On the host as well: dy reaches dx where the saved result of the activation is above zero. */
void test_saved(void) {
  const int64_t input[4] = {1, 1, 1, 4}, filter[4] = {1, 1, 1, 1};
  const float signs[4] = {1, -1, 0, 2};
  float *dy = allocate_ones(4), *w = allocate_ones(1), *saved = allocate_ones(4), *dx = allocate(16);
  jitconv_spec spec = make_spec();
  jitconv_kernel *kernel = NULL;
  jitconv_launch_args args;
  size_t i, wrong = 0;

  memcpy(spec.input, input, sizeof input);
  memcpy(spec.weight, filter, sizeof filter);
  memcpy(saved, signs, sizeof signs);
  spec.operation = JITCONV_DATA_GRADIENT;
  spec.dy_activation = JITCONV_RELU;
  EXPECT(jitconv_compile(&spec, "host-sm_90a", &kernel) == JITCONV_OK);
  if (kernel == NULL) return;
  EXPECT(strstr(jitconv_kernel_spec(kernel), "dy_activation=relu") != NULL);
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.dy = dy;
  args.w = w;
  args.dx = dx;
  args.workspace = allocate(jitconv_kernel_workspace_bytes(kernel));
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  LAST_ERROR_HAS("saved is null, must point to 16 bytes");
  args.saved = saved;
  args.struct_size = (uint32_t)offsetof(jitconv_launch_args, saved); /* of an older header */
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_INVALID_ARGUMENT);
  args.struct_size = sizeof args;
  EXPECT(jitconv_kernel_launch(kernel, NULL, &args) == JITCONV_OK);
  for (i = 0; i < 4; ++i) wrong += dx[i] != (signs[i] > 0 ? 1 : 0);
  EXPECT(wrong == 0);
  jitconv_kernel_destroy(kernel);
  free(args.workspace);
  free(dy);
  free(w);
  free(saved);
  free(dx);
}
