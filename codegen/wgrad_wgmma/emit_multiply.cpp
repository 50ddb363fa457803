// What the consumers of a wgrad_wgmma kernel do: templates/wgrad_wgmma/consumer.cu.in and add_sums.cu.in.
#include <vector>

#include "codegen/text/emitter.h"
#include "codegen/wgrad_wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// The products of a consumer, all or half of them: of a tap each, or of a filter row whose taps are joined.
std::vector<WgradTap> products_of(const WgradWgmmaTiling& tiling, int consumer) {
  std::vector<WgradTap> products;
  const int first = tiling.consumers_k == 2 || consumer == 0 ? 0 : tiling.consumer_products();
  const int end = tiling.consumers_k == 2 || consumer == 1 ? tiling.products() : tiling.consumer_products();
  const int of_row = tiling.joins_taps ? 1 : tiling.block_s;
  for (int product = first; product < end; ++product) products.push_back({product / of_row, product % of_row});
  return products;
}

/// Operands of the step's rows of x.
std::string x_operands(const WgradGeometry& geometry) {
  if (geometry.tiling().takes_boxes()) return box_operands(geometry);
  if (geometry.tiling().takes_planes()) return plane_operand();
  Lines lines;
  for (int r = 0; r < geometry.tiling().block_r; ++r)
    lines.add(fmt::format(
        "const MatrixOperand x_r{0} =\n"
        "    matrix_operand(x_rows + (x_row - kBlockR + {0}) % kXRows * kXRowBytes, kUnitRows * kOperandRowBytes);",
        r));
  return lines.text();
}

/// Whether some step's run of dy goes on behind the end of its row.
bool masks_dy(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  return tiling.orders() && geometry.problem().columns.output % tiling.row_pixels != 0;
}

/// Whether db is summed from what is read once more: where there is one multiplication at a time, the compiler makes
/// each wait for the last if its operand's registers have another use (C7513).
bool rereads_dy(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  return geometry.problem().epilogue.bias && tiling.products() == 1 && !tiling.gathers() && !tiling.splits_operands;
}

/// A thread's part of an operand in registers: output channels lane / 4 and 8 behind it, and of each two pixels (fp32)
/// or pairs of pixels, half an operand row apart. They are multiplied, added to db, or both.
std::vector<std::string> read_operand(const WgradGeometry& geometry, bool multiplies, bool bias) {
  const bool nchw = geometry.problem().output.layout() == Layout::nchw;
  const bool masks = masks_dy(geometry);
  const std::string_view row_of_dy =
      geometry.dy_period() > 1 ? "(dy_row + i % 2 * (kHalfRows / kDyPeriod))" : "(k_lane + i % 2 * kHalfRows)";
  if (geometry.is_fp32()) {
    std::vector<std::string> lines = {
        "const int pixel = block * kDepth + i / 2 * kOperandChannels;",
        fmt::format("{}float value = dy_stage[{}];", masks ? "" : "const ",
                    nchw ? fmt::format("{} * kDyPitch + pixel + operand_word(lane)", row_of_dy)
                         : "(pixel + operand_word(lane)) * kDyPitch + k_lane + i % 2 * kHalfRows")};
    if (masks) lines.push_back("if (pixel >= pixels_left) value = 0.0f;");
    if (bias) lines.push_back("bias_sum[i % 2] += value;");
    if (multiplies)
      lines.push_back(geometry.tiling().splits_operands ? "dy_value[block][i] = value;"
                                                        : "a[block % 2][i] = round_to_tf32(value);");
    return lines;
  }
  std::vector<std::string> lines = {"const int pixel = block * kDepth + i / 2 * kOperandChannels;"};
  if (nchw && geometry.cuts_pairs())
    lines.insert(lines.end(),
                 {fmt::format("const Element* const first = dy_stage + {} * kDyPitch + pixel + operand_word(lane) * 2;",
                              row_of_dy),
                  fmt::format("{}unsigned pair = operand_pair(first[0], first[1]);", masks ? "" : "const ")});
  else if (nchw)
    lines.push_back(
        fmt::format("{}unsigned pair = *reinterpret_cast<const unsigned*>(dy_stage + {} * kDyPitch + pixel + "
                    "operand_word(lane) * 2);",
                    masks ? "" : "const ", row_of_dy));
  else
    lines.insert(lines.end(), {"const Element* const first = dy_stage + (pixel + operand_word(lane) * 2) * kDyPitch + "
                               "k_lane + i % 2 * kHalfRows;",
                               "const unsigned pair = operand_pair(first[0], first[kDyPitch]);"});
  if (masks) lines.push_back("if (pixel >= pixels_left) pair = 0;");
  if (masks && geometry.cuts_pairs()) lines.push_back("if (pixel + 1 == pixels_left) pair &= 0xffff;");
  if (bias)
    lines.push_back(
        "bias_sum[i % 2] += to_float(Element{static_cast<unsigned short>(pair)}) + "
        "to_float(Element{static_cast<unsigned short>(pair >> 16)});");
  if (multiplies) lines.push_back("a[block % 2][i] = pair;");
  return lines;
}

