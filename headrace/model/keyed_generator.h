// CPU generators whose whole state is a function of a key: what makes a draw independent of the
// thread, of the order of calls and of the global generator.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <ATen/core/Generator.h>

namespace headrace::model {

/// Mixes the words, in order, into one key. Every word changes every bit (splitmix64's finalizer
/// after each word: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t mix_key(std::initializer_list<std::uint64_t> words);

/// A stable 64-bit hash of a name (FNV-1a), the same in every build and on every machine.
std::uint64_t hash_name(std::string_view name);

/// A new CPU generator. All 624 words of its state come from the 64-bit key: LibTorch's own
/// seeding keeps only the low 32 bits, so that 80,000 keyed calls would repeat one of them.
/// Cost: about 2 us.
at::Generator keyed_generator(std::uint64_t key);

}  // namespace headrace::model
