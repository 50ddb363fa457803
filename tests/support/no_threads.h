// A process that can start no thread, for tests of what becomes of work that is dealt out to several.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace jitconv::test {

/// While it lives, no thread with default attributes can be started: there is no memory for such a stack. Unlike a
/// limit on the number of threads this concerns root, too.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace jitconv::test
