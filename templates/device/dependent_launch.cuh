// Overlapped launches (sm_90): if the host allows it, a kernel may start before the one before it in the stream has
// finished.

// From here on the next kernel may start, once every block has come here; what it may read it must wait for.
__device__ __forceinline__ void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Returns when the kernel before has finished and what it wrote can be seen; at once if this one was launched plainly,
// after it. A load that must come behind it must not be through a pointer to const __restrict__: such loads are taken
// for independent of everything.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
