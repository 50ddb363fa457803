"""Mutants of 1x1 filters: planes as MN-major operands, streamed weights, gathered pixels, channels of no whole slices."""
from mutants.mutant import File

limits = File("codegen/wgmma/limits.cpp", "planes_limits")
emit_load = File("codegen/wgmma/emit_load.cpp", "planes_emit_load")
emit_multiply = File("codegen/wgmma/emit_multiply.cpp", "planes_emit_multiply")
load_channels = File("host/models/load_channels.h", "planes_load_channels")
emit = File("codegen/pointwise/emit.cpp", "emit_pointwise")
emit_weights = File("codegen/pointwise/emit_weights.cpp", "emit_pointwise_weights")
tiling = File("codegen/pointwise/tiling.cpp", "pointwise_tiling")
copy_planes = File("templates/pointwise/copy_planes.cu.in", "pointwise_copy_planes")
pixels_of_lane = File("templates/pointwise/pixels_of_lane.cu.in", "pointwise_pixels_of_lane")
gather = File("templates/pointwise/gather_pixels.cu.in", "pointwise_gather")
store_gathered = File("templates/pointwise/store_gathered.cu.in", "pointwise_store_gathered")

MUTANTS = [
    # Planes of 16-bit NCHW tensors.
    limits("parts_across_images", "tiling.tile.images > 1 && input_plane % WgmmaPixels::kPartPixels != 0", "false",
             "a box of 64 pixels has zeros where the next image of the run should be"),
    limits("channels_of_next_group",
             "if (problem.c % geometry.chunk_channels() != 0 && problem.groups > 1) return false;\n", "",
             "channels of the next group are multiplied"),
    emit_load("images_start_at_the_first", '"part * kPartPixels % kPlane"', '"0"',
              "later parts of an image are its first again"),
    emit_multiply("part_of_channels", "kPartBytes, kCoreRows", "kCoreRows * kSwizzleBytes, kCoreRows",
                  "pixels behind the first 64 are those of other channels"),
    load_channels("last_channels_read", "i * kElements < channels", "true", "channels behind the last are multiplied"),
    emit_load("all_channels_there", "kChannels - c_first - slice * ", "kChannels - slice * ",
              "channels behind the last are those of the next pixel"),
    # Weights that come with each step.
    emit_weights("stage_given_back_early", '{"release_last", "if (lane == 0) barrier_arrive(empty + previous_stage);"}',
                 '{"release_last", ""}', "the producer warps wait for the last stage of a tile for ever"),
    emit("weights_still_read", "if (batch == 0 && tiling.streams_weights)", "if (batch == 7 && tiling.streams_weights)",
         "stages are never given back"),
    emit("read_without_the_others", "__syncwarp();  // all lanes have read", "// all lanes have read",
         "a stage is overwritten that a lane still reads"),
    tiling("weights_not_aligned", "streams_weights ? round_up(end, kSwizzledBoxAlignment) : end", "end",
           "TMA is asked for a swizzled box at an address that it does not take"),
    # Pixels that have a place of their own.
    copy_planes("images_behind_the_last", "tile * kTileImages + i < kImages ? tile * kTileImages + i : 0",
                "tile * kTileImages + i", "memory behind x is read"),
    pixels_of_lane("places_behind_the_tile", "pixel < kTilePixels ? @image_offset@", "true ? @image_offset@",
           "a lane reads behind its stage"),
    pixels_of_lane("stride_of_columns", "q * kStrideW", "q", "every column is multiplied instead of those that the stride meets"),
    gather("half_of_the_channels", "half * (kOperandChannels * kPixelPitch)", "half * kPixelPitch", "channels are multiplied twice"),
    store_gathered("pixels_behind_the_tile", "tile_pixel[i] >= kTilePixels || @behind@", "@behind@",
                   "outputs of the next tile are overwritten"),
    store_gathered("outputs_behind_the_last", "tile_pixel[i] >= kTilePixels || @behind@", "tile_pixel[i] >= kTilePixels",
                   "memory behind y, or the next image, is overwritten"),
]
