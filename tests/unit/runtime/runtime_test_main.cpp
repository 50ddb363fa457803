// main() of the tests that use the fakes: fixes the environment before anything reads it.
#include "runtime_test_support.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const jitconv::runtime_test::TemporaryDirectory cache;
  setenv("JITCONV_CACHE_DIR", cache.path().c_str(), 1);
  setenv("JITCONV_CACHE", "rw", 1);
  setenv("JITCONV_NVRTC_PATH", JITCONV_FAKE_NVRTC, 1);
  setenv("JITCONV_LOG", "off", 1);  // the tests provoke warnings
  unsetenv("JITCONV_NO_COMPILE");
  unsetenv("JITCONV_DUMP_DIR");
  return RUN_ALL_TESTS();
}
