// How a wgrad_wgmma kernel loads: templates/wgrad_wgmma/steps_*.cu.in, load_x.cu.in and copy_dy_*.cu.in.
#include "codegen/text/emitter.h"
#include "codegen/wgrad_wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Which unit of which channel a load brings: lanes run along what is contiguous.
std::string item(const WgradGeometry& geometry) {
  const std::string phase =
      geometry.phases() == 1 ? "constexpr int phase = 0;\n" : "const int phase = item / (kUnits * kBlockC);\n";
  const std::string of_phase = geometry.phases() == 1 ? "item" : "item % (kUnits * kBlockC)";
  if (geometry.problem().input.layout() == Layout::nchw)
    return phase + fmt::format("const int unit = {0} % kUnits, c = {0} / kUnits;\n", of_phase);
  return phase + fmt::format("const int c = {0} % kBlockC, unit = {0} / kBlockC;\n", of_phase);
}

std::string load(const WgradGeometry& geometry) {
  return std::string(
      embedded_text(geometry.tiling().x_vectors ? "wgrad_wgmma/load_vectors.cu.in" : "wgrad_wgmma/load_pixels.cu.in"));
}

std::string shifts(const WgradGeometry& geometry) {
  std::string list;
  for (const int shift : geometry.shifts()) list += fmt::format("{}{}", list.empty() ? "" : ", ", shift);
  return list;
}

/// Where a block's filter columns begin, if not at the filter's first.
std::string s_offset(const WgradGeometry& geometry) { return geometry.tiles_s() == 1 ? "" : " + s_first * kDilationW"; }

/// What becomes of a unit's pixels: a row of `operand` at `place` for each copy, or of each of its parts. `value` is
/// where `pixels` floats begin.
std::string store_copies(const WgradGeometry& geometry, const std::string& place, const std::string& operand,
                         const std::string& value, const std::string& pixels) {
  if (!geometry.tiling().splits_operands)
    return fill_template(embedded_text("wgrad_wgmma/store_copies.cu.in"), {{"place", place}, {"operand", operand}});
  // split_values() has more registers than the producer can give here: tiles of a 5x7 filter would spill.
  return fill_template(embedded_text("wgrad_wgmma/store_split_copies.cu.in"),
                       {{"pixels", pixels}, {"value", value}, {"place", place}});
}

std::string load_x(const WgradGeometry& geometry) {
  const bool splits = geometry.tiling().splits_operands;
  const std::string stored = splits ? "split in two parts" : "rounded to what is multiplied";
  if (geometry.tiling().gathers())
    return fill_template(
        embedded_text("wgrad_wgmma/gather_x.cu.in"),
        {{"what_is_stored", stored},
         {"store", splits
                       ? "store_split_row<kXPartRows>(\n"
                         "    reinterpret_cast<uint4*>(row) + (item % kUnits * kUnitRows + item / kUnits), value[i]);\n"
                       : "reinterpret_cast<uint4*>(row)[item % kUnits * kUnitRows + item / kUnits] = "
                         "operand_row(value[i]);\n"}});
  return fill_template(embedded_text("wgrad_wgmma/load_x.cu.in"),
                       {{"shifts", shifts(geometry)},
                        {"s_offset", s_offset(geometry)},
                        {"item", item(geometry)},
                        {"load", load(geometry)},
                        {"what_is_stored", stored},
                        {"store", store_copies(geometry, "units[copy * (kUnits * kUnitRows)]",
                                               "operand_row(value[i] + kShifts[copy])", "value[i]", "kLoadPixels")}});
}

std::string copy_dy(const WgradGeometry& geometry) {
  const bool nhwc = geometry.problem().output.layout() == Layout::nhwc;
  const std::string_view name = nhwc ? "wgrad_wgmma/copy_dy_nhwc.cu.in" : "wgrad_wgmma/copy_dy_nchw.cu.in";
  // 16-bit elements that come alone pass through registers.
  return fill_template(
      embedded_text(name),
      {{"copy", geometry.is_fp32()           ? "copy_to_shared<kCopyVector>(destination, source, valid);"
                : geometry.copies_dy_async() ? "copy_elements<kCopyVector>(destination, source, valid);"
                                             : "*destination = load_if<0>(source, valid);"}});
}

/// Copies that do not wait have arrived a step later, elements that pass through registers at once.
std::string arrive_dy(const WgradGeometry& geometry) {
  if (!geometry.copies_dy_async()) return "__syncwarp();\nif (lane == 0) barrier_arrive(dy_full + stage);\n";
  return std::string(embedded_text("wgrad_wgmma/arrive_dy.cu.in"));
}

