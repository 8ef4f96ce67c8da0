#include "headrace/model/layer_guard.h"

#include <exception>
#include <optional>

#include "headrace/model/batch_norm_statistics.h"
#include "headrace/model/intercept.h"
#include "headrace/model/keyed_generator.h"

namespace headrace::model {
namespace {

// Keeps the keys of layer calls apart from those of initial weights.
constexpr std::uint64_t kLayerDomain = 0x6c61796572;  // "layer"

std::uint64_t call_key(const LayerKey& key) {
  return mix_key({kLayerDomain, key.seed, key.step, key.microbatch, key.layer});
}

}  // namespace

std::uint64_t layer_id(std::string_view name) {
  return hash_name(name);
}

struct LayerGuard::Impl {
  Impl(const LayerKey& key, BatchNormStatistics* statistics, StatisticsMode mode)
      : num_exceptions(std::uncaught_exceptions()) {
    install_interception();
    if (statistics != nullptr && !statistics->empty()) {
      batch_norm.emplace(statistics->impl(), mode, key.microbatch);
    }
    call.emplace(call_key(key), batch_norm ? &*batch_norm : nullptr);
    scope.emplace(*call);
  }

  ~Impl() {
    scope.reset();
    if (!batch_norm) {
      return;
    }
    batch_norm->restore_counters();
    // A call that threw leaves no half record.
    if (std::uncaught_exceptions() == num_exceptions) {
      batch_norm->publish();
    }
  }

  int num_exceptions;
  std::optional<BatchNormCall> batch_norm;
  std::optional<GuardedCall> call;
  std::optional<InterceptionScope> scope;
};

LayerGuard::LayerGuard(const LayerKey& key, BatchNormStatistics* statistics, StatisticsMode mode)
    : impl_(std::make_unique<Impl>(key, statistics, mode)) {}

LayerGuard::~LayerGuard() = default;

}  // namespace headrace::model