/// Where a product's first operand row lies behind that of its filter row, in operand rows.
int operand_unit(const WgradGeometry& geometry, const WgradTap& tap) {
  if (geometry.tiling().gathers()) return 0;
  const TapOperand operand = geometry.tap_operand(tap.s);
  return (operand.phase * static_cast<int>(geometry.shifts().size()) + operand.copy) * geometry.units() + operand.unit;
}

/// Reads a multiplication's operand in registers.
void add_operand(Lines& lines, const WgradGeometry& geometry) {
  lines.add("#pragma unroll");
  lines.add("for (int block = 0; block < kRowPixels / kDepth; ++block) {");
  lines.add("#pragma unroll");
  lines.add("  for (int i = 0; i < 4; ++i) {");
  const bool bias = geometry.problem().epilogue.bias && !rereads_dy(geometry);
  for (const std::string& line : read_operand(geometry, true, bias)) lines.add("    " + line);
  lines.add("  }");
}

/// Adds a step's dy to db.
void add_bias(Lines& lines, const WgradGeometry& geometry) {
  lines.add("if (sums_bias) {");
  lines.add("#pragma unroll 4");
  lines.add("  for (int block = 0; block < kRowPixels / kDepth; ++block) {");
  lines.add("#pragma unroll");
  lines.add("    for (int i = 0; i < 4; ++i) {");
  for (const std::string& line : read_operand(geometry, false, true)) lines.add("      " + line);
  lines.add("    }");
  lines.add("  }");
  lines.add("}");
}

/// Of 16 bytes, from the first operand row of a step's run to those of a multiplication.
std::string_view x_step(const WgradGeometry& geometry) {
  return geometry.tiling().takes_planes()
             ? "block / kPartBlocks * (kPartBytes / kOperandRowBytes) + block % kPartBlocks * 2"
             : "block * 2 * kUnitRows";
}

/// `// begin pixels` ... `// end pixels` of split operands: all products of the step with a tap at a time.
std::string split_multiplications(const WgradGeometry& geometry, const std::vector<WgradTap>& taps) {
  Lines lines;
  lines.add("// begin pixels");
  add_operand(lines, geometry);
  lines.add("}");
  lines.add("split_values<kBlocks * 4>(&dy_value[0][0], &dy_high[0][0], &dy_low[0][0]);");
  for (std::size_t i = 0; i < taps.size(); ++i)
    lines.add(fmt::format("add_products(sum[{}], x_r{} + {} * kUnitRows);  // r{}{}", i, taps[i].r,
                          operand_unit(geometry, taps[i]), taps[i].r,
                          geometry.tiling().gathers() ? "" : fmt::format("s{}", taps[i].s)));
  lines.add("// end pixels");
  return lines.text();
}

/// `// begin pixels` ... `// end pixels`: the step's pixels, as many at a time as an instruction multiplies.
std::string multiplications(const WgradGeometry& geometry, const std::vector<WgradTap>& taps) {
  Lines lines;
  lines.add("// begin pixels");
  add_operand(lines, geometry);
  lines.add("  const int accumulate = block == 0 ? accumulate_first : 1;");
  lines.add("  multiply_begin();");
  for (std::size_t i = 0; i < taps.size(); ++i) {
    if (geometry.tiling().gathers() || geometry.tiling().takes_planes()) {
      lines.add(
          fmt::format("  multiply(sum[{}], a[block % 2], x_r{} + {}, accumulate);", i, taps[i].r, x_step(geometry)));
      continue;
    }
    // Adding to an operand moves it by rows of 16 bytes.
    lines.add(
        fmt::format("  multiply(sum[{}], a[block % 2], x_r{} + ({} + block * 2) * kUnitRows, accumulate);  // r{}s{}",
                    i, taps[i].r, operand_unit(geometry, taps[i]), taps[i].r, taps[i].s));
  }
  lines.add("  multiply_commit();");
  lines.add("  multiply_wait<1>();");
  lines.add("  if (block == 0) release_previous();");
  lines.add("}");
  if (rereads_dy(geometry)) add_bias(lines, geometry);
  lines.add("// end pixels");
  return lines.text();
}

