// Prints the wgrad_wgmma family: templates/wgrad_wgmma/.
#include "codegen/wgrad_wgmma/emit.h"

#include "codegen/arithmetic.h"
#include "codegen/reduce/tiling.h"
#include "codegen/text/layout_comment.h"
#include "codegen/wgrad_wgmma/family.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Constants of shared memory where operand rows are pixels.
void add_row_constants(Constants& c, const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::int64_t element = geometry.problem().input.element_bytes();
  c.group(fmt::format("Shared memory: a ring of rows of x, {}{}, and stages of dy",
                      tiling.splits_operands ? "[part]" : "",
                      tiling.gathers() ? "[unit][column of the product]" : "[phase][shift][unit][c]"));
  c.add("kXRows", tiling.x_rows).add("kXRowBytes", geometry.x_row_bytes());
  if (tiling.splits_operands)
    c.add("kXPartRows", geometry.x_part_bytes() / 16, "of 16 bytes, one part's of a row of x");
  if (tiling.gathers())
    c.add("kColumns", tiling.columns(), "of an instruction: input channels at each filter column");
  else
    c.add("kCopies", static_cast<std::int64_t>(geometry.shifts().size()), "of a phase, each shifted differently");
  c.add("kUnits", geometry.units()).add("kUnitRows", geometry.unit_rows(), "of 16 bytes, one of them unused");
  if (!tiling.gathers()) c.add("kFirstShift", geometry.first_shift(), "pixels from q to the first unit");
  const int loads = geometry.loads(), of_thread = static_cast<int>(ceil_div(loads, 128));
  c.add("kLoads", loads, "units of a row of x");
  if (tiling.orders()) {
    c.add("kRawRows", tiling.raw_rows, "of x as they lie in memory").add("kRawPitch", geometry.raw_pitch(), "elements");
    c.add("kRawBytes", geometry.raw_bytes()).add("kRawElements", geometry.raw_slot_bytes() / element);
    if (geometry.x_period() > 1)
      c.add("kXPeriod", geometry.x_period(), "channels whose planes start at different places within 16 bytes")
          .add("kRawBoxElements", geometry.raw_box_bytes() / element);
    c.add("kRawFirstByte", geometry.raw_first_byte());
    c.add("kDyBytes", element * tiling.block_k() * geometry.dy_pitch());
  } else {
    c.add("kLoadsOfThread", of_thread);
    c.add("kLoadBatch", std::min(of_thread, geometry.load_batch()), "units of a thread in flight");
  }
  if (!tiling.gathers() && !(tiling.orders() && tiling.x_vectors))
    c.add("kLoadPixels",
          tiling.x_vectors ? 2 * geometry.unit_pixels() : geometry.unit_pixels() + geometry.shifts().back(),
          "for a unit");
  c.add("kStages", tiling.stages).add("kStageElements", geometry.stage_bytes() / element);
  c.add("kDyPitch", geometry.dy_pitch(), "elements");
  if (geometry.dy_period() > 1)
    c.add("kDyPeriod", geometry.dy_period(), "channels whose planes start at different places within 16 bytes")
        .add("kDyBoxElements", tiling.block_k() / geometry.dy_period() * geometry.dy_pitch());
  if (!tiling.orders()) c.add("kCopyVector", tiling.copy_vector, "elements of a copy");
}

