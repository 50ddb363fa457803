// See golden_cases.h. Chosen by what differs in the text, as oneDNN's lists are: first layers, tails, each kind of
// padding.
#include "golden/golden_cases.h"

#include <stdexcept>

#include "codegen/source.h"

namespace jitconv::test {

const std::vector<GoldenCase>& golden_cases() {
  using codegen::Family;
  static const std::vector<GoldenCase> cases = [] {
    std::vector<GoldenCase> list;
    const auto add = [&list](const char* name, const char* spec, Family family, const char* shows) {
      list.push_back({name, parse_spec(spec), family, shows, {}});
    };
    const auto transposes = [](const codegen::ConvPlan& plan) {
      const auto* wgmma = plan.tiling<codegen::WgmmaTiling>();
      return wgmma != nullptr && wgmma->transposes_input();
    };
    const auto reads_nchw = [](const codegen::ConvPlan& plan) {
      const auto* wgmma = plan.tiling<codegen::WgmmaTiling>();
      return wgmma != nullptr && !wgmma->transposes_input();
    };
    const auto brings_operands = [](const codegen::ConvPlan& plan) {
      const auto* wgmma = plan.tiling<codegen::WgmmaTiling>();
      return wgmma != nullptr && wgmma->stores_boxes() && wgmma->uses_im2col();
    };
    const auto aligns_pixels = [](const codegen::ConvPlan& plan) {
      const auto* wgmma = plan.tiling<codegen::WgmmaTiling>();
      return wgmma != nullptr && wgmma->aligns_pixels();
    };
    const auto aligns_images = [aligns_pixels](const codegen::ConvPlan& plan) {
      return aligns_pixels(plan) && plan.tiling<codegen::WgmmaTiling>()->tile.images > 1;
    };
    const auto takes_weights_as_they_lie = [](const codegen::ConvPlan& plan) {
      const auto* wgmma = plan.tiling<codegen::WgmmaTiling>();
      return wgmma != nullptr && wgmma->weights == codegen::WgmmaTiling::Weights::unpacked &&
             !wgmma->transposes_input();
    };
    const auto is_pointwise = [](const codegen::ConvPlan& plan) { return plan.family() == Family::pointwise; };
    add("first_layer_11x11_stride_4", "input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2 bias math=ieee",
        Family::direct, "constexpr int kStrideW = 4;");
    add("pointwise", "input=16,64,512,512 weight=128,64,1,1 math=ieee", Family::direct, "constexpr int kTaps = 1;");
    add("filter_3x3_bias_relu", "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu math=ieee", Family::direct,
        "activate(value)");
    add("filter_5x9_dilated_padded", "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 math=ieee",
        Family::direct, "constexpr int kDilationW = 3;");
    add("asymmetric_padding_leaky_relu",
        "input=4,13,30,45 weight=17,13,3,4 padding=1,2,0,3 activation=leaky_relu slope=0.1 math=ieee", Family::direct,
        "constexpr int kPadTop = 1;");
    add("depthwise_3x3_flat_store", "input=16,64,14,15 weight=64,1,3,3 groups=64", Family::depthwise,
        "the tile is one run");
    add("depthwise_3x3_vector_store", "input=16,64,512,512 weight=64,1,3,3 padding=1 groups=64", Family::depthwise,
        "one aligned vector of y");
    add("depthwise_row_store", "input=2,8,64,4099 weight=8,1,3,3 groups=8", Family::depthwise,
        "written by one warp each");
    add("depthwise_multiplier_2", "input=8,32,56,57 weight=64,1,3,3 padding=1 groups=32 bias", Family::depthwise,
        "constexpr int kMultiplier = 2;");
    add("depthwise_planes_bf16", "input=96,384,14,14 weight=384,1,3,3 padding=1 groups=384 bias dtype=bf16",
        Family::depthwise_planes, "element_pair(acc");
    add("depthwise_planes_odd_rows", "input=32,1152,7,7 weight=1152,1,5,5 padding=2 groups=1152 activation=relu",
        Family::depthwise_planes, "leave as one run of y");
    add("depthwise_planes_dgrad_stride_2",
        "input=32,672,14,14 weight=672,1,5,5 stride=2 padding=2 groups=672 operation=data_gradient dtype=bf16",
        Family::depthwise_planes, "place % kUpsamplingW");
    add("depthwise_dgrad_stride_2",
        "input=32,96,112,112 weight=96,1,3,3 stride=2 padding=1 groups=96 operation=data_gradient math=tf32",
        Family::depthwise, "constexpr int kLeadW = 1;");
    add("depthwise_nhwc_bf16_5x5",
        "input=32,240,28,28 weight=240,1,5,5 padding=2 groups=240 dtype=bf16 bias residual layout=nhwc",
        Family::depthwise_nhwc, "element_pair(acc");
    add("depthwise_nhwc_dilated_stride_2",
        "input=8,18,65,65 weight=18,1,3,3 padding=6 stride=2 dilation=6 groups=18 activation=relu layout=nhwc",
        Family::depthwise_nhwc, "constexpr int kRowStep = 3;");
    add("depthwise_nhwc_31x31", "input=8,128,56,56 weight=128,1,31,31 padding=15 groups=128 layout=nhwc",
        Family::depthwise_nhwc, "Filter rows that meet a row");
    add("grouped_stride_2", "input=32,128,56,56 weight=128,4,3,3 stride=2 padding=1 groups=32", Family::direct,
        "constexpr int kGroups = 32;");
    add("nhwc_f16_residual_gelu",
        "input=8,64,56,56 weight=64,64,3,3 padding=1 dtype=f16 math=ieee input_layout=nhwc output_layout=nhwc "
        "residual activation=gelu_erf",
        Family::direct, "residual[");
    add("nchw_to_nhwc_bf16_clamp",
        "input=8,32,28,28 weight=48,32,3,3 padding=1 dtype=bf16 math=ieee output_layout=nhwc activation=clamp "
        "clamp_min=-1 clamp_max=6",
        Family::direct, "kStoreVector");
    add("fallback_huge_dilation", "input=1,8,4000,4100 weight=8,8,3,3 dilation=1500,1600 math=ieee", Family::fallback,
        "constexpr int kDilationH = 1500;");
    add("one_dimensional", "input=64,64,1,524280 weight=128,64,1,3 stride=1,3 dilation=1,4 math=ieee", Family::direct,
        "long long");
    add("wgmma_3x3_bias_relu", "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu math=tf32", Family::wgmma,
        "k8.f32.tf32.tf32");
    add("wgmma_tf32x3", "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu", Family::wgmma,
        "promote(sum, partial);");
    add("wgmma_tf32x3_nhwc", "input=8,64,512,1024 weight=128,64,3,3 bias input_layout=nhwc output_layout=nhwc",
        Family::wgmma, "split_pixels(input,");
    add("wgmma_f16x3", "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu math=fp16x3", Family::wgmma,
        "store_f16_pixel<kSlices, kRunPixels>(destination, value[i], scale);");
    add("wgmma_f16x3_split_before", "input=8,64,512,256 weight=128,64,5,7 bias math=fp16x3", Family::wgmma,
        "store_f16_rows<2>(rows +");
    add("wgmma_f16x3_nhwc", "input=8,64,512,1024 weight=128,64,3,3 bias layout=nhwc math=fp16x3", Family::wgmma,
        "split_pixels(input,");
    add("wgmma_5x9_dilated", "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 math=tf32", Family::wgmma,
        "constexpr int kRowPadding = 20;");
    add("wgmma_first_layer_stride_4", "input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2 math=tf32",
        Family::wgmma, "kTapOrder[]");
    add("wgmma_patches", "input=32,3,224,224 weight=768,3,16,16 stride=16 bias dtype=bf16", Family::wgmma,
        "ElementVector<kLoad> vector = {};");
    add("wgmma_patches_nhwc", "input=32,3,224,224 weight=1024,3,14,14 stride=14 bias math=tf32 layout=nhwc",
        Family::wgmma, "place % kS * kDilationW;");
    add("wgmma_bf16_residual", "input=32,256,56,56 weight=256,256,3,3 padding=1 dtype=bf16 residual activation=relu",
        Family::wgmma, "value[e] += to_float(residual[");
    list.back().kind = reads_nchw;
    add("wgmma_bf16_bias_relu", "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu dtype=bf16", Family::wgmma,
        "bulk_copy_to_global(y_run");
    add("wgmma_grouped_stride_2", "input=32,256,28,28 weight=256,64,3,3 stride=2 padding=1 groups=4 dtype=f16",
        Family::wgmma, "constexpr int kGroups = 4;");
    list.back().kind = reads_nchw;
    add("wgmma_phase_pairs", "input=8,128,96,128 weight=256,128,3,3 stride=2 padding=1 bias dtype=bf16", Family::wgmma,
        "constexpr int kOdd = kPadLeft % 2");
    list.back().kind = reads_nchw;
    add("wgmma_phase_pairs_floats", "input=8,128,96,128 weight=256,128,3,3 stride=2 padding=1 bias math=tf32",
        Family::wgmma, "load_pair_if<0LL * kInputStrideC>(source, valid, value[i][0][0], value[i][1][0]);");
    list.back().kind = reads_nchw;
    add("wgmma_nhwc_bf16_bias_relu",
        "input=8,64,512,1024 weight=128,64,3,3 bias activation=relu dtype=bf16 input_layout=nhwc output_layout=nhwc",
        Family::wgmma, "tensor_im2col_to_shared(run");
    add("wgmma_nhwc_one_slice",
        "input=16,8,256,256 weight=64,8,3,3 padding=1 dtype=bf16 input_layout=nhwc output_layout=nhwc", Family::wgmma,
        "load_vector_if(");
    add("wgmma_boxes_of_rows",
        "input=16,16,1024,1024 weight=128,16,3,3 bias math=tf32 input_layout=nhwc output_layout=nhwc", Family::wgmma,
        "tensor_copy_to_global(&y_map");
    list.back().kind = brings_operands;
    add("wgmma_boxes_across_rows",
        "input=16,64,512,512 weight=128,64,1,1 math=tf32 input_layout=nhwc output_layout=nhwc", Family::wgmma,
        "tensor_copy_to_global(&y_map");
    list.back().kind = brings_operands;
    add("wgmma_im2col_stride_2",
        "input=16,256,20,84 weight=512,256,5,5 stride=2 padding=1 math=tf32 input_layout=nhwc output_layout=nhwc",
        Family::wgmma, "constexpr int kPhaseBytes");
    add("wgmma_im2col_raw_weights",
        "input=16,1024,14,14 weight=256,1024,1,1 bias math=tf32 input_layout=nhwc output_layout=nhwc", Family::wgmma,
        "tensor_copy_2d_to_shared(input + kWeightOffset");
    add("wgmma_nchw_to_nhwc_residual",
        "input=64,32,28,28 weight=48,32,3,3 padding=1 residual activation=relu output_layout=nhwc math=tf32",
        Family::wgmma, "residual_vector");
    add("pointwise_tf32", "input=16,64,56,56 weight=256,64,1,1 math=tf32", Family::pointwise, "Pixels output;");
    add("pointwise_tf32_residual",
        "input=32,64,28,28 weight=200,32,1,1 groups=2 bias residual activation=relu math=tf32", Family::pointwise,
        "residual_of[");
    list.back().kind = is_pointwise;
    add("pointwise_tf32_split", "input=1,2048,96,96 weight=16,2048,1,1 bias math=tf32", Family::pointwise, "_reduce(");
    list.back().kind = is_pointwise;
    add("pointwise_tf32_streamed", "input=2,1920,64,64 weight=640,1920,1,1 bias math=tf32", Family::pointwise,
        "tensor_copy_2d_to_shared(weights");
    add("pointwise_tf32_images", "input=96,960,7,7 weight=160,960,1,1 bias math=tf32", Family::pointwise,
        "kTileImages");
    add("pointwise_tf32_rows", "input=32,256,56,56 weight=512,256,1,1 stride=2 math=tf32", Family::pointwise,
        "kTilesOfImage");
    add("wgmma_planes", "input=2,1920,64,64 weight=640,1920,1,1 bias dtype=bf16", Family::wgmma, "kParts");
    add("wgmma_aligned_planes", "input=32,672,14,14 weight=112,672,1,1 bias dtype=bf16", Family::wgmma, "kPeriod = 2;");
    list.back().kind = aligns_pixels;
    add("wgmma_aligned_images", "input=96,576,7,7 weight=160,576,1,1 bias dtype=bf16", Family::wgmma, "joined(");
    list.back().kind = aligns_images;
    add("wgmma_nhwc_channels", "input=16,570,28,28 weight=106,570,1,1 dtype=bf16 layout=nhwc", Family::wgmma,
        "load_channels<4>(x_chunk");
    add("wgmma_copies", "input=16,16,1024,1024 weight=128,16,3,3 bias activation=relu math=tf32", Family::wgmma,
        "copy_pixels(");
    add("wgmma_copies_of_periods", "input=32,64,55,55 weight=16,64,1,1 bias math=tf32", Family::wgmma, "channel_copy(");
    add("wgmma_images", "input=16,512,7,7 weight=512,512,3,3 padding=1 math=tf32", Family::wgmma, "kImagePositions");
    add("wgmma_split", "input=1,512,14,14 weight=512,512,3,3 padding=1 bias math=tf32", Family::wgmma, "_reduce(");
    add("wgmma_raw_weights", "input=16,512,7,7 weight=2048,512,1,1 bias activation=relu math=tf32", Family::wgmma,
        "swizzled_operand<");
    list.back().kind = takes_weights_as_they_lie;
    add("wgmma_raw_weights_3x3", "input=16,64,6,60 weight=128,64,3,3 padding=1 math=tf32", Family::wgmma,
        "constexpr int kTaps = 9;");
    add("wgmma_pingpong", "input=16,64,56,56 weight=64,64,3,3 padding=1 bias activation=relu math=tf32", Family::wgmma,
        "take tiles in turn");
    add("wgmma_sliced_k", "input=8,1024,14,14 weight=256,1024,1,1 bias activation=relu math=tf32", Family::wgmma,
        "sync_pair();");
    add("wgmma_rows", "input=8,512,28,28 weight=256,512,1,1 stride=2 math=tf32", Family::wgmma,
        "/ kQ - kPadTop / kStrideH");
    add("wgmma_transposed_pixels", "input=16,256,20,84 weight=512,256,5,5 stride=2 padding=1 math=tf32", Family::wgmma,
        "rows[place_pixel * kRowPitch + slice]");
    list.back().kind = transposes;
    add("wgmma_transposed_pairs", "input=32,512,14,14 weight=1024,512,1,1 bias dtype=bf16", Family::wgmma,
        "operand_row_of_pairs(pair[i], swap != 0)");
    list.back().kind = transposes;
    add("wgmma_planes_of_images", "input=32,512,7,7 weight=2048,512,1,1 dtype=f16 input_layout=nhwc", Family::wgmma,
        "constexpr int kImageShift = 343;");
    add("wgmma_transposed_rows", "input=16,512,28,28 weight=256,512,1,1 stride=2 padding=1,0 math=tf32", Family::wgmma,
        "constexpr int kSourceFirst = 28;");
    list.back().kind = transposes;
    add("wgmma_folded_columns", "input=8,64,256,256 weight=16,64,5,5 padding=2 bias activation=relu math=tf32",
        Family::wgmma, "constexpr int kFoldedColumns = 4;");
    add("wgmma_folded_columns_nhwc",
        "input=16,64,128,128 weight=3,64,7,7 padding=3 bias activation=relu dtype=bf16 layout=nhwc", Family::wgmma,
        "for (int row = k + e; row < kHalfRows; row += kWarpK)");
    add("dgrad_wgmma_3x3", "input=8,128,512,1024 weight=64,128,3,3 operation=data_gradient math=tf32", Family::wgmma,
        "const int tap_of_w = kR * kS - 1 - (r * kS + s);");
    add("dgrad_wgmma_rows_3x3", "input=8,64,512,1024 weight=128,64,3,3 operation=data_gradient math=tf32",
        Family::wgmma_rows, "input + kPixelBytes + r * kRowWeightBytes");
    add("dgrad_wgmma_rows_folded", "input=16,16,1024,1024 weight=128,16,3,3 operation=data_gradient math=tf32",
        Family::wgmma_rows, "constexpr int kFoldedColumns = 4;");
    add("wgmma_rows_amid_sectors", "input=16,128,1022,1021 weight=16,128,3,3 padding=1 bias activation=relu math=tf32",
        Family::wgmma_rows, "constexpr int kAlignmentPadding = 8;");
    add("dgrad_stride_2", "input=32,128,56,56 weight=256,128,3,3 stride=2 padding=1 operation=data_gradient math=tf32",
        Family::wgmma, "phases of columns are neighbouring channels of the tile");
    add("dgrad_stride_2_nhwc",
        "input=32,128,56,56 weight=256,128,3,3 stride=2 padding=1 operation=data_gradient dtype=bf16 layout=nhwc bias "
        "activation=relu",
        Family::wgmma, "switch (tile.k_tile / kTilesOfPhase)");
    add("dgrad_stride_2_interleaved",
        "input=32,130,56,56 weight=256,130,3,3 stride=2 padding=1 operation=data_gradient math=tf32", Family::wgmma,
        "Stores pixels of dx");
    add("dgrad_transposed_weights",
        "input=32,1472,14,14 weight=768,1472,1,1 operation=data_gradient dtype=bf16 layout=nhwc", Family::wgmma,
        "multiply_transposed(sum, weights + ");
    add("dgrad_pointwise", "input=8,256,14,14 weight=256,256,1,1 operation=data_gradient math=tf32", Family::wgmma,
        "value[k][c] = source[");
    list.back().kind = takes_weights_as_they_lie;
    add("dgrad_activation",
        "input=32,64,56,56 weight=64,64,3,3 padding=1 operation=data_gradient dtype=bf16 layout=nhwc "
        "dy_activation=gelu_erf",
        Family::wgmma, "activation_backward(to_float(of_dy.at[i])");
    add("wgrad_wgmma_3x3", "input=8,64,512,1024 weight=128,64,3,3 operation=weight_gradient math=tf32 bias",
        Family::wgrad_wgmma, "add_sums(sum[0]");
    add("wgrad_wgmma_tf32x3", "input=8,64,512,1024 weight=128,64,3,3 operation=weight_gradient bias",
        Family::wgrad_wgmma, "promote(sum_of_tap, partial);");
    add("wgrad_wgmma_bf16",
        "input=32,64,56,56 weight=64,64,3,3 padding=1 operation=weight_gradient dtype=bf16 output_dtype=f32",
        Family::wgrad_wgmma, "pixels_from(word, kShifts[copy])");
    add("wgrad_wgmma_periods",
        "input=8,16,127,127 weight=64,16,3,3 padding=1 operation=weight_gradient dtype=bf16 bias", Family::wgrad_wgmma,
        "constexpr int kDyPeriod = 8;");
    add("wgrad_wgmma_nhwc",
        "input=8,64,512,256 weight=128,64,5,7 operation=weight_gradient dtype=bf16 layout=nhwc bias",
        Family::wgrad_wgmma, "multiply_pixels(sum[0], dy_pixels");
    add("wgrad_wgmma_planes", "input=32,1472,14,14 weight=768,1472,1,1 operation=weight_gradient math=tf32 bias",
        Family::wgrad_wgmma, "constexpr int kPartBlocks = 4;");
    add("wgrad_wgmma_packed_planes",
        "input=32,1472,14,14 weight=768,1472,1,1 operation=weight_gradient dtype=bf16 bias", Family::wgrad_wgmma,
        "pack_dy(dy, packed_dy, block - ");
    add("wgrad_wgmma_packed_nhwc",
        "input=128,256,49,49 weight=256,128,3,3 stride=2 groups=2 operation=weight_gradient dtype=bf16",
        Family::wgrad_wgmma, "constexpr int kPackedW = 50;");
    add("wgrad_wgmma_joined",
        "input=8,128,56,56 weight=128,4,3,3 padding=1 groups=32 operation=weight_gradient math=tf32 bias",
        Family::wgrad_wgmma, "constexpr int kJoinedGroups = 16;");
    add("wgrad_wgmma_exchanged",
        "input=6,32,352,352 weight=4,32,3,3 padding=1 operation=weight_gradient math=tf32 bias", Family::wgrad_wgmma,
        "(kTaps - 1 - tap)");
    add("wgrad_wgmma_first_layer",
        "input=32,3,224,224 weight=64,3,7,7 stride=2 padding=3 operation=weight_gradient math=tf32 bias",
        Family::wgrad_wgmma, "x_r0 + block * 2 * kUnitRows");
    add("wgrad_first_layer",
        "input=32,3,224,224 weight=64,3,7,7 stride=2 padding=3 operation=weight_gradient bias math=ieee", Family::wgrad,
        "partial_sums");
    add("wgrad_depthwise_3x3", "input=16,64,512,512 weight=64,1,3,3 groups=64 operation=weight_gradient",
        Family::wgrad_depthwise, "partial_sums");
    return list;
  }();
  return cases;
}

codegen::ConvPlan golden_plan(const GoldenCase& one) {
  const Target target = parse_target("sm_90a");
  if (!one.kind) return codegen::make_plan(one.spec, target);
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(one.spec, target, SIZE_MAX))
    if (one.kind(plan)) return plan;
  throw std::logic_error("no plan for " + one.name);
}

std::string golden_source(const GoldenCase& one) { return codegen::generate(golden_plan(one)).text; }

}  // namespace jitconv::test
