// See printable.h.
#include "cache/printable.h"

namespace jitconv::cache {

std::string printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C2 80 to C2 9F are U+0080 to U+009F, which some terminals obey like escape sequences.
    const bool starts_control =
        byte == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (byte >= 0x20 && byte != 0x7f && !starts_control) {
      shown += text[i];
      continue;
    }
    shown += "\\x";
    shown += kDigits[byte >> 4];
    shown += kDigits[byte & 15];
    if (!starts_control) continue;
    const auto second = static_cast<unsigned char>(text[++i]);
    shown += "\\x";
    shown += kDigits[second >> 4];
    shown += kDigits[second & 15];
  }
  return shown;
}

}  // namespace jitconv::cache
