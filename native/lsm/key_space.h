// Which keys a load writes, and how many distinct ones sets of writes hold.
//
// Keys lie in [0, 1). Keys are grouped by popularity: class c has K_c keys, scattered evenly over the key space, each
// written with the probability q_c. A uniform load has one class. Of a zipfian load, class c has the ranks
// [2^c, 2^(c+1)), and its keys are taken as equally popular.
//
//   distinct keys of n puts         K_c (1 - exp(-n q_c))
//   distinct keys of several sets   K_c (1 - product over sets of (1 - share of K_c that the set holds))
//
// The second holds for sets that are independent of each other, as memtables of random writes are. The sets of a load
// that writes each key once do not meet: their sizes add.
// At grain g the classes are those of the original load, with K_c / g keys of probability g q_c: n / g puts then hold
// distinct(n) / g keys. (Fewer keys of a zipfian load would be other ones: it has no scale.)
// Ignores: zipfian loads whose popular keys lie side by side (YCSB scatters them by a hash).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lsm/spec.h"

namespace spillway::lsm {

// Entries by class.
using Entries = std::vector<double>;
double total(const Entries& entries);

class KeySpace {
 public:
  // `load` of a coarse grain: its keys are those of the original, divided by the grain.
  explicit KeySpace(const LoadSpec& load, std::uint32_t grain = 1);

  std::size_t classes() const { return class_keys_.size(); }
  double class_keys(std::size_t c) const { return class_keys_[c]; }
  bool overwrites() const { return overwrites_; }
  bool sequential() const { return sequential_; }

  // Distinct entries of this many puts.
  Entries distinct(double puts) const;

  // Entries of class c that the merged sets hold in a span of the key space; `held` are theirs in it.
  double merged(std::size_t c, double span, std::span<const double> held) const;

 private:
  std::vector<double> class_keys_;
  std::vector<double> key_probability_;  // of one put, for a key of the class
  bool overwrites_ = true;
  bool sequential_ = false;
};

}  // namespace spillway::lsm
