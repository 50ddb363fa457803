/*
 * y = relu(conv(x, w) + b) in TF32 through jitconv's C interface: compiled for the GPU of this machine, run, checked
 * against sums in double, and timed. `convolve_c host` does the same on the CPU with a smaller image. What convolve.cpp
 * does in C++.
 */
#include <jitconv/jitconv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h" /* device memory and a timer; beside this file */

enum { kSamples = 1000 };

/* Ends the program with jitconv's message unless a call succeeded. */
static void check(jitconv_status status) {
  if (status == JITCONV_OK) return;
  fprintf(stderr, "%s\n", jitconv_last_error());
  exit((int)status);
}

static uint64_t next_random(void) {
  static uint64_t state = 1; /* a linear congruential generator; its upper bits are random enough */
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

static int64_t elements(const int64_t shape[4]) { return shape[0] * shape[1] * shape[2] * shape[3]; }

static float *allocate(int64_t count) {
  float *const values = malloc((size_t)count * sizeof(float));
  if (values != NULL) return values;
  fprintf(stderr, "out of memory\n");
  exit(EXIT_FAILURE);
}

/* `count` random numbers from -1 to 1. */
static float *random_values(int64_t count) {
  float *const values = allocate(count);
  for (int64_t i = 0; i < count; ++i) values[i] = (float)next_random() / (float)(1u << 30) - 1;
  return values;
}

static void *copy_to_device(const float *values, int64_t count) {
  void *const copy = device_allocate((size_t)count * sizeof(float));
  device_upload(copy, values, (size_t)count * sizeof(float));
  return copy;
}

/* Output n, k, p, q before the activation, in double, and the sum of the magnitudes of its terms. The spec has stride
 * 1, one group and NCHW tensors. */
static double reference(const jitconv_spec *spec, const float *x, const float *w, const float *b, const int64_t at[4],
                        double *magnitude) {
  const int64_t channels = spec->input[1], height = spec->input[2], width = spec->input[3];
  const int64_t rows = spec->weight[2], columns = spec->weight[3];
  double sum = (double)b[at[1]];
  *magnitude = fabs(sum);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t s = 0; s < columns; ++s) {
        const int64_t row = at[2] - spec->padding[0] + r * spec->dilation[0];
        const int64_t column = at[3] - spec->padding[2] + s * spec->dilation[1];
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        const double product = (double)x[((at[0] * channels + c) * height + row) * width + column] *
                               (double)w[((at[1] * channels + c) * rows + r) * columns + s];
        sum += product;
        *magnitude += fabs(product);
      }
    }
  }
  return sum;
}

/* How many sampled outputs are further from the reference than TF32 can explain; docs/accuracy.md derives the bound. */
static int wrong_outputs(const jitconv_spec *spec, const float *x, const float *w, const float *b, const float *y,
                         const int64_t out[4]) {
  const double length = (double)(spec->weight[1] * spec->weight[2] * spec->weight[3]);
  const double relative_bound = 1.01 * (ldexp(1, -10) + (length + 2) * ldexp(1, -22));
  int wrong = 0;
  for (int i = 0; i < kSamples; ++i) {
    const int64_t index = (int64_t)(next_random() % (uint64_t)elements(out));
    const int64_t at[4] = {index / (out[1] * out[2] * out[3]), index / (out[2] * out[3]) % out[1],
                           index / out[3] % out[2], index % out[3]};
    double magnitude;
    const double right = fmax(reference(spec, x, w, b, at, &magnitude), 0);
    if (!(fabs(right - (double)y[index]) <= relative_bound * magnitude)) ++wrong; /* a NaN is wrong, too */
  }
  return wrong;
}

int main(int argc, char **argv) {
  const int on_host = argc > 1 && strcmp(argv[1], "host") == 0;
  jitconv_spec spec;
  check(jitconv_spec_init(&spec, sizeof spec));
  const int64_t input[4] = {on_host ? 1 : 8, 32, on_host ? 8 : 512, on_host ? 32 : 512}; /* N, C, H, W */
  const int64_t weight[4] = {64, 32, 5, 9};                                              /* K, C/groups, R, S */
  memcpy(spec.input, input, sizeof input);
  memcpy(spec.weight, weight, sizeof weight);
  spec.padding[0] = spec.padding[1] = 4;  /* top, bottom */
  spec.padding[2] = spec.padding[3] = 12; /* left, right: y is as large as x */
  spec.dilation[0] = 2;
  spec.dilation[1] = 3;
  spec.math = JITCONV_MATH_TF32; /* operands are rounded; FP32 is as accurate as FMA */
  spec.bias = 1;
  spec.activation = JITCONV_RELU;

  jitconv_kernel *kernel;
  check(jitconv_compile(&spec, on_host ? "host" : NULL, &kernel)); /* null: the GPU of this machine */

  if (!on_host) device_open();
  int64_t output[4];
  check(jitconv_output_shape(&spec, output));
  float *const x = random_values(elements(input)), *const w = random_values(elements(weight));
  float *const b = random_values(weight[0]), *const y = allocate(elements(output));
  jitconv_launch_args args = {.struct_size = sizeof args};
  void *const device_x = copy_to_device(x, elements(input)), *const device_w = copy_to_device(w, elements(weight));
  void *const device_b = copy_to_device(b, weight[0]);
  args.x = device_x;
  args.w = device_w;
  args.bias = device_b;
  args.y = device_allocate((size_t)elements(output) * sizeof(float));
  args.workspace = device_allocate((size_t)jitconv_kernel_workspace_bytes(kernel));

  check(jitconv_kernel_launch(kernel, NULL, &args)); /* asynchronous, on the default stream */
  device_download(y, args.y, (size_t)elements(output) * sizeof(float));
  const int wrong = wrong_outputs(&spec, x, w, b, y, output);

  const int launches = on_host ? 1 : 20;
  device_start();
  for (int i = 0; i < launches; ++i) check(jitconv_kernel_launch(kernel, NULL, &args));
  const double ms = device_stop() / launches;
  const double flop = 2.0 * (double)(elements(output) * weight[1] * weight[2] * weight[3]);
  printf("%s%.3f ms, %.4g TFLOP/s, %d of %d sampled outputs wrong\n", jitconv_kernel_explain(kernel), ms,
         flop / ms * 1e-9, wrong, kSamples);

  device_free(device_x);
  device_free(device_w);
  device_free(device_b);
  device_free(args.y);
  device_free(args.workspace);
  free(x);
  free(w);
  free(b);
  free(y);
  jitconv_kernel_destroy(kernel);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
