"""All mutants, in the order they are run: what is quick to build first."""
from mutants import (cache, depthwise, depthwise_nhwc, depthwise_planes, direct, exchanged_gradients, f16_pairs,
                     fallback, gather_patches, generator, gradient_operands, gradient_runs, gradients, host,
                     joined_groups, pointwise, pointwise_gradients, runtime, split_gradients, stored_phases, wgmma,
                     wgmma_rows)

# Their texts are no longer there; what they break is now written otherwise, and they wait to be written anew.
TO_WRITE_ANEW = {
    "direct_plan_alignment_ignored",
    "plan_shared_bytes_dropped",
    "plan_threads_of_warp_count",
    "tiling_depthwise_flat_without_phase",
    "wgmma_candidates_odd_stages",
    "wgmma_geometry_box_too_large",
    "wgmma_geometry_images_without_padding",
    "wgmma_geometry_rows_between_met",
    "wgmma_geometry_second_run_not_aligned",
    "wgmma_geometry_unpacked_rows_not_vectors",
    "wgmma_memory_swizzled_box_not_aligned",
}

MUTANTS = [
    mutant
    for part in (cache, runtime, host, direct, depthwise, depthwise_nhwc, depthwise_planes, fallback, wgmma, wgmma_rows,
                 f16_pairs, gather_patches, pointwise, gradients, pointwise_gradients, exchanged_gradients,
                 gradient_operands, gradient_runs, split_gradients, stored_phases, joined_groups, generator)
    for mutant in part.MUTANTS
    if mutant.name not in TO_WRITE_ANEW
]
