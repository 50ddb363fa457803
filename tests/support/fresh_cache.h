// An empty disk cache for one run of a test program, so that no kernel of an earlier run hides a failure to compile and
// nothing is left behind.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace jitconv::test {

/// Points JITCONV_CACHE_DIR to a fresh folder, removed in the destructor, unless the variable is set. To be made before
/// the first kernel is compiled.
class FreshCache {
 public:
  explicit FreshCache(const std::string& name) {
    if (std::getenv("JITCONV_CACHE_DIR") != nullptr) return;
    std::string path = (std::filesystem::temp_directory_path() / ("jitconv-" + name + "-XXXXXX")).string();
    if (mkdtemp(path.data()) == nullptr) return;
    path_ = path;
    setenv("JITCONV_CACHE_DIR", path.c_str(), 1);
  }
  ~FreshCache() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  FreshCache(const FreshCache&) = delete;
  FreshCache& operator=(const FreshCache&) = delete;

 private:
  std::filesystem::path path_;
};

}  // namespace jitconv::test
