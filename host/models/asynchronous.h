// What models of sm_90a's asynchronous instructions call: barrier objects, bulk copies, warpgroup multiplications. Part
// of every kernel's prelude; functions of their own, so that a return address in the kernel is what findings name.
#pragma once

JITCONV_HOOK void jitconv_phase_init(void* barrier, int arrivals) {
  jitconv_api->phase_init(barrier, arrivals, JITCONV_PC);
}
JITCONV_HOOK void jitconv_phase_init_visible() { jitconv_api->phase_init_visible(JITCONV_PC); }
JITCONV_HOOK void jitconv_phase_arrive(void* barrier, int announced) {
  jitconv_api->phase_arrive(barrier, announced, JITCONV_PC);
}
JITCONV_HOOK void jitconv_phase_wait(void* barrier, int parity) {
  jitconv_api->phase_wait(barrier, parity, JITCONV_PC);
}
JITCONV_HOOK void jitconv_copy_bulk(void* destination, const void* source, int bytes, void* barrier) {
  jitconv_api->copy_bulk(destination, source, bytes, barrier, JITCONV_PC);
}
JITCONV_HOOK void jitconv_copy_tensor(void* destination, const jitconv_host_tensor_map* map, unsigned rank, int i0,
                                      int i1, int i2, void* barrier) {
  const int indices[3] = {i0, i1, i2};
  jitconv_api->copy_tensor(destination, map, indices, rank, nullptr, barrier, JITCONV_PC);
}
JITCONV_HOOK void jitconv_copy_tensor_4d(void* destination, const jitconv_host_tensor_map* map, int i0, int i1, int i2,
                                         int i3, void* barrier) {
  const int indices[4] = {i0, i1, i2, i3};
  jitconv_api->copy_tensor(destination, map, indices, 4, nullptr, barrier, JITCONV_PC);
}
JITCONV_HOOK void jitconv_copy_tensor_im2col(void* destination, const jitconv_host_tensor_map* map, int c, int w, int h,
                                             int n, int right, int down, void* barrier) {
  const int indices[4] = {c, w, h, n}, offset[2] = {right, down};
  jitconv_api->copy_tensor(destination, map, indices, 4, offset, barrier, JITCONV_PC);
}
JITCONV_HOOK void jitconv_store_bulk(void* destination, const void* source, int bytes) {
  jitconv_api->store_bulk(destination, source, bytes, JITCONV_PC);
}
JITCONV_HOOK void jitconv_store_tensor(const jitconv_host_tensor_map* map, int i0, int i1, int i2, int i3,
                                       const void* source) {
  const int indices[4] = {i0, i1, i2, i3};
  jitconv_api->store_tensor(map, indices, 4, source, JITCONV_PC);
}
JITCONV_HOOK void jitconv_store_bulk_commit() { jitconv_api->store_bulk_commit(JITCONV_PC); }
JITCONV_HOOK void jitconv_store_bulk_wait(unsigned groups) { jitconv_api->store_bulk_wait(groups, JITCONV_PC); }
JITCONV_HOOK void jitconv_fence_async_proxy() { jitconv_api->fence_async_proxy(JITCONV_PC); }

JITCONV_HOOK void jitconv_multiply(jitconv_host_multiply_type type, float* sum, unsigned accumulators,
                                   unsigned long long a, unsigned long long b, int accumulate) {
  const jitconv_host_multiply call = {type, sum, accumulators, accumulate, a, b, nullptr, 0, 0};
  jitconv_api->multiply(&call, JITCONV_PC);
}
JITCONV_HOOK void jitconv_multiply_pixels(jitconv_host_multiply_type type, float* sum, unsigned accumulators,
                                          unsigned long long a, unsigned long long b, int accumulate) {
  const jitconv_host_multiply call = {type, sum, accumulators, accumulate, a, b, nullptr, 1, 1};
  jitconv_api->multiply(&call, JITCONV_PC);
}
JITCONV_HOOK void jitconv_multiply_transposed(jitconv_host_multiply_type type, float* sum, unsigned accumulators,
                                              unsigned long long a, unsigned long long b, int accumulate) {
  const jitconv_host_multiply call = {type, sum, accumulators, accumulate, a, b, nullptr, 1, 0};
  jitconv_api->multiply(&call, JITCONV_PC);
}
JITCONV_HOOK void jitconv_multiply_planes(jitconv_host_multiply_type type, float* sum, unsigned accumulators,
                                          unsigned long long a, unsigned long long b, int accumulate) {
  const jitconv_host_multiply call = {type, sum, accumulators, accumulate, a, b, nullptr, 0, 1};
  jitconv_api->multiply(&call, JITCONV_PC);
}
JITCONV_HOOK void jitconv_multiply_registers(jitconv_host_multiply_type type, float* sum, unsigned accumulators,
                                             const unsigned* a, unsigned long long b, int accumulate) {
  const jitconv_host_multiply call = {type, sum, accumulators, accumulate, 0, b, a, 0, 0};
  jitconv_api->multiply(&call, JITCONV_PC);
}
JITCONV_HOOK void jitconv_multiply_begin() { jitconv_api->multiply_begin(JITCONV_PC); }
JITCONV_HOOK void jitconv_multiply_commit() { jitconv_api->multiply_commit(JITCONV_PC); }
JITCONV_HOOK void jitconv_multiply_wait(unsigned groups) { jitconv_api->multiply_wait(groups, JITCONV_PC); }
JITCONV_HOOK void jitconv_set_registers(unsigned registers, int more) {
  jitconv_api->set_registers(registers, more, JITCONV_PC);
}
