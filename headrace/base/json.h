// JSON: parsed within bounds, read key by key with the file and the key's path in every error, and
// printed so that numbers read back to the same bits. Include <nlohmann/json.hpp> where values are
// built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headrace::base {

/// What a document may be at most.
struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20U;
  std::size_t depth = 64;  // arrays and objects inside each other
};

/// @param where what to call the document in errors: a file's name.
/// @throws IoError: not JSON (where:line:column), a key twice in one object, or beyond the limits.
/// Cost: one pass, no recursion.
nlohmann::json parse_json(std::string_view text, const std::string& where,
                          const JsonLimits& limits = {});

/// Two spaces of indent (`indent` < 0: one line), newline at the end only when indented. A number
/// that is not finite is written as null; bytes that are not UTF-8 as U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = 2);

/// Reads one object of a document. Lent: it must not outlive the document.
/// Every read throws IoError naming the document, the key's path, what was expected and found.
class JsonObject {
 public:
  /// The document itself. @throws IoError if it is not an object.
  JsonObject(const nlohmann::json& value, std::string where, std::string path = "");

  bool has(const std::string& key) const;
  std::string string(const std::string& key) const;
  bool boolean(const std::string& key) const;
  std::int64_t integer(const std::string& key,
                       std::int64_t min = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  /// Finite and in [min, max]; an integer will do.
  double number(const std::string& key, double min = std::numeric_limits<double>::lowest(),
                double max = std::numeric_limits<double>::max()) const;
  JsonObject object(const std::string& key) const;
  /// An array of objects with at most `most` of them.
  std::vector<JsonObject> objects(const std::string& key, std::size_t most) const;
  /// An array of anything, as it is.
  const nlohmann::json& array(const std::string& key, std::size_t most) const;
  std::vector<std::string> keys() const;

  /// Reads "format_version". @throws IoError unless it is `known`.
  void check_format_version(std::int64_t known) const;
  /// @throws IoError for a key that is none of these, naming the nearest.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  /// An IoError about a key of this object: "where: key 'path.key' `problem`".
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  const nlohmann::json& at(const std::string& key) const;
  std::string path_to(const std::string& key) const;

  const nlohmann::json* value_;
  std::string where_;
  std::string path_;
};

}  // namespace headrace::base
