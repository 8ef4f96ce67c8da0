// What a recipe's values must be together: sizes that divide, fit and multiply.
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/record/recipe.h"

namespace headrace::record {

/// Where each value came from, and which of them are wrong by themselves.
class Origins {
 public:
  void set(std::string_view key, std::string place);
  void mark_wrong(std::string_view key);

  /// True if the file, the environment or a flag gave it.
  bool given(std::string_view key) const;
  /// False if one of them is wrong by itself: then nothing is said about them together.
  bool sound(std::initializer_list<std::string_view> keys) const;
  /// The place of the first of them that was given; "defaults" if none was.
  std::string place(std::initializer_list<std::string_view> keys) const;

 private:
  std::map<std::string, std::string, std::less<>> places_;
  std::set<std::string, std::less<>> wrong_;
};

/// Every mistake of a recipe, told together.
class Mistakes {
 public:
  void add(const std::string& place, const std::string& what);

  /// True once there are more than will be shown: no need to word further ones well.
  bool enough() const;

  /// @throws base::ConfigError with all of them, in the order in which they were added, if any.
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
};

/// Adds a mistake for each rule between keys that is broken, and a warning for each setting given
/// that has no effect.
void check_together(const Recipe& recipe, const Origins& origins, Mistakes& mistakes,
                    std::vector<std::string>& warnings);

}  // namespace headrace::record
