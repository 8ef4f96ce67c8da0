#include "headrace/model/keyed_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/MT19937RNGEngine.h>

namespace headrace::model {
namespace {

constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

std::uint64_t finalize(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t mix_key(std::initializer_list<std::uint64_t> words) {
  std::uint64_t key = kGoldenGamma;
  for (const std::uint64_t word : words) {
    key = finalize((key ^ finalize(word + kGoldenGamma)) + kGoldenGamma);
  }
  return key;
}

std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

at::Generator keyed_generator(std::uint64_t key) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(key);
  auto* impl = generator.get<at::CPUGeneratorImpl>();
  at::mt19937 engine = impl->engine();
  at::mt19937_data_pod state = engine.data();
  std::uint64_t counter = key;
  for (std::size_t i = 0; i < state.state_.size(); i += 2) {
    counter += kGoldenGamma;
    const std::uint64_t word = finalize(counter);
    state.state_[i] = static_cast<std::uint32_t>(word);
    state.state_[i + 1] = static_cast<std::uint32_t>(word >> 32);
  }
  // As after LibTorch's own seeding: the first draw twists the state.
  state.left_ = 1;
  state.next_ = 0;
  engine.set_data(state);
  impl->set_engine(engine);
  return generator;
}

}  // namespace headrace::model
