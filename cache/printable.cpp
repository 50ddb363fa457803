// See printable.h.
#include "cache/printable.h"

#include <llvm/Support/ConvertUTF.h>

namespace jitconv::cache {

std::string printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto* start = reinterpret_cast<const llvm::UTF8*>(text.data());
  const bool utf8 = llvm::isLegalUTF8String(&start, start + text.size()) != 0;
  std::string shown;
  const auto show = [&shown](unsigned char byte) {
    shown += "\\x";
    shown += kDigits[byte >> 4];
    shown += kDigits[byte & 15];
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C2 80 to C2 9F are U+0080 to U+009F, which some terminals obey like escape sequences.
    if (utf8 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      show(byte);
      show(static_cast<unsigned char>(text[++i]));
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      show(byte);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

}  // namespace jitconv::cache