std::string constants(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const View::Strides &x = problem.input.stride, &dy = problem.output.stride;
  Constants c;
  if (tiling.exchanges)
    c.group("Exchanged: below, x is dy and dy is x; C are output channels, K input channels, and taps run backwards");
  if (tiling.joins_groups > 1)
    c.group(fmt::format("Joined: below, a group is {} of those asked for, with all of their channels",
                        tiling.joins_groups));
  add_problem_constants(c, problem);
  c.add("kGroups", problem.groups).add("kChannels", problem.c, "of a group").add("kGroupK", problem.k);
  c.add("kOutputChannels", problem.output_channels());
  if (!tiling.copies_operands()) {
    c.add("kInputStrideN", x.n).add("kInputStrideC", x.c).add("kInputStrideH", x.h).add("kInputStrideW", x.w);
    c.add("kOutputStrideN", dy.n).add("kOutputStrideC", dy.c).add("kOutputStrideH", dy.h);
    if (problem.output.layout() == Layout::nhwc) c.add("kOutputStrideW", dy.w);
  }

  c.group("Tile of a block: output channels, input channels, filter rows and columns");
  c.add("kBlockK", tiling.block_k()).add("kBlockC", tiling.block_c);
  c.add("kBlockR", tiling.block_r).add("kBlockS", tiling.block_s);
  c.add("kTilesK", geometry.tiles_k()).add("kTilesC", geometry.tiles_c());
  c.add("kTilesR", geometry.tiles_r()).add("kTilesS", geometry.tiles_s());

  c.group("Strips of pixels, and the blocks that share them");
  c.add("kRowPixels", tiling.row_pixels).add("kDepth", geometry.depth(), "pixels of a multiplication");
  c.add("kStripRows", tiling.strip_rows);
  c.add("kStripsOfRow", geometry.strips_of_row()).add("kStripsOfColumn", geometry.strips_of_column());
  c.add("kRowStep", geometry.row_step(), "rows from step to step");
  c.add("kNewRows", geometry.new_rows(), "of x in a step that is not its strip's first");
  c.add("kStrips", geometry.strips()).add("kSplits", tiling.splits);
  c.add("kSummedStrips", tiling.summed_strips, "whose products one accumulator sums up, or");
  c.add("kPieceRows", tiling.piece_rows, "of a strip's").add("kPieces", geometry.pieces(), "of a strip");
  c.add("kSums", geometry.sums(), "of a block");
  c.add("kPartialSumStride", tiling.sum_stride(problem), "floats from a split to the next");
  if (problem.epilogue.bias) c.add("kBiasSums", problem.weight_elements(), "floats before those of db");

  c.group("The block");
  c.add("kThreads", tiling.threads());
  c.add("kConsumerWarps", 4 * WgradWgmmaTiling::kConsumers);
  c.add("kProducerWarps", tiling.producer_warps());
  if (tiling.orders()) c.add("kOrderWarps", tiling.order_warps(), "that put x in order");
  c.add("kConsumerRegisters", tiling.consumer_registers()).add("kProducerRegisters", tiling.producer_registers());

  if (tiling.takes_boxes())
    add_box_constants(c, geometry);
  else if (tiling.takes_planes())
    add_plane_constants(c, geometry);
  else
    add_row_constants(c, geometry);
  c.add("kDyFirstByte", geometry.dy_first_byte()).add("kBarriersFirstByte", geometry.barriers_first_byte());
  return c.text();
}

std::string asserts(const KernelPlan& kernel, const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  Lines lines;
  lines.add("// The numbers above are redundant; they must agree.");
  lines.add("static_assert(kBlockC <= 256 && kRowPixels % kDepth == 0 && kXRows >= kBlockR + kNewRows);");
  lines.add(tiling.takes_boxes()
                ? "static_assert(kBlockC % 8 == 0 && kColumns <= 256);\n"
                  "static_assert(kBoxBytes % kSwizzleAtomBytes == 0 && kBoxBytes >= kBoxPixels * kRowBytes);\n"
                  "static_assert(kXRowBytes == kBoxes * kBoxBytes && kStageElements == kBlockK * kRowPixels);"
            : tiling.takes_planes()
                ? "static_assert(kBlockC % 8 == 0 && kPartPixels * sizeof(Element) == kSwizzleBytes);\n"
                  "static_assert(kXRowBytes == kParts * kPartBytes && kRowPixels == kParts * kPartPixels);"
            : tiling.gathers() ? "static_assert(kColumns >= kChannels * kS && kColumns % 8 == 0 && kColumns <= 256);\n"
                                 "static_assert(kUnitRows > kColumns && kXRowBytes % 128 == 0);"
                               : "static_assert(kBlockC % 8 == 0 && kUnitRows > kBlockC && kXRowBytes % 128 == 0);");
  lines.add("static_assert(kDyFirstByte == kXRows * kXRowBytes);");
  if (geometry.dy_period() > 1)
    lines.add(
        "static_assert(kDyPeriod * kDyBoxElements == kBlockK * kDyPitch && kHalfRows % kDyPeriod == 0);\n"
        "static_assert(kDyBoxElements * sizeof(Element) % 128 == 0);");
  if (geometry.x_period() > 1)
    lines.add(
        "static_assert(kBlockC % kXPeriod == 0 && kRawBoxElements * sizeof(Element) % 128 == 0);\n"
        "static_assert(kRawElements == kXPeriod * kRawBoxElements);");
  if (tiling.splits_operands) lines.add("static_assert(kXRowBytes == 2 * kOperandRowBytes * kXPartRows);");
  lines.add(
      "static_assert(32 * (kProducerWarps * kProducerRegisters + kConsumerWarps * kConsumerRegisters) <= 65536);");
  lines.add(fmt::format("static_assert(kBarriersFirstByte + 16 * (kXRows + kStages{}) <= {});",
                        tiling.orders() ? " + kRawRows" : "", kernel.launch.shared_bytes));
  return lines.text();
}

