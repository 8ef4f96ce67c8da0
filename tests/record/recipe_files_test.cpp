// What the path of a recipe can name.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/record/recipe.h"

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace headrace::record {

namespace {

std::string refusal(const std::filesystem::path& path) {
  return base::message_of<base::ConfigError>([&] { (void)load_recipe(path); });
}

TEST(RecipeFile, NamesTheRunAfterItself) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "my run.toml", "[training]\nsteps = 3\n");
  EXPECT_EQ(load_recipe(folder / "my run.toml").recipe.run.name, "my_run");
}

TEST(RecipeFile, ThatIsMissingIsBadUsageAndTheNearestIsNamed) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "translate.toml", "[run]\n");
  const std::string message = refusal(folder / "translat.toml");
  EXPECT_NE(message.find("there is no such file"), std::string::npos);
  EXPECT_NE(message.find("did you mean 'translate.toml'?"), std::string::npos);
}

TEST(RecipeFile, ThatIsAFolderOrAPipeIsBadUsage) {
  const base::TemporaryFolder folder;
  EXPECT_NE(refusal(folder.path()).find("is a folder"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal(folder / "pipe").find("not a regular file"), std::string::npos);
}

TEST(RecipeFile, AboveOneMebibyteIsRefusedUnread) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "r.toml", std::string((1 << 20) + 1, '\n'));
  EXPECT_NE(refusal(folder / "r.toml").find("1,048,577 bytes; a recipe has at most 1,048,576"),
            std::string::npos);
}

TEST(RecipeFile, ThatCannotBeReadIsBadInput) {
  // A regular file whose first byte nobody can read, root included.
  EXPECT_THROW((void)load_recipe("/proc/self/mem"), base::IoError);
}

TEST(RecipeFile, IsNamedInItsMistakes) {
  const base::TemporaryFolder folder;
  base::write_file(folder / "r.toml", "[training]\nsteps = -1\n");
  const std::string place = (folder / "r.toml").string() + ":2:9: ";
  EXPECT_EQ(refusal(folder / "r.toml").substr(0, place.size()), place);
}

}  // namespace

}  // namespace headrace::record
