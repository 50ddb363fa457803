// The order and framing of the fields of a key. Changing either raises kSchema. docs/cache.md lists the fields.
#include "cache/key.h"

#include <algorithm>

namespace jitconv::cache {

Key make_key(const KeyInputs& inputs) {
  std::vector<std::string_view> options(inputs.options.begin(), inputs.options.end());
  std::sort(options.begin(), options.end());

  Digest digest;
  digest.add("jitconv image").add(kSchema);
  digest.add(inputs.target).add(inputs.compiler_version).add(inputs.compiler_identity);
  // With the count, where the options end does not depend on how many fields follow them.
  digest.add(std::uint64_t{options.size()});
  for (const std::string_view option : options) digest.add(option);
  digest.add(inputs.generator_fingerprint).add(inputs.source);
  return Key{digest.finish()};
}

}  // namespace jitconv::cache
