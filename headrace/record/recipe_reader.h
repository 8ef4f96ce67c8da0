// Values into a recipe: each checked against its key, every mistake noted with its place.
#pragma once

#include <string>

#include "headrace/record/recipe.h"
#include "headrace/record/recipe_check.h"
#include "headrace/record/recipe_toml.h"

namespace headrace::record {

/// What reading fills. Lent.
struct Reading {
  Recipe& recipe;
  Origins& origins;
  Mistakes& mistakes;
};

/// Puts what a document says into the recipe; `where` names the document.
void read_document(const TomlDocument& document, const std::string& where, const Reading& reading);

/// Puts one flag or variable into the recipe. Text is taken as it is; a list may leave its
/// brackets off ("3,4"); everything else is written as in TOML.
void read_setting(const Setting& setting, const Reading& reading);

}  // namespace headrace::record