/// Arrivals that fill a row of x: of warps that load it or put it in order, or of the thread that copies.
std::string_view arrivals_of_x(const WgradWgmmaTiling& tiling) {
  return tiling.copies_operands() ? "1" : tiling.orders() ? "kOrderWarps" : "kProducerWarps";
}

/// The same of a stage of dy.
std::string_view arrivals_of_dy(const WgradWgmmaTiling& tiling) {
  return tiling.threads_load() ? "kProducerWarps" : "1";
}

std::string layout_comment(const WgradWgmmaTiling& tiling) {
  const bool copied = !tiling.threads_load();
  LayoutComment comment;
  comment.memory("0", "a ring of kXRows rows of x").memory("kDyFirstByte", "kStages stages of dy");
  if (tiling.orders()) comment.memory("kRawFirstByte", "a ring of kRawRows rows of x as they lie in memory");
  comment.memory("kBarriersFirstByte", "barriers");
  comment.barrier("x_full[kXRows]", arrivals_of_x(tiling),
                  tiling.copies_operands() ? "TMA, by bytes" : "a producer warp", "consumers, for a row of x");
  comment.barrier("x_empty[kXRows]", "kConsumerWarps", "a warp that has multiplied with a row",
                  "the producer, for a free slot");
  comment.barrier("dy_full[kStages]", arrivals_of_dy(tiling), copied ? "TMA, by bytes" : "a producer warp",
                  "consumers, for a step");
  comment.barrier("dy_empty[kStages]", "kConsumerWarps", "a warp that has multiplied a step",
                  "the producer, for a free stage");
  if (tiling.orders()) {
    comment.barrier("raw_full[kRawRows]", "1", "TMA, by bytes", "the producer, to put a row in order");
    comment.barrier("raw_empty[kRawRows]", "kOrderWarps", "a warp that has put a row in order",
                    "the thread that copies");
  }
  return comment.text();
}

/// Planes of a dense NCHW tensor as TMA sees them, those of a period as one row; a copy brings a run of pixels of each
/// of a block's planes, or of those that start at one place within 16 bytes.
TensorMapShape planes(const View& view, std::int64_t plane, std::int64_t channels, std::int64_t images, int run,
                      int block) {
  const std::int64_t period = plane_period_of(view);
  TensorMapShape map;
  map.rank = 3;
  map.element_bytes = static_cast<int>(view.element_bytes());
  map.extents = {(period - 1) * view.stride.c + plane, channels / period, images};
  map.strides = {1, period * view.stride.c, view.stride.n};
  map.box = {run, block / static_cast<int>(period), 1};
  return map;
}

/// The same of rows, or of phases of a row, which follow each other: a copy brings columns of a row of each of a
/// block's planes. Channels of all images are one axis.
TensorMapShape rows(const Problem& problem, int run, int block) {
  const std::int64_t phases = problem.columns.stride;
  TensorMapShape map;
  map.rank = 3;
  map.element_bytes = static_cast<int>(problem.input.element_bytes());
  map.extents = {ceil_div(problem.columns.input, phases), problem.rows.input * phases,
                 problem.input_channels() * problem.n};
  map.strides = {1, problem.input.stride.h / phases, problem.input.stride.c};
  map.box = {run, static_cast<int>(phases), block};
  map.rounds_to_tf32 = problem.arithmetic == Arithmetic::tf32;
  return map;
}

std::vector<Argument> parameters(const WgradGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const Argument sums = {tiling.partial_sums, "float* __restrict__", "partial_sums"};
  if (tiling.takes_boxes())
    return {tensor_map(problem.input.tensor, "x", box_of_x(geometry)),
            tensor_map(problem.output.tensor, "dy", box_of_dy(geometry)), sums};
  if (tiling.takes_planes())
    return {tensor_map(problem.input.tensor, "x", plane_of_x(geometry)),
            tensor_map(problem.output.tensor, "dy", plane_of_dy(geometry)), sums};
  if (!tiling.orders())
    return {{problem.input.tensor, "const Element* __restrict__", "x"},
            {problem.output.tensor, "const Element* __restrict__", "dy"},
            sums};
  const TensorMapShape x = tiling.x_vectors ? rows(problem, geometry.raw_pitch(), tiling.block_c)
                                            : planes(problem.input, problem.input_plane(), problem.input_channels(),
                                                     problem.n, geometry.raw_pitch(), tiling.block_c);
  return {tensor_map(problem.input.tensor, "x", x),
          tensor_map(problem.output.tensor, "dy",
                     planes(problem.output, problem.output_plane(), problem.output_channels(), problem.n,
                            geometry.dy_pitch(), tiling.block_k())),
          sums};
}

/// The multiplication whose first operand is in registers.
std::string_view multiplication(Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::tf32 || splits_floats(arithmetic)) return "device/multiply_registers_tf32.cuh";
  return arithmetic == Arithmetic::f16 ? "device/multiply_registers_f16.cuh" : "device/multiply_registers_bf16.cuh";
}

