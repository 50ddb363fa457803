// Folders for compilations: private, gone at the end, and those of dead processes are removed by the next.
#include "host/scratch_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "host/surroundings.h"
#include "jitconv/error.h"

namespace jitconv::test {
namespace {

namespace fs = std::filesystem;

/// Makes a folder with a file in it in a process that ends without removing it.
void abandon_a_folder() {
  const pid_t child = fork();
  if (child == 0) {
    const host::ScratchFolder folder;
    std::ofstream(folder.path() / "unit.cpp") << "text";
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(ScratchFolder, IsPrivateAndGoneAtTheEnd) {
  const Folder parent;
  const Variable temporary("TMPDIR", parent.path().string());
  {
    const host::ScratchFolder folder;
    EXPECT_EQ(folder.path().parent_path(), parent.path());
    EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
    std::ofstream(folder.path() / "file") << "text";
  }
  EXPECT_TRUE(parent.empty());
}

TEST(ScratchFolder, RemovesThoseOfDeadProcessesOnly) {
  const Folder parent, elsewhere;
  const Variable temporary("TMPDIR", parent.path().string());
  const host::ScratchFolder live;
  abandon_a_folder();
  abandon_a_folder();
  EXPECT_EQ(entries(parent.path()), 2) << "the second removes the first";

  std::ofstream(elsewhere.path() / "file") << "text";
  fs::create_directory_symlink(elsewhere.path(), parent.path() / "jitconv-host-linked");
  std::ofstream(parent.path() / "jitconv-host-afile0") << "text";
  for (const char* name : {"jitconv-host-public", "jitconv-host-short", "jitconv-host-longer1", "jitconv-abcdef"}) {
    fs::create_directory(parent.path() / name);
    fs::permissions(parent.path() / name, fs::perms::owner_all);
  }
  fs::permissions(parent.path() / "jitconv-host-public", fs::perms::group_read, fs::perm_options::add);
  { const host::ScratchFolder next; }
  EXPECT_EQ(entries(parent.path()), 7);
  EXPECT_TRUE(fs::exists(live.path()));
  EXPECT_TRUE(fs::exists(elsewhere.path() / "file"));
}

TEST(ScratchFolder, StaysWhileOthersComeAndGo) {
  const Folder parent;
  const Variable temporary("TMPDIR", parent.path().string());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int turn = 0; turn < 50; ++turn) {
        const host::ScratchFolder folder;
        std::ofstream(folder.path() / "file") << "text";
        std::this_thread::yield();
        EXPECT_TRUE(fs::exists(folder.path() / "file"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(parent.empty());
}

TEST(ScratchFolder, SaysWhereItCannotBeMade) {
  const Variable temporary("TMPDIR", "/nonexistent");
  try {
    const host::ScratchFolder folder;
    FAIL() << "made";
  } catch (const CompileError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/jitconv-host-"), std::string::npos) << error.what();
  }
}

TEST(ScratchFolder, ARelativeNameNeedsACurrentDirectory) {
  const Folder gone;
  const Variable temporary("TMPDIR", "relative");
  const fs::path before = fs::current_path();
  fs::create_directory(gone.path() / "here");
  fs::current_path(gone.path() / "here");
  fs::remove(gone.path() / "here");
  std::string message;
  try {
    const host::ScratchFolder folder;
  } catch (const CompileError& error) {
    message = error.what();
  }
  fs::current_path(before);
  EXPECT_NE(message.find("no temporary folder can be made as relative (TMPDIR)"), std::string::npos) << message;
}

}  // namespace
}  // namespace jitconv::test
