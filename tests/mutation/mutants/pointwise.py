"""Mutants of 1x1 filters: planes as MN-major operands, streamed weights, gathered pixels, channels of no whole slices."""
from mutants.mutant import File

limits = File("codegen/wgmma/limits.cpp", "planes_limits")
emit_load = File("codegen/wgmma/emit_load.cpp", "planes_emit_load")
emit_copy = File("codegen/wgmma/emit_copy.cpp", "planes_emit_load")
emit_multiply = File("codegen/wgmma/emit_multiply.cpp", "planes_emit_multiply")
load_channels = File("host/models/load_channels.h", "planes_load_channels")
pixels = File("codegen/wgmma/pixels.cpp", "aligned_planes_pixels")
copy_periods = File("templates/wgmma/copy_periods.cu.in", "aligned_planes_copies")
align_planes = File("templates/wgmma/align_planes.cu.in", "aligned_planes")
align_images = File("templates/wgmma/align_images.cu.in", "aligned_planes_of_images")
load_aligned = File("templates/wgmma/load_aligned.cu.in", "aligned_planes")
load_aligned_images = File("templates/wgmma/load_aligned_images.cu.in", "aligned_planes_of_images")
emit_align = File("codegen/wgmma/emit_align.cpp", "aligned_planes_emit")
emit = File("codegen/pointwise/emit.cpp", "emit_pointwise")
emit_weights = File("codegen/pointwise/emit_weights.cpp", "emit_pointwise_weights")
tiling = File("codegen/pointwise/tiling.cpp", "pointwise_tiling")
copy_planes = File("templates/pointwise/copy_planes.cu.in", "pointwise_copy_planes")
pixels_of_lane = File("templates/pointwise/pixels_of_lane.cu.in", "pointwise_pixels_of_lane")
gather = File("templates/pointwise/gather_pixels.cu.in", "pointwise_gather")
store_gathered = File("templates/pointwise/store_gathered.cu.in", "pointwise_store_gathered")

MUTANTS = [
    # Planes of 16-bit NCHW tensors.
    limits("parts_across_images", "geometry.tiling().tile.images > 1 && problem.input_plane() % WgmmaPixels::kPartPixels != 0", "false",
             "a box of 64 pixels has zeros where the next image of the run should be"),
    limits("channels_of_next_group",
             "if (problem.c % geometry.chunk_channels() != 0 && problem.groups > 1) return false;\n", "",
             "channels of the next group are multiplied"),
    emit_copy("images_start_at_the_first", '"part * kPartPixels % kPlane"', '"0"',
              "later parts of an image are its first again"),
    emit_multiply("part_of_channels", "kPartBytes, kCoreRows", "kCoreRows * kSwizzleBytes, kCoreRows",
                  "pixels behind the first 64 are those of other channels"),
    # Planes that start anywhere, which threads align.
    limits("windows_between_vectors", "(tile.images > 0 || tile.window % vector == 0)", "true",
             "boxes of windows start between multiples of 16 bytes"),
    limits("images_between_vectors", "period > 1 && problem.c % period == 0 &&", "period > 1 &&",
             "images are no whole 16 bytes apart, which no tensor map has"),
    pixels("no_vector_behind", "tiling.tile.columns + vector;", "tiling.tile.columns;",
           "the last vector of a channel is that of the next"),
    copy_periods("of_the_first_channels", "c_first / kPeriod,", "0,", "every step multiplies the first channels"),
    copy_periods("all_from_the_first", "start * (kH * kW) / kVectorElements", "0 * (kH * kW) / kVectorElements",
                 "all channels have the pixels of a few"),
    load_aligned("not_shifted", "start * kPlane % kVectorElements)", "0)", "pixels of other places are multiplied"),
    align_planes("not_swizzled", "(vector ^ channel) % kRowVectors", "vector % kRowVectors",
                 "multiplications find other vectors of a row"),
    align_planes("one_part", "vector / kRowVectors * kPartBytes", "0", "pixels behind the first 64 replace these"),
    load_aligned_images("one_image", "left < kVectorElements && image + 1 < kImages", "false",
                 "first pixels of an image are those behind the image before"),
    align_images("odd_planes", "return shift % 2 != 0 ? odd : even;", "return even;", "pixels are those before them"),
    align_images("half_a_word", "count == 1 ? 0xffffu : 0", "0", "the last pixel of an odd image is zero, or another's"),
    emit_align("items_cut", "ceil_div(box_channels(geometry) * run_vectors(geometry), kWarpSize)",
               "box_channels(geometry) * run_vectors(geometry) / kWarpSize", "the last vectors of a box are not aligned"),
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