/// The same of two operands in shared memory, of 16-bit elements.
std::string_view shared_multiplication(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::f16 ? "device/multiply_f16.cuh" : "device/multiply_bf16.cuh";
}

/// Of kernels whose operands are what TMA brings.
std::vector<DeviceFile> files_of_copies(const WgradGeometry& geometry) {
  const Arithmetic arithmetic = geometry.problem().arithmetic;
  const int columns = geometry.tiling().columns();
  std::vector<DeviceFile> result = {{element_header(geometry.problem().input.type)},
                                    {"device/barrier.cuh"},
                                    {"device/dependent_launch.cuh"},
                                    {"device/warpgroup.cuh"},
                                    {"device/wgmma_sizes.cuh"},
                                    {"device/fragments.cuh"},
                                    {"device/tensor_map.cuh"},
                                    {"device/tensor_copy.cuh"}};
  if (geometry.tiling().takes_boxes()) {
    result.push_back({"device/pixel_operand.cuh"});
    result.push_back(
        {arithmetic == Arithmetic::f16 ? "device/multiply_pixels_f16.cuh" : "device/multiply_pixels_bf16.cuh",
         columns});
    return result;
  }
  result.push_back({"device/swizzled_operand.cuh"});
  if (geometry.is_fp32()) result.push_back({"device/operand_tf32.cuh"});
  result.push_back(
      {geometry.takes_dy_as_it_lies() ? shared_multiplication(arithmetic) : multiplication(arithmetic), columns});
  return result;
}

std::vector<DeviceFile> files(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  if (tiling.copies_operands()) return files_of_copies(geometry);
  const bool floats = geometry.is_fp32();
  std::vector<DeviceFile> result = {{element_header(geometry.problem().input.type)},
                                    {"device/barrier.cuh"},
                                    {"device/dependent_launch.cuh"},
                                    {operand_header(geometry.problem().input.type)},
                                    {"device/warpgroup.cuh"},
                                    {"device/wgmma_sizes.cuh"},
                                    {"device/fragments.cuh"}};
  if (tiling.splits_operands) {
    result.push_back({"device/split_tf32.cuh"});
    result.push_back({"device/promote.cuh"});
  }
  if (tiling.orders()) {
    result.push_back({"device/tensor_map.cuh"});
    result.push_back({"device/tensor_copy.cuh"});
    if (tiling.x_vectors) result.push_back({"device/shifted_words.cuh"});
  } else {
    if (geometry.copies_dy_async())
      result.push_back({floats ? "device/copy_async.cuh" : "device/copy_elements_async.cuh"});
    if (tiling.x_vectors) result.push_back({"device/load_vector.cuh"});
    if (!tiling.x_vectors || !floats) result.push_back({load_header(geometry.problem().input.type)});
  }
  // What of a row of x is stored in several copies is split once.
  if (tiling.splits_operands && !tiling.gathers() && !(tiling.orders() && tiling.x_vectors))
    result.push_back({"device/shifted_words.cuh"});
  result.push_back({multiplication(geometry.problem().arithmetic), tiling.columns()});
  return result;
}

}  // namespace

KernelText wgrad_wgmma::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<WgradWgmmaTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const WgradGeometry geometry(problem, tiling);
  const bool orders = tiling.orders();
  KernelText text;
  text.arguments = parameters(geometry);
  text.files = files(geometry);
  text.text = fill_template(
      embedded_text("wgrad_wgmma/kernel.cu.in"),
      {{"constants", constants(geometry)},
       {"asserts", asserts(kernel, geometry)},
       {"layout", layout_comment(tiling)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"x_arrivals", std::string(arrivals_of_x(tiling))},
       {"dy_arrivals", std::string(arrivals_of_dy(tiling))},
       {"raw_rows", orders ? "Element* const raw_rows = reinterpret_cast<Element*>(shared + kRawFirstByte);\n"
                             "Barrier* const raw_full = dy_empty + kStages;\n"
                             "Barrier* const raw_empty = raw_full + kRawRows;\n"
                           : ""},
       {"init_raw", orders ? "for (int i = 0; i < kRawRows; ++i) {\n"
                             "  barrier_init(raw_full + i, 1);\n"
                             "  barrier_init(raw_empty + i, kOrderWarps);\n"
                             "}\n"
                           : ""},
       {"load_steps", wgrad_load_steps(geometry)},
       {"k_consumer", tiling.consumers_k == 2 ? "consumer * kInstructionRows + " : ""},
       {"consume", wgrad_consume(geometry)}});
  return text;
}

}  // namespace jitconv::codegen