std::string add_sums(const WgradGeometry& geometry, const std::vector<WgradTap>& products) {
  if (geometry.tiling().gathers()) {
    std::string text(embedded_text("wgrad_wgmma/add_columns.cu.in"));
    for (std::size_t i = 0; i < products.size(); ++i)
      text += fmt::format("add_sums(sum[{}], r_first + {});\n", i, products[i].r);
    return text;
  }
  // Two channels are neighbours, and 8 bytes of one vector where a row of them starts at a multiple of that.
  const bool pairs = geometry.problem().c % 2 == 0;
  const std::string load =
      pairs ? "before[j] = valid ? *reinterpret_cast<const float2*>(source) : make_float2(0.0f, 0.0f);\n"
            : "const bool both = valid && c_lane + j / 2 * 8 + 1 < kChannels;\n"
              "before[j] = make_float2(valid ? source[0] : 0.0f, both ? source[1] : 0.0f);\n";
  const std::string store = pairs ? "if (valid) *reinterpret_cast<float2*>(destination) = make_float2(even, odd);\n"
                                  : "if (valid) destination[0] = even;\n"
                                    "if (valid && c_lane + j / 2 * 8 + 1 < kChannels) destination[1] = odd;\n";
  std::string text =
      fill_template(embedded_text("wgrad_wgmma/add_sums.cu.in"), {{"load_pair", load}, {"store_pair", store}});
  const int joined = geometry.tiling().joins_taps ? geometry.tiling().block_s : 1;
  for (std::size_t i = 0; i < products.size(); ++i)
    for (int tap = 0; tap < joined; ++tap)
      text +=
          fmt::format("add_sums(sum[{}]{}, r_first + {}, s_first + {});\n", i,
                      tap == 0 ? "" : fmt::format(" + {} * (kBlockC / 2)", tap), products[i].r, products[i].s + tap);
  return text;
}

/// db is summed where dy passes: by one consumer of the blocks of one tile, in lanes that have the same channels.
std::string bias_store(const WgradGeometry& geometry) {
  if (!geometry.problem().epilogue.bias) return {};
  const bool boxes = geometry.tiling().takes_boxes(), shares = geometry.tiling().consumers_k == 2;
  const std::string k_of_warp =
      fmt::format("{}warp % kWarpgroupWarps * kWarpRows", shares ? "consumer * kInstructionRows + " : "");
  return fill_template(
      embedded_text("wgrad_wgmma/store_bias.cu.in"),
      {{"nearest_lane", boxes ? "8" : "1"},
       {"next_lane", boxes ? "16" : "2"},
       {"k_of_sum", boxes ? k_of_warp + " + lane * 2 + i" : "k_lane + i * kHalfRows"},
       {"stores", boxes ? "sums_bias && lane < 8 && k < kGroupK"
                        : fmt::format("lane % 4 == 0 && k < kGroupK && c_block + r_first + s_first == 0{}",
                                      shares ? "" : " && consumer == 0")}});
}

/// What a consumer declares for db.
std::string bias_begin(const WgradGeometry& geometry, int consumer) {
  if (!geometry.problem().epilogue.bias) return {};
  const std::string sum = "float bias_sum[2] = {};  // of dy, for db\n";
  if (!geometry.takes_dy_as_it_lies() && !rereads_dy(geometry)) return sum;
  return sum + (consumer == 0 ? "const bool sums_bias = c_block + r_first + s_first == 0;\n"
                              : "constexpr bool sums_bias = false;\n");
}

