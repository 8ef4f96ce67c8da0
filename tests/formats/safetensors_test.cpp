#include "headrace/formats/safetensors.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"

namespace headrace::formats {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

class Folder {
 public:
  Folder()
      : path_(fs::temp_directory_path() / ("headrace-safetensors-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const char* name) const { return path_ / name; }
  bool empty() const { return fs::is_empty(path_); }

 private:
  fs::path path_;
};

std::string with_length(std::string header, const std::string& data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  }
  return file + header + data;
}

Description parse(const std::string& file) {
  return parse_safetensors(file, file.size(), "w");
}

std::string error_of(const std::string& file) {
  try {
    parse(file);
  } catch (const base::IoError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refused(const std::string& header, const std::string& data,
                    const std::vector<std::string>& parts) {
  const std::string text = error_of(with_length(header, data));
  EXPECT_NE(text, "accepted") << header;
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string refusal(const std::vector<TensorBytes>& tensors, const fs::path& path) {
  try {
    write_safetensors(path, tensors);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// The bytes as the format's document lays them out, written by hand: the header's length (144 =
// 0x90) in 8 little-endian bytes, the header padded with spaces, then b (two F32: 1 and -2) before
// a (3 x U8).
std::string golden() {
  return "\x90\0\0\0\0\0\0\0"s
         "{\"__metadata__\":{\"step\":\"7\"},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}       "
         "\0\0\x80\x3F\0\0\0\xC0\x01\x02\x03"s;
}

TEST(Safetensors, WriterMakesTheGoldenBytes) {
  const Folder folder;
  const std::array<float, 2> floats{1.0F, -2.0F};
  const std::string small = "\x01\x02\x03";
  const std::vector<TensorBytes> tensors{{"a", "U8", {3}, bytes_of(small)},
                                         {"b", "F32", {2, 1}, std::as_bytes(std::span(floats))}};
  write_safetensors(folder / "x.safetensors", tensors, {{"step", "7"}});
  EXPECT_EQ(base::read_file(folder / "x.safetensors"), golden());
}

TEST(Safetensors, ReaderDescribesTheGoldenBytes) {
  const Description description = parse(golden());
  ASSERT_EQ(description.tensors.size(), 2U);
  EXPECT_EQ(description.tensors[0].name, "b");
  EXPECT_EQ(description.tensors[0].dtype, "F32");
  EXPECT_EQ(description.tensors[0].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(description.tensors[1].begin, 8U);
  EXPECT_EQ(description.tensors[1].num_bytes(), 3U);
  EXPECT_EQ(description.data_begin, 152U);
  EXPECT_EQ(description.metadata.at("step"), "7");
  EXPECT_EQ(description.find("a"), &description.tensors[1]);
  EXPECT_EQ(description.find("c"), nullptr);
}

TEST(Safetensors, RoundTripsEveryDtypeScalarsAndEmptyTensors) {
  const Folder folder;
  std::vector<std::string> storage;
  for (const SafetensorsDtype& dtype : safetensors_dtypes()) {
    storage.emplace_back(dtype.bits, static_cast<char>('a' + storage.size()));
  }
  std::vector<TensorBytes> tensors;
  for (std::size_t i = 0; i < storage.size(); ++i) {
    const std::string dtype(safetensors_dtypes()[i].name);
    tensors.push_back({"t/" + dtype, dtype, {2, 4}, bytes_of(storage[i])});
  }
  tensors.push_back({"scalar", "F32", {}, bytes_of(storage[0]).first(4)});
  tensors.push_back({"empty", "F64", {3, 0, 2}, {}});
  tensors.push_back({"name \"quoted\" \xC3\xA9\n", "I8", {1}, bytes_of(storage[1]).first(1)});
  write_safetensors(folder / "x", tensors, {{"k\"", "v\n"}});
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.description().tensors.size(), tensors.size());
  EXPECT_EQ(file.description().metadata.at("k\""), "v\n");
  EXPECT_EQ(file.description().data_begin % 8, 0U);
  for (const TensorBytes& tensor : tensors) {
    const TensorEntry* entry = file.description().find(tensor.name);
    ASSERT_NE(entry, nullptr) << tensor.name;
    EXPECT_EQ(entry->dtype, tensor.dtype);
    EXPECT_EQ(entry->shape, tensor.shape);
    const std::uint64_t element_bytes = safetensors_dtype(tensor.dtype).bits / 8;
    EXPECT_TRUE(element_bytes == 0 || entry->begin % element_bytes == 0) << tensor.name;
    std::vector<std::byte> read(entry->num_bytes());
    file.read(*entry, 0, read);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
  std::array<std::byte, 2> middle{};
  file.read(*file.description().find("t/F32"), 5, middle);
  EXPECT_EQ(static_cast<char>(middle[0]), static_cast<char>(tensors[15].bytes[5]));
}

TEST(Safetensors, WritesAFileWithoutTensors) {
  const Folder folder;
  write_safetensors(folder / "x", {});
  EXPECT_TRUE(SafetensorsFile(folder / "x").description().tensors.empty());
}

TEST(Safetensors, RefusesAHeaderThatDoesNotFit) {
  EXPECT_NE(error_of("1234567").find("7 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string(8, '\xFF') + "{}").find("18446744073709551615"),
            std::string::npos);
  EXPECT_NE(error_of("\xFF\xE0\xF5\x05\0\0\0\0{}"s).find("passes the end"), std::string::npos);
  EXPECT_NE(error_of("\x01\xE1\xF5\x05\0\0\0\0{}"s).find("100000001"), std::string::npos);
  EXPECT_NE(error_of(std::string(8, '\0')).find("'{'"), std::string::npos);
  expect_refused(" {}", "", {"'{'"});
  expect_refused("{", "", {"w (header)"});
  expect_refused("{}{}", "", {});
  expect_refused("{\"a\xFF\":{}}", "", {});
}

TEST(Safetensors, RefusesEveryTruncation) {
  const std::string file = golden();
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(error_of(file.substr(0, length)), "accepted") << length;
  }
  EXPECT_NE(error_of(file + "x").find("too long"), std::string::npos);
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, RefusesEntriesThatBreakARule) {
  const auto one = [](const std::string& entry) { return "{\"a\":" + entry + "}"; };
  expect_refused(one("3"), "", {"a"});
  expect_refused(one("{}"), "", {"dtype"});
  expect_refused(one(tensor("F33", "[1]", "[0,4]")), "1234", {"a.dtype", "F33"});
  expect_refused(one(tensor("F32", "[2]", "[0,4]")), "1234", {"4 bytes", "8"});
  expect_refused(one(tensor("F32", "[-1]", "[0,4]")), "1234", {"a.shape"});
  expect_refused(one(tensor("F32", "[1.0]", "[0,4]")), "1234", {"a.shape"});
  expect_refused(one(tensor("F32", "[18446744073709551617]", "[0,4]")), "1234", {"a.shape"});
  expect_refused(one(tensor("F32", "[4294967296,4294967296]", "[0,0]")), "", {"more than can be"});
  expect_refused(one(tensor("F4", "[3]", "[0,2]")), "12", {"a.data_offsets"});
  expect_refused(one(tensor("F32", "[1]", "[4,0]")), "1234", {"begin <= end"});
  expect_refused(one(tensor("F32", "[1]", "[0]")), "1234", {"a.data_offsets"});
  expect_refused(one(tensor("F32", "[1]", "[0,4,8]")), "1234", {"a.data_offsets"});
  expect_refused(one(tensor("F32", "[[1]]", "[0,4]")), "1234", {});
  expect_refused(one(R"({"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1})"), "", {"more"});
  expect_refused(one(R"({"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]})"), "",
                 {"dtype"});
  expect_refused(R"({"__metadata__":{"k":3}})", "", {"__metadata__.k"});
  expect_refused(R"({"__metadata__":{"k":{"l":"m"}}})", "", {});
}

TEST(Safetensors, RefusesHolesOverlapsAndDuplicates) {
  const auto two = [](const std::string& a, const std::string& b, const char* second = "b") {
    return "{\"a\":" + tensor("U8", "[2]", a) + ",\"" + second + "\":" + tensor("U8", "[2]", b) +
           "}";
  };
  EXPECT_EQ(error_of(with_length(two("[2,4]", "[0,2]"), "1234")), "accepted");
  expect_refused(two("[0,2]", "[3,5]"), "12345", {"'b'", "3", "hole"});
  expect_refused(two("[0,2]", "[1,3]"), "123", {"'b'", "overlap"});
  expect_refused(two("[1,3]", "[3,5]"), "12345", {"'a'", "hole"});
  expect_refused(two("[0,2]", "[2,4]", "a"), "1234", {"a"});
  expect_refused(two("[0,2]", "[2,4]"), "123", {"truncated"});
}

TEST(Safetensors, WriterRefusesBeforeAnythingIsWritten) {
  const Folder folder;
  const std::string four = "1234";
  const auto bytes = bytes_of(four);
  const fs::path path = folder / "x";
  const auto expect = [&](const std::vector<TensorBytes>& tensors, const std::string& part) {
    const std::string text = refusal(tensors, path);
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
    EXPECT_TRUE(folder.empty());
  };
  expect({{"a", "F32", {1}, bytes}, {"a", "F32", {1}, bytes}}, "two tensors");
  expect({{"", "F32", {1}, bytes}}, "not empty");
  expect({{"__metadata__", "F32", {1}, bytes}}, "__metadata__");
  expect({{"\xFF", "F32", {1}, bytes}}, "UTF-8");
  expect({{"a", "f32", {1}, bytes}}, "did you mean 'F32'");
  expect({{"a", "F32", {2}, bytes}}, "needs 8 bytes, 4 were given");
  expect({{"a", "F32", {-1}, bytes}}, "more than can be");
}

TEST(Safetensors, WriterRefusesAHeaderNoReaderTakes) {
  const Folder folder;
  std::vector<TensorBytes> tensors;
  for (int i = 0; i < 1050; ++i) {
    tensors.push_back({std::string(100'000, 'n') + std::to_string(i), "U8", {0}, {}});
  }
  const std::string text = refusal(tensors, folder / "x");
  EXPECT_NE(text.find("write several files"), std::string::npos) << text;
  EXPECT_TRUE(folder.empty());
}

TEST(Safetensors, FileErrorsNameThePath) {
  const Folder folder;
  for (const char* name : {"missing", "."}) {
    try {
      SafetensorsFile file(folder / name);
      FAIL() << name;
    } catch (const base::IoError& error) {
      EXPECT_NE(std::string(error.what()).find("headrace-safetensors"), std::string::npos);
    }
  }
  base::write_file(folder / "short", golden().substr(0, 50));
  EXPECT_THROW(SafetensorsFile(folder / "short"), base::IoError);
}

TEST(Safetensors, TellsThatAFileBecameShorter) {
  const Folder folder;
  base::write_file(folder / "x", golden());
  const SafetensorsFile file(folder / "x");
  fs::resize_file(folder / "x", golden().size() - 1);
  std::array<std::byte, 3> into{};
  try {
    file.read(file.description().tensors[1], 0, into);
    FAIL() << "accepted";
  } catch (const base::IoError& error) {
    EXPECT_NE(std::string(error.what()).find("shorter"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace headrace::formats
