// Faults of other systems in files: a catalogue whose numbers ask for more memory than there is.
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/train/corpus.h"

#include "tests/base/temporary_folder.h"
#include "tests/formats/compile_mo.h"

namespace headrace::train {
namespace {

namespace fs = std::filesystem;

constexpr rlim_t kMostMemory = 1U << 20U;

/// Lets this process map at most `bytes` more than it has now.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

struct Word {
  std::size_t offset;
  std::size_t value;
};

std::string with(std::string file, const std::vector<Word>& words) {
  for (const Word& word : words) {
    std::string bytes;
    test::append_u32(bytes, word.value);
    file.replace(word.offset, 4, bytes);
  }
  return file;
}

struct Broken {
  std::string what;
  std::string bytes;
};

/// Catalogues of one entry, "Dutch", beside their header entry. Offsets: 8 count, 12 and 16 tables,
/// 28 ids (length, offset), 44 texts.
std::vector<Broken> broken_catalogues() {
  const std::string sound = test::compile_mo({{"Dutch", "N\u00e9erlandais"}});
  std::vector<Broken> all{{"nothing", ""},
                          {"only a magic number", sound.substr(0, 4)},
                          {"text", "this is no catalogue"},
                          {"both texts overlap", with(sound, {{48, 60}, {56, 61}})},
                          {"ids out of order", with(sound, {{28, 5}, {32, 61}, {36, 0}, {40, 60}})},
                          {"tables overlap", with(sound, {{16, 28}})}};
  for (const std::size_t huge : {0x7f7f7f7fUL, 0xffffffffUL, 0x10000000UL, 0x80000000UL}) {
    const std::string name = std::to_string(huge);
    for (const std::size_t offset : {8, 12, 16, 28, 36, 40, 44, 52, 56}) {
      all.push_back({name + " at " + std::to_string(offset), with(sound, {{offset, huge}})});
    }
    // 49 bytes that ask for gigabytes: one entry, huge lengths.
    std::string tiny = with(sound, {{8, 1}, {16, 36}, {28, huge}, {36, huge}}).substr(0, 49);
    all.push_back({name + " in 49 bytes", tiny});
  }
  for (std::size_t size = 5; size < sound.size(); size += 7) {
    all.push_back({"cut to " + std::to_string(size), sound.substr(0, size)});
  }
  return all;
}

// brackeen/ok-file-formats#26: a catalogue of 49 bytes asks for 2 GB.
TEST(Files, ABrokenCatalogueCostsOneWarningAndLittleMemory) {
  for (const Broken& broken : broken_catalogues()) {
    SCOPED_TRACE(broken.what);
    const base::TemporaryFolder root;
    for (const auto& [locale, bytes] : {std::pair<std::string, std::string>{"aa", broken.bytes},
                                        {"fr", test::compile_mo({{"French", "fran\u00e7ais"}})}}) {
      fs::create_directories(root / locale / "LC_MESSAGES");
      base::write_file(root / locale / "LC_MESSAGES" / "iso_639-3.mo", bytes);
    }
    std::vector<std::string> warnings;
    Corpus corpus;
    {
      const MemoryLimit limit(kMostMemory);
      ASSERT_NO_THROW(corpus = read_corpus({.root = root.path().string()},
                                           [&](const std::string& w) { warnings.push_back(w); }));
    }
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("aa/LC_MESSAGES/iso_639-3.mo"), std::string::npos) << warnings[0];
    EXPECT_EQ(corpus.counts.broken_files, 1);
    for (const Pair& pair : corpus.pairs) {
      EXPECT_TRUE(pair.target == "French" || pair.target == "Dutch") << pair.target;
    }
    EXPECT_EQ(corpus.pairs.back(), (Pair{"fr", "fran\u00e7ais", "French"}));
  }
}

TEST(Files, ACorpusOfBrokenCataloguesOnlyIsRefused) {
  const base::TemporaryFolder root;
  fs::create_directories(root / "aa" / "LC_MESSAGES");
  base::write_file(root / "aa" / "LC_MESSAGES" / "iso_639-3.mo", "rubbish");
  EXPECT_THROW(read_corpus({.root = root.path().string()}), base::ConfigError);
}

}  // namespace
}  // namespace headrace::train
