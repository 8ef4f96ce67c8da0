// TOML to a flat list of assignments, each with its place. The only file behind this header is the
// only one that sees toml++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::record {

/// A value that no key of a recipe can have: a date, a table, a list with something else inside.
struct Unusable {
  std::string what;  // "a date", "a list of text"
};

using Value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, Unusable>;

/// "an integer", "text", "a date", ...
std::string kind_name(const Value& value);

/// One key with its value. `key` is "section.key", or a bare name outside of any section.
struct Assignment {
  std::string key;
  Value value;
  std::string shown;        // the value as messages show it
  std::string key_place;    // "file:line:column" of the key
  std::string value_place;  // and of the value
};

/// A table at the top of the document, empty or not.
struct SectionHeader {
  std::string name;
  std::string place;
};

/// A text that is not TOML.
struct SyntaxMistake {
  std::string place;
  std::string what;
};

struct TomlDocument {
  std::vector<SectionHeader> sections;
  std::vector<Assignment> assignments;  // in the order of the text
  std::optional<SyntaxMistake> mistake;
};

/// Never throws for what the text holds. Cost: linear; nesting is bounded.
TomlDocument read_toml(std::string_view text, const std::string& where);

/// One value as TOML writes it (`20`, `0xff`, `1e-3`, `true`, `[3, 4]`); nothing if it is not one.
std::optional<Value> read_toml_value(std::string_view text);

}  // namespace headrace::record
