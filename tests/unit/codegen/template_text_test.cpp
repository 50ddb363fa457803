// Substitution of holes: what is allowed, and that everything else is refused.
#include "codegen/text/template_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

/// The message of the InternalError that filling throws; fails the test if it throws none.
std::string refusal(std::string_view text, const Holes& holes) {
  try {
    const std::string result = fill_template(text, holes);
    ADD_FAILURE() << "was filled: " << result;
  } catch (const InternalError& error) {
    return error.what();
  }
  return {};
}

TEST(TemplateText, TextWithoutHolesStaysAsItIs) {
  EXPECT_EQ(fill_template("int a;\n\n  int b;\n", {}), "int a;\n\n  int b;\n");
  EXPECT_EQ(fill_template("", {}), "");
  EXPECT_EQ(fill_template("no line end", {}), "no line end\n");
}

TEST(TemplateText, AHoleInsideALine) {
  EXPECT_EQ(fill_template("f(@a@, @b@);\n", {{"a", "1"}, {"b", "2"}}), "f(1, 2);\n");
  EXPECT_EQ(fill_template("@a@@a@;\n", {{"a", "x"}}), "xx;\n");
  EXPECT_EQ(fill_template("[@a@]\n", {{"a", ""}}), "[]\n");
}

TEST(TemplateText, AHoleAloneOnItsLineTakesLinesAndIndentsThem) {
  EXPECT_EQ(fill_template("{\n  @body@\n}\n", {{"body", "a;\nb;\n"}}), "{\n  a;\n  b;\n}\n");
  EXPECT_EQ(fill_template("  @body@\n", {{"body", "a;\n\nb;"}}), "  a;\n\n  b;\n") << "blank lines get no blanks";
  EXPECT_EQ(fill_template("  @body@\n", {{"body", "#pragma unroll\nfor\n"}}), "#pragma unroll\n  for\n");
}

TEST(TemplateText, AnEmptyBlockRemovesItsLine) {
  EXPECT_EQ(fill_template("a\n  @body@\nb\n", {{"body", ""}}), "a\nb\n");
}

TEST(TemplateText, ValuesAreNotSearchedForHoles) {
  EXPECT_EQ(fill_template("@a@\nx @a@\n", {{"a", "@b@"}}), "@b@\nx @b@\n");
}

TEST(TemplateText, AnAtSignAloneIsText) {
  for (const char* text : {"a@b\n", "@@\n", "@ a @\n", "@A@\n", "@a-b@\n", "a@b.c@\n", "@\n"})
    EXPECT_EQ(fill_template(text, {}), text);
}

TEST(TemplateText, RefusesAHoleWithoutAValue) {
  EXPECT_NE(refusal("int @name@;\n", {}).find("@name@ has no value"), std::string::npos);
  EXPECT_NE(refusal("@name@\n", {{"nam", ""}}).find("@name@ has no value"), std::string::npos);
}

TEST(TemplateText, RefusesAValueWithoutAHole) {
  EXPECT_NE(refusal("int a;\n", {{"name", "1"}}).find("@name@"), std::string::npos);
  EXPECT_NE(refusal("@a@\n", {{"a", "@b@"}, {"b", "1"}}).find("@b@"), std::string::npos);
}

TEST(TemplateText, RefusesLinesInsideALine) {
  EXPECT_NE(refusal("f(@a@);\n", {{"a", "1,\n2"}}).find("@a@"), std::string::npos);
  EXPECT_NE(refusal("@a@;\n", {{"a", "1\n"}}).find("@a@"), std::string::npos);
}

TEST(EmbeddedFiles, AnUnknownNameIsRefused) {
  EXPECT_THROW(embedded_text("no_such_file.cu.in"), InternalError);
  EXPECT_THROW(embedded_text(""), InternalError);
}

// What the library holds is what lies in templates/, byte for byte: no file forgotten, none stale.
TEST(EmbeddedFiles, AreTheFolderTemplates) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(JITCONV_TEST_DATA).parent_path() / "templates";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is not on this machine";
  std::set<std::string> on_disk, embedded;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), folder).generic_string();
    on_disk.insert(name);
    std::ifstream stream(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    EXPECT_EQ(embedded_text(name), text.str()) << name;
  }
  for (const EmbeddedFile& file : embedded_files()) EXPECT_TRUE(embedded.insert(std::string(file.name)).second);
  EXPECT_EQ(embedded, on_disk);
}

}  // namespace
}  // namespace jitconv::codegen
