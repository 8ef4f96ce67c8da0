// A run of seconds: a small model over a small corpus.
#pragma once

#include <filesystem>

#include "headrace/record/recipe.h"

namespace headrace::test {

inline record::Recipe small_recipe(const std::filesystem::path& folder) {
  record::Recipe recipe;
  recipe.run.folder = (folder / "run").string();
  recipe.model.width = 16;
  recipe.model.heads = 2;
  recipe.model.feed_forward = 32;
  recipe.model.encoder_layers = 1;
  recipe.model.decoder_layers = 1;
  recipe.data.root = (folder / "data").string();
  recipe.data.max_target_bytes = 20;  // an untrained model never ends a translation by itself
  recipe.training.steps = 3;
  recipe.training.micro_batch_size = 3;
  recipe.training.global_batch_size = 10;
  recipe.evaluation.pairs = 2;
  recipe.evaluation.samples = 2;
  recipe.metrics.log_freq = 1;
  return recipe;
}

}  // namespace headrace::test
