/*
 * Device memory, copies and a timer for the examples, in C11 and C++: calls of the CUDA driver, which is opened with
 * dlopen, so that the examples build without CUDA's headers. For jitconv's host target device memory is the process's
 * own. Not part of jitconv: a program that links the CUDA runtime uses cudaMalloc, cudaMemcpy and cudaEvent_t instead.
 * A call that fails ends the program with a message.
 */
#ifndef JITCONV_EXAMPLES_DEVICE_H
#define JITCONV_EXAMPLES_DEVICE_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* NOLINTBEGIN(modernize-use-nullptr): C has no nullptr. */

/** The driver's functions that the examples call, null for the host target. CUdeviceptr is a 64-bit integer; contexts,
 *  streams and events are pointers; a CUresult is 0 for success. */
typedef struct DeviceApi {
  int (*init)(unsigned flags);
  int (*retain_primary_context)(void **context, int device);
  int (*set_current_context)(void *context);
  int (*error_string)(int result, const char **text);
  int (*allocate)(uint64_t *address, size_t bytes);
  int (*release)(uint64_t address);
  int (*copy_to_device)(uint64_t to, const void *from, size_t bytes);
  int (*copy_from_device)(void *to, uint64_t from, size_t bytes);
  int (*create_event)(void **event, unsigned flags);
  int (*record_event)(void *event, void *stream);
  int (*wait_for_event)(void *event);
  int (*elapsed_ms)(float *ms, void *begin, void *end);
} DeviceApi;

static DeviceApi device_api;
static void *device_events[2];       /* begin and end of what device_start() and device_stop() time */
static struct timespec device_begin; /* the same on the host */

static inline void device_check(int result, const char *call) {
  const char *reason = NULL;
  if (result == 0) return;
  if (device_api.error_string != NULL) device_api.error_string(result, &reason);
  fprintf(stderr, "%s: %s\n", call, reason != NULL ? reason : "failed");
  exit(EXIT_FAILURE);
}

/* dlsym() returns an object pointer; C has no cast from it to a function's, so the bytes are copied. */
static inline void device_find(void *library, const char *name, void *function) {
  void *const found = dlsym(library, name);
  if (found == NULL) device_check(1, name);
  memcpy(function, &found, sizeof found);
}

/** Makes device 0 current, jitconv's default. Without this call device memory is the process's own. */
static inline void device_open(void) {
  DeviceApi api;
  void *context = NULL;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) device_check(1, "libcuda.so.1 (the NVIDIA driver)");
  device_find(library, "cuInit", &api.init);
  device_find(library, "cuDevicePrimaryCtxRetain", &api.retain_primary_context);
  device_find(library, "cuCtxSetCurrent", &api.set_current_context);
  device_find(library, "cuGetErrorString", &api.error_string);
  device_find(library, "cuMemAlloc_v2", &api.allocate);
  device_find(library, "cuMemFree_v2", &api.release);
  device_find(library, "cuMemcpyHtoD_v2", &api.copy_to_device);
  device_find(library, "cuMemcpyDtoH_v2", &api.copy_from_device);
  device_find(library, "cuEventCreate", &api.create_event);
  device_find(library, "cuEventRecord", &api.record_event);
  device_find(library, "cuEventSynchronize", &api.wait_for_event);
  device_find(library, "cuEventElapsedTime", &api.elapsed_ms);
  device_api = api;
  device_check(api.init(0), "cuInit");
  device_check(api.retain_primary_context(&context, 0), "cuDevicePrimaryCtxRetain");
  device_check(api.set_current_context(context), "cuCtxSetCurrent");
  device_check(api.create_event(&device_events[0], 0), "cuEventCreate");
  device_check(api.create_event(&device_events[1], 0), "cuEventCreate");
}

/** `bytes` bytes at a multiple of 256, or null for none. */
static inline void *device_allocate(size_t bytes) {
  uint64_t address = 0;
  if (bytes == 0) return NULL;
  if (device_api.allocate != NULL) {
    device_check(device_api.allocate(&address, bytes), "cuMemAlloc");
    return (void *)(uintptr_t)address;
  }
  void *const memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  device_check(memory == NULL, "aligned_alloc");
  return memory;
}

/** Null is allowed. */
static inline void device_free(void *memory) {
  if (device_api.release == NULL) {
    free(memory);
  } else if (memory != NULL) {
    device_check(device_api.release((uint64_t)(uintptr_t)memory), "cuMemFree");
  }
}

static inline void device_upload(void *device, const void *host, size_t bytes) {
  if (device_api.copy_to_device == NULL) {
    memcpy(device, host, bytes);
  } else {
    device_check(device_api.copy_to_device((uint64_t)(uintptr_t)device, host, bytes), "cuMemcpyHtoD");
  }
}

/** Returns when everything on the default stream is done and copied. */
static inline void device_download(void *host, const void *device, size_t bytes) {
  if (device_api.copy_from_device == NULL) {
    memcpy(host, device, bytes);
  } else {
    device_check(device_api.copy_from_device(host, (uint64_t)(uintptr_t)device, bytes), "cuMemcpyDtoH");
  }
}

/** Starts timing what follows on the default stream; on the host, what follows in the program. */
static inline void device_start(void) {
  if (device_api.record_event != NULL) {
    device_check(device_api.record_event(device_events[0], NULL), "cuEventRecord");
  } else {
    clock_gettime(CLOCK_MONOTONIC, &device_begin);
  }
}

/** Waits for it and returns milliseconds since device_start(). */
static inline double device_stop(void) {
  if (device_api.record_event != NULL) {
    float ms = 0;
    device_check(device_api.record_event(device_events[1], NULL), "cuEventRecord");
    device_check(device_api.wait_for_event(device_events[1]), "cuEventSynchronize");
    device_check(device_api.elapsed_ms(&ms, device_events[0], device_events[1]), "cuEventElapsedTime");
    return (double)ms;
  }
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - device_begin.tv_sec) * 1e3 + (double)(end.tv_nsec - device_begin.tv_nsec) * 1e-6;
}

/* NOLINTEND(modernize-use-nullptr) */

#endif /* JITCONV_EXAMPLES_DEVICE_H */