std::string loaded_steps(const WgradGeometry& geometry) {
  return fill_template(
      embedded_text("wgrad_wgmma/steps_loaded.cu.in"),
      {{"load_x", load_x(geometry)},
       {"copy_dy", copy_dy(geometry)},
       {"arrive_dy", arrive_dy(geometry)},
       {"arrive_last_dy",
        geometry.copies_dy_async() ? std::string(embedded_text("wgrad_wgmma/arrive_last_dy.cu.in")) : ""}});
}

/// The thread's copies of a row of dy, a run of each plane.
std::string copy_dy_runs(const WgradGeometry& geometry) {
  return std::string(embedded_text(geometry.dy_period() > 1 ? "wgrad_wgmma/copy_dy_periods.cu.in"
                                                            : "wgrad_wgmma/copy_dy_planes.cu.in"));
}

/// The thread's copy of a row of x: of a box of columns, where rows start at multiples of 16 bytes, and so with zeros
/// outside of the image; else of a run of the plane.
std::string copy_x(const WgradGeometry& geometry) {
  if (geometry.tiling().x_vectors)
    return fmt::format(
        "tensor_copy_3d_to_shared(raw_rows + slot * kRawElements, &x, strip.q_first + kFirstShift, h{},\n"
        "                         strip.n * (kGroups * kChannels) + group * kChannels + c_block, raw_full + slot);\n",
        geometry.phases() > 1 ? " * kStrideW" : "");
  if (geometry.x_period() > 1)
    return fill_template(embedded_text("wgrad_wgmma/copy_x_periods.cu.in"), {{"s_offset", s_offset(geometry)}});
  return fmt::format(
      "tensor_copy_3d_to_shared(raw_rows + slot * kRawElements, &x, (h * kW + strip.q_first + kFirstShift{}) & "
      "~(kOperandChannels - 1),\n"
      "                         group * kChannels + c_block, strip.n, raw_full + slot);\n",
      s_offset(geometry));
}

/// What becomes of a copied row. Boxes are rounded on the way, unless they are split, and have zeros where there are no
/// pixels; runs of a plane hold pixels of neighbouring rows.
Holes order_holes(const WgradGeometry& geometry) {
  const char* const place = geometry.phases() > 1 ? "row[((phase * kCopies + copy) * kUnits + unit) * kUnitRows + c]"
                                                  : "row[(copy * kUnits + unit) * kUnitRows + c]";
  if (geometry.tiling().x_vectors)
    return {{"raw_place", ""},
            {"raw_offset", ""},
            {"read_raw", std::string(embedded_text("wgrad_wgmma/read_raw_vectors.cu.in"))},
            {"store",
             store_copies(geometry, place,
                          geometry.is_fp32() ? "words_from(word, kShifts[copy])" : "pixels_from(word, kShifts[copy])",
                          "reinterpret_cast<const float*>(word)", "8")}};
  return {
      {"raw_place", fill_template(embedded_text("wgrad_wgmma/place_of_raw.cu.in"), {{"s_offset", s_offset(geometry)}})},
      {"raw_offset", geometry.x_period() > 1 ? "" : " + ((h * kW + first_column) & (kOperandChannels - 1))"},
      {"read_raw", std::string(embedded_text("wgrad_wgmma/read_raw_pixels.cu.in"))},
      {"store", store_copies(geometry, place, "operand_row(value + kShifts[copy])", "value", "kLoadPixels")}};
}

/// A unit that a thread puts in order: of which channel, and where its copied pixels begin.
std::string copied_item(const WgradGeometry& geometry) {
  if (geometry.x_period() > 1) return std::string(embedded_text("wgrad_wgmma/item_of_periods.cu.in"));
  return geometry.phases() > 1
             ? "const int unit = item % kUnits, line = item / kUnits, c = line / kStrideW, phase = line % kStrideW;\n"
               "const Element* const source = raw_row + line * kRawPitch + unit * kOperandChannels;\n"
             : "const int unit = item % kUnits, c = item / kUnits;\n"
               "const Element* const source = raw_row + c * kRawPitch + unit * kOperandChannels;\n";
}

std::string copied_steps(const WgradGeometry& geometry) {
  Holes holes = order_holes(geometry);
  holes["item"] = copied_item(geometry);
  holes["copy_dy"] = copy_dy_runs(geometry);
  holes["await_previous"] = await_packing(geometry.tiling());
  holes["shifts"] = shifts(geometry);
  holes["copy_x"] = copy_x(geometry);
  holes["items_at_a_time"] = geometry.tiling().splits_operands ? "1" : "3";
  return fill_template(embedded_text("wgrad_wgmma/steps_copied.cu.in"), holes);
}

}  // namespace

std::string wgrad_load_steps(const WgradGeometry& geometry) {
  if (geometry.tiling().takes_boxes()) return box_steps(geometry);
  if (geometry.tiling().takes_planes()) return plane_steps(geometry);
  return geometry.tiling().orders() ? copied_steps(geometry) : loaded_steps(geometry);
}

}  // namespace jitconv::codegen
