#include "headrace/train/tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "headrace/formats/utf8.h"

namespace headrace::train {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(ByteTokenizer, PutsTheLanguageTagBeforeTheSourceBytes) {
  const ByteTokenizer tokenizer({"fr", "de"});
  EXPECT_EQ(tokenizer.encode_source("de", "ab"), (Ids{260, 'a', 'b'}));
  EXPECT_EQ(tokenizer.encode_source("fr", ""), (Ids{261}));
  EXPECT_EQ(tokenizer.encode_target("\u00e9"), (Ids{0xC3, 0xA9}));
}

TEST(ByteTokenizer, GivesAnUnknownLanguageTheGenericTag) {
  const ByteTokenizer tokenizer({"fr", "de"});
  EXPECT_EQ(tokenizer.encode_source("tlh", "a"), (Ids{ByteTokenizer::kAnyLanguage, 'a'}));
  EXPECT_EQ(tokenizer.tag(""), ByteTokenizer::kAnyLanguage);
}

TEST(ByteTokenizer, IdsDependOnTheSetOfLanguagesOnly) {
  const ByteTokenizer one({"fr", "de", "pt_BR"});
  const ByteTokenizer two({"pt_BR", "de", "fr", "de"});
  EXPECT_EQ(one.languages(), two.languages());
  EXPECT_EQ(one.tag("pt_BR"), 262);
  EXPECT_EQ(two.tag("pt_BR"), 262);
  EXPECT_EQ(one.source_vocabulary(), 263);
  EXPECT_EQ(one.target_vocabulary(), 259);
  EXPECT_EQ(ByteTokenizer({}).source_vocabulary(), 260);
}

TEST(ByteTokenizer, DecodesWhatItEncoded) {
  const ByteTokenizer tokenizer({"fr"});
  for (const char* text : {"", "Cagayan", "c\u00f4te d\u2019Ivoire", "\U0001F600"}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode_target(text)), text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode_source("fr", text)), text);
  }
}

TEST(ByteTokenizer, DecodingStopsAtTheEnd) {
  const ByteTokenizer tokenizer({"fr"});
  EXPECT_EQ(tokenizer.decode(Ids{ByteTokenizer::kBegin, 'a', ByteTokenizer::kEnd, 'b'}), "a");
}

TEST(ByteTokenizer, DecodesAnyIdsToValidUtf8) {
  const ByteTokenizer tokenizer({"fr"});
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    Ids ids(random() % 12);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 300) - 20;
    EXPECT_TRUE(formats::is_utf8(tokenizer.decode(ids)));
  }
  EXPECT_EQ(tokenizer.decode(Ids{'a', 0xC3, 'b'}),
            "a\ufffd"
            "b");
  EXPECT_EQ(tokenizer.decode(Ids{-1, 'a', std::int64_t{1} << 40}), "a");
}

}  // namespace
}  // namespace headrace::train
