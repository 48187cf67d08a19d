// Which keys a load writes, and how many distinct ones sets of writes hold.
//
// Keys lie in [0, 1). Keys are grouped by popularity: class c has K_c keys, scattered evenly over the key space, each
// written with the probability q_c. A uniform load has one class. Of a zipfian load, class c has the ranks
// [2^c, 2^(c+1)), and its keys are taken as equally popular.
//
// YCSB's zipfian load has R = 10^10 ranks, however many keys, and a hash puts each rank on any of the K keys. The class
// of a key is then that of its most popular rank; less popular ones, of which there are many a key, fall on all keys
// alike. With w_c the share of the puts that ranks of class c have, n_c their number:
//
//   U_c = K exp(-(n_0 + ... + n_(c-1)) / K)        keys without a rank of an earlier class
//   K_c = U_c - U_(c+1)
//   K_c q_c = w_c U_c / K + (w_(c+1) + w_(c+2) + ...) K_c / K
//
// Of 0.99 and 10^5 keys half of the puts are of ranks beyond the keys' number: as if half of the load were uniform.
//
//   distinct keys of n puts         K_c (1 - exp(-n q_c))
//   distinct keys of several sets   K_c (1 - product over sets of (1 - share of K_c that the set holds))
//
// The second holds for sets that are independent of each other, as memtables of random writes are. The sets of a load
// that writes each key once do not meet: their sizes add.
// At grain g the classes are those of the original load, with K_c / g keys of probability g q_c: n / g puts then hold
// distinct(n) / g keys. (Fewer keys of a zipfian load would be other ones: it has no scale.)
// Ignores: zipfian loads whose popular keys lie side by side (YCSB scatters them by a hash), and how unequally ranks of
// one class fall on keys.
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
  // Every key of a span of the key space.
  Entries all(double span) const;

  // Entries of class c that the merged sets hold in a span of the key space; `held` are theirs in it.
  double merged(std::size_t c, double span, std::span<const double> held) const;

 private:
  void scatter(double ranks, double keys, double theta);

  std::vector<double> class_keys_;
  std::vector<double> key_probability_;  // of one put, for a key of the class
  bool overwrites_ = true;
  bool sequential_ = false;
};

}  // namespace spillway::lsm
