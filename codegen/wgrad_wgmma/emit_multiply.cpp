// What the consumers of a wgrad_wgmma kernel do: templates/wgrad_wgmma/consumer.cu.in and add_sums.cu.in.
#include <vector>

#include "codegen/text/emitter.h"
#include "codegen/wgrad_wgmma/emit.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A tap of a block: filter row and column, counted from the block's first.
struct Tap {
  int r, s;
};

/// The taps of a consumer, all or every second.
std::vector<Tap> taps_of(const WgradWgmmaTiling& tiling, int consumer) {
  std::vector<Tap> taps;
  const int first = tiling.consumers_k == 2 || consumer == 0 ? 0 : tiling.consumer_taps();
  const int end = tiling.consumers_k == 2 || consumer == 1 ? tiling.taps() : tiling.consumer_taps();
  for (int tap = first; tap < end; ++tap) taps.push_back({tap / tiling.block_s, tap % tiling.block_s});
  return taps;
}

/// Operands of the step's rows of x.
std::string x_operands(const WgradGeometry& geometry) {
  Lines lines;
  for (int r = 0; r < geometry.tiling().block_r; ++r)
    lines.add(
        fmt::format("const MatrixOperand x_r{0} =\n"
                    "    matrix_operand(x_rows + (x_row - kBlockR + {0}) % kXRows * kXRowBytes, kUnitRows * 16);",
                    r));
  return lines.text();
}

/// Whether some step's run of dy goes on behind the end of its row.
bool masks_dy(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& tiling = geometry.tiling();
  return tiling.copied && geometry.problem().columns.output % tiling.row_pixels != 0;
}

/// Where a thread's operand in registers comes from: output channels lane / 4 and 8 behind it, and of each two pixels
/// (fp32) or pairs of pixels, half an operand row apart.
std::vector<std::string> read_operand(const WgradGeometry& geometry) {
  const bool nchw = geometry.problem().output.layout() == Layout::nchw, bias = geometry.problem().epilogue.bias;
  const bool masks = masks_dy(geometry);
  if (geometry.is_fp32()) {
    std::vector<std::string> lines = {"const int pixel = block * 8 + i / 2 * 4;",
                                      fmt::format("{}float value = dy_stage[{}];", masks ? "" : "const ",
                                                  nchw ? "(k_lane + i % 2 * 8) * kDyPitch + pixel + lane % 4"
                                                       : "(pixel + lane % 4) * kDyPitch + k_lane + i % 2 * 8")};
    if (masks) lines.push_back("if (pixel >= pixels_left) value = 0.0f;");
    if (bias) lines.push_back("bias_sum[i % 2] += value;");
    lines.push_back("a[block % 2][i] = round_to_tf32(value);");
    return lines;
  }
  std::vector<std::string> lines = {"const int pixel = block * 16 + i / 2 * 8;"};
  if (nchw)
    lines.push_back(
        fmt::format("{}unsigned pair = *reinterpret_cast<const unsigned*>(dy_stage + (k_lane + i % 2 * 8) * "
                    "kDyPitch + pixel + lane % 4 * 2);",
                    masks ? "" : "const "));
  else
    lines.insert(lines.end(),
                 {"const Element* const first = dy_stage + (pixel + lane % 4 * 2) * kDyPitch + k_lane + i % 2 * 8;",
                  "const unsigned pair = operand_pair(first[0], first[kDyPitch]);"});
  if (masks) {
    lines.push_back("if (pixel >= pixels_left) pair = 0;");
    lines.push_back("if (pixel + 1 == pixels_left) pair &= 0xffffu;");
  }
  if (bias)
    lines.push_back(
        "bias_sum[i % 2] += to_float(Element{static_cast<unsigned short>(pair)}) + "
        "to_float(Element{static_cast<unsigned short>(pair >> 16)});");
  lines.push_back("a[block % 2][i] = pair;");
  return lines;
}