/// Where a consumer's part of a stage of dy begins.
std::string_view dy_offset(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  if (tiling.takes_boxes()) return tiling.consumers_k == 2 ? " + consumer * (kInstructionRows * kRowPixels)" : "";
  if (geometry.takes_dy_as_it_lies()) return " + consumer * (kInstructionRows * kPartPixels)";
  if (geometry.dy_period() > 1)
    return " + dy_start * kOperandChannels + ((dy_start * kOutputStrideC + p * kQ + strip.q_first) & "
           "(kOperandChannels - 1))";
  return tiling.orders() ? " + ((p * kQ + strip.q_first) & (kOperandChannels - 1))" : "";
}

/// Where a thread finds its output channel's run of dy, if planes start at different places within 16 bytes.
std::string place_of_dy(const WgradGeometry& geometry) {
  return geometry.dy_period() > 1 ? std::string(embedded_text("wgrad_wgmma/place_of_dy.cu.in")) : "";
}

/// What of a consumer depends on whether its multiplications go on into the next step, or each tap's are complete
/// before the next one's begin.
Holes pipeline_holes(const WgradGeometry& geometry, const std::vector<WgradTap>& products) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const std::string columns = tiling.joins_taps || tiling.takes_boxes() ? "kColumns" : "kBlockC";
  if (tiling.splits_operands)
    return {{"own_operand", ""},
            {"pipeline", fill_template(embedded_text("wgrad_wgmma/multiply_split.cu.in"), {{"columns", columns}})},
            {"begin_sum", fill_template(embedded_text("wgrad_wgmma/clear_sums.cu.in"),
                                        {{"products", std::to_string(products.size())}, {"columns", columns}})},
            {"multiply", split_multiplications(geometry, products)},
            {"end_step", "release(stage, x_row - kBlockR, p + kRowStep >= strip.p_end ? kBlockR : kNewRows);\n"},
            {"end_sum", ""}};
  const bool as_it_lies = geometry.takes_dy_as_it_lies();
  // Operands in registers alternate: after an odd number, the next step's first would be those still multiplied.
  const bool waits = !as_it_lies && tiling.row_pixels / geometry.depth() % 2 != 0;
  return {{"own_operand", as_it_lies ? "" : "unsigned a[2][4];  // one is multiplied while the other is loaded"},
          {"pipeline", std::string(embedded_text("wgrad_wgmma/release_previous.cu.in"))},
          {"begin_sum", "int accumulate_first = 0;\n"},
          {"multiply", tiling.takes_boxes() ? box_multiplications(geometry, products)
                       : as_it_lies         ? plane_multiplications(geometry)
                                            : multiplications(geometry, products)},
          {"end_step",
           fill_template(embedded_text("wgrad_wgmma/end_step.cu.in"), {{"wait", waits ? "multiply_wait<0>();" : ""}})},
          {"end_sum",
           fill_template(embedded_text("wgrad_wgmma/end_sum.cu.in"), {{"products", std::to_string(products.size())}})}};
}

std::string consumer_text(const WgradGeometry& geometry, int consumer) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  const bool boxes = tiling.takes_boxes();
  const std::vector<WgradTap> products = products_of(tiling, consumer);
  Holes holes = pipeline_holes(geometry, products);
  holes.merge(Holes{
      {"products", std::to_string(products.size())},
      {"columns", tiling.joins_taps || boxes ? "kColumns" : "kBlockC"},
      {"bias_begin", bias_begin(geometry, consumer)},
      {"place_of_dy", place_of_dy(geometry)},
      {"x_operands", x_operands(geometry)},
      {"dy_offset", std::string(dy_offset(geometry))},
      {"pixels_left", masks_dy(geometry)
                          ? "// Behind the end of its row, a run of dy has pixels of the next.\n" +
                                fmt::format("const int pixels_left = kQ - strip.q_first - operand_word(lane){};\n",
                                            geometry.is_fp32() ? "" : " * 2")
                          : ""},
      {"add_sums", add_sums(geometry, products)},
      {"bias_store", bias_store(geometry)}});
  return fill_template(embedded_text("wgrad_wgmma/consumer.cu.in"), holes);
}

}  // namespace

std::string wgrad_consume(const WgradGeometry& geometry) {
  if (geometry.tiling().consumers_k == 2) return consumer_text(geometry, 0);
  return fill_template("if (consumer == 0) {\n  @first@\n} else {\n  @second@\n}\n",
                       {{"first", consumer_text(geometry, 0)}, {"second", consumer_text(geometry, 1)}});
}

}  // namespace jitconv::codegen
