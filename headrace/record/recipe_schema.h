// The one table of recipe keys.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/record/recipe.h"

namespace headrace::record {

/// Where a key's value lies in a Recipe. The alternative is the key's type.
using Field = std::variant<bool& (*)(Recipe&), std::int64_t& (*)(Recipe&), double& (*)(Recipe&),
                           std::string& (*)(Recipe&), std::vector<std::int64_t>& (*)(Recipe&)>;

/// What a number may be. Numbers of a list each keep to it.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // low itself is not allowed
  bool high_open = false;  // high itself is not allowed

  bool admits(double value) const;
  /// "at least 1", "in [0, 1)", ...
  std::string text() const;
};

/// One key of a recipe.
struct Key {
  std::string name;  // "section.key"
  Field field;
  std::string doc;                        // one line, for help and the documentation
  std::string unit;                       // empty: none
  Bounds bounds = {};                     // numbers
  std::vector<std::string> allowed = {};  // text, in any case; empty: any text
  // Other names of allowed ones, in lower case, and what each stands for.
  std::map<std::string, std::string, std::less<>> aliases = {};

  std::string_view section() const;
  std::string_view leaf() const;  // the name without its section
};

/// Every key, in the order in which a recipe is printed.
const std::vector<Key>& recipe_keys();

/// nullptr if there is no such key.
const Key* find_key(std::string_view name);

/// "integer", "number", "true or false", "text" or "list of integers".
std::string type_name(const Key& key);

/// The key's value in `recipe`, as TOML.
std::string value_text(const Key& key, const Recipe& recipe);

/// The table of keys for a terminal: name, default, what it may be, what it means.
std::string describe_keys();

}  // namespace headrace::record
