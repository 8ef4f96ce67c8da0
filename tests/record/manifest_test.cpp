#include "headrace/record/manifest.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/sha256.h"

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/record/small_checkpoint.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

const Shards kTwoShards = {{"model-00001-of-00002.safetensors", {{"a", {1, 2}}, {"b", {3}}}},
                           {"model-00002-of-00002.safetensors", {{"c", {4, 5, 6}}}}};
const std::string kFirst = "model-00001-of-00002.safetensors";

std::string damage(const fs::path& folder) {
  return base::message_of<base::IoError>([&] { verify(folder, read_manifest(folder)); });
}

nlohmann::json document_in(const fs::path& folder) {
  return nlohmann::json::parse(base::read_file(folder / "manifest.json"));
}

TEST(Manifest, DescribesShardsAndReadsBackEqual) {
  const base::TemporaryFolder folder;
  const Manifest written = write_checkpoint(folder / "c", kTwoShards);
  EXPECT_EQ(read_manifest(folder / "c"), written);
  verify(folder / "c", written);
  const float values[] = {1, 2};
  const auto& tensor = written.tensors.at("a");
  EXPECT_EQ(tensor.file, kFirst);
  EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_EQ(tensor.shape, std::vector<std::int64_t>{2});
  EXPECT_EQ(tensor.sha256,
            base::sha256_hex({reinterpret_cast<const char*>(values), sizeof values}));
}

TEST(Manifest, SaysWhatItsFormatIs) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  const nlohmann::json document = document_in(folder / "c");
  EXPECT_EQ(document.at("format_version"), 1);
  EXPECT_EQ(document.at("step"), 100);
  EXPECT_EQ(document.at("seed"), 7);
  EXPECT_EQ(document.at("libtorch_version"), "2.15.0");
  EXPECT_EQ(document.at("layout").at("layers_per_stage"), (std::vector<int>{3, 4}));
  EXPECT_EQ(document.at("files").at(kFirst).at("bytes"), fs::file_size(folder / "c" / kFirst));
}

TEST(Manifest, FindsEveryFlippedByte) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  const fs::path shard = folder / "c" / kFirst;
  const std::string good = base::read_file(shard);
  for (std::size_t at = 0; at < good.size(); at += 5) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    base::write_file(shard, bad);
    ASSERT_NE(damage(folder / "c").find(shard.string()), std::string::npos) << at;
  }
}

TEST(Manifest, FindsAMissingOrShortShard) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  const fs::path shard = folder / "c" / kFirst;
  const auto size = fs::file_size(shard);
  fs::resize_file(shard, size - 1);
  EXPECT_NE(damage(folder / "c").find("the manifest says"), std::string::npos);
  fs::remove(shard);
  EXPECT_NE(damage(folder / "c").find("is missing"), std::string::npos);
}

TEST(Manifest, FindsTensorsThatAreNotWhatItSays) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  const nlohmann::json good = document_in(folder / "c");
  const auto with = [&](const auto& change) {
    nlohmann::json document = good;
    change(document["tensors"]);
    base::write_file(folder / "c" / "manifest.json", document.dump());
    return damage(folder / "c");
  };
  EXPECT_NE(with([](auto& t) {
              t["a"]["shape"] = {1, 2};
            }).find("dtype or shape for 'a'"),
            std::string::npos);
  EXPECT_NE(with([](auto& t) { t["a"]["dtype"] = "I32"; }).find("dtype or shape for 'a'"),
            std::string::npos);
  EXPECT_NE(with([](auto& t) { t["a"]["sha256"] = t["b"]["sha256"]; }).find("other bytes for 'a'"),
            std::string::npos);
  EXPECT_NE(with([](auto& t) { t.erase("a"); }).find("holds 2 tensors, the manifest says 1"),
            std::string::npos);
  EXPECT_NE(with([](auto& t) {
              t["d"] = t["a"];
              t.erase("a");
            }).find("does not list"),
            std::string::npos);
}

// Shard names that leave the folder (as in a reported fault of other loaders).
TEST(Manifest, RefusesShardNamesThatLeaveTheFolder) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  fs::copy_file(folder / "c" / kFirst, folder / "outside.safetensors");
  const nlohmann::json good = document_in(folder / "c");
  for (const std::string& name :
       {std::string("../outside.safetensors"), (folder / "outside.safetensors").string(),
        std::string(), std::string("."), std::string(".."), std::string("a\0b", 3),
        std::string("sub/x"), std::string("a\\b"), std::string(300, 'x')}) {
    nlohmann::json document = good;
    document["files"][name] = good["files"][kFirst];
    document["tensors"]["a"]["file"] = name;
    base::write_file(folder / "c" / "manifest.json", document.dump());
    EXPECT_NE(base::message_of<base::IoError>([&] {
                (void)read_manifest(folder / "c");
              }).find("not a plain file name"),
              std::string::npos)
        << name;
  }
}

TEST(Manifest, RefusesAShardThatIsALink) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  fs::rename(folder / "c" / kFirst, folder / "outside.safetensors");
  fs::create_symlink(folder / "outside.safetensors", folder / "c" / kFirst);
  EXPECT_NE(damage(folder / "c").find("is a link"), std::string::npos);
}

TEST(Manifest, RefusesWhatIsNotAManifest) {
  const base::TemporaryFolder folder;
  write_checkpoint(folder / "c", kTwoShards);
  const nlohmann::json good = document_in(folder / "c");
  const auto with = [&](const auto& change) {
    nlohmann::json document = good;
    change(document);
    base::write_file(folder / "c" / "manifest.json", document.dump());
    return base::message_of<base::IoError>([&] { (void)read_manifest(folder / "c"); });
  };
  EXPECT_NE(with([](auto& d) { d["format_version"] = 2; }).find("format_version"),
            std::string::npos);
  EXPECT_NE(with([](auto& d) { d["stepp"] = 2; }).find("stepp"), std::string::npos);
  EXPECT_NE(with([](auto& d) { d["step"] = -1; }).find("step"), std::string::npos);
  EXPECT_NE(with([](auto& d) { d["files"][kFirst]["sha256"] = "AB"; }).find("hexadecimal"),
            std::string::npos);
  EXPECT_NE(with([](auto& d) { d["tensors"]["a"]["shape"] = {-1}; }).find("shape"),
            std::string::npos);
  EXPECT_NE(with([](auto& d) { d["tensors"]["a"]["file"] = "x"; }).find("not under 'files'"),
            std::string::npos);
  base::write_file(folder / "c" / "manifest.json", "{");
  EXPECT_THROW((void)read_manifest(folder / "c"), base::IoError);
  fs::remove(folder / "c" / "manifest.json");
  EXPECT_THROW((void)read_manifest(folder / "c"), base::IoError);
}

TEST(Manifest, RefusesATensorInTwoShards) {
  const base::TemporaryFolder folder;
  EXPECT_NE(base::message_of<base::ConfigError>([&] {
              write_checkpoint(folder / "c",
                               {{"x.safetensors", {{"a", {1}}}}, {"y.safetensors", {{"a", {1}}}}});
            }).find("in two shards"),
            std::string::npos);
}

}  // namespace

}  // namespace headrace::record