/// `// begin pixels` ... `// end pixels`: the step's pixels, as many at a time as an instruction multiplies.
std::string multiplications(const WgradGeometry& geometry, const std::vector<Tap>& taps) {
  Lines lines;
  lines.add("// begin pixels");
  lines.add("#pragma unroll");
  lines.add("for (int block = 0; block < kRowPixels / kDepth; ++block) {");
  lines.add("#pragma unroll");
  lines.add("  for (int i = 0; i < 4; ++i) {");
  for (const std::string& line : read_operand(geometry)) lines.add("    " + line);
  lines.add("  }");
  lines.add("  const int accumulate = block == 0 ? accumulate_first : 1;");
  lines.add("  multiply_begin();");
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const TapOperand operand = geometry.tap_operand(taps[i].s);
    const int unit =
        (operand.phase * static_cast<int>(geometry.shifts().size()) + operand.copy) * geometry.units() + operand.unit;
    // Adding to an operand moves it by rows of 16 bytes.
    lines.add(
        fmt::format("  multiply(sum[{}], a[block % 2], x_r{} + ({} + block * 2) * kUnitRows, accumulate);  // r{}s{}",
                    i, taps[i].r, unit, taps[i].r, taps[i].s));
  }
  lines.add("  multiply_commit();");
  lines.add("  multiply_wait<1>();");
  lines.add("  if (block == 0) release_previous();");
  lines.add("}");
  lines.add("// end pixels");
  return lines.text();
}

std::string add_sums(const WgradGeometry& geometry, const std::vector<Tap>& taps) {
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
  for (std::size_t i = 0; i < taps.size(); ++i)
    text += fmt::format("add_sums(sum[{}], r_first + {}, s_first + {});\n", i, taps[i].r, taps[i].s);
  return text;
}

/// db is summed where dy passes through registers: by one consumer of the blocks of one tile.
std::string bias_store(const WgradGeometry& geometry) {
  if (!geometry.problem().epilogue.bias) return {};
  const std::string_view one = geometry.tiling().consumers_k == 2 ? "" : " && consumer == 0";
  return fmt::format(
      "#pragma unroll\n"
      "for (int i = 0; i < 2; ++i) {{\n"
      "  float value = bias_sum[i];\n"
      "  value += __shfl_xor_sync(0xffffffffu, value, 1);\n"
      "  value += __shfl_xor_sync(0xffffffffu, value, 2);\n"
      "  const int k = k_block + k_lane + i * 8;\n"
      "  if (lane % 4 == 0 && k < kGroupK && c_block + r_first + s_first == 0{}) {{\n"
      "    float* const db_sum = sums + kBiasSums + group * kGroupK + k;\n"
      "    *db_sum = is_first ? value : *db_sum + value;\n"
      "  }}\n"
      "  bias_sum[i] = 0.0f;\n"
      "}}\n",
      one);
}

std::string consumer_text(const WgradGeometry& geometry, int consumer) {
  const std::vector<Tap> taps = taps_of(geometry.tiling(), consumer);
  return fill_template(
      embedded_text("wgrad_wgmma/consumer.cu.in"),
      {{"taps", std::to_string(taps.size())},
       {"bias_begin", geometry.problem().epilogue.bias ? "float bias_sum[2] = {};  // of dy, for db" : ""},
       {"x_operands", x_operands(geometry)},
       {"dy_offset", geometry.tiling().copied ? " + ((p * kQ + strip.q_first) & (kOperandChannels - 1))" : ""},
       {"pixels_left", masks_dy(geometry)
                           ? "// Behind the end of its row, a run of dy has pixels of the next.\n" +
                                 fmt::format("const int pixels_left = kQ - strip.q_first - lane % 4{};\n",
                                             geometry.is_fp32() ? "" : " * 2")
                           : ""},
       {"multiply", multiplications(geometry, taps)},
       // Operands in registers alternate: after an odd number, the next step's first would be those still multiplied.
       {"wait_for_last", geometry.tiling().row_pixels / geometry.depth() % 2 == 0 ? "" : "multiply_wait<0>();"},
       {"add_sums", add_sums(geometry, taps)},
       {"bias_store", bias_store(geometry)}});
}

}  // namespace

std::string wgrad_consume(const WgradGeometry& geometry) {
  if (geometry.tiling().consumers_k == 2) return consumer_text(geometry, 0);
  return fill_template("if (consumer == 0) {\n  @first@\n} else {\n  @second@\n}\n",
                       {{"first", consumer_text(geometry, 0)}, {"second", consumer_text(geometry, 1)}});
}

}  // namespace jitconv::codegen
