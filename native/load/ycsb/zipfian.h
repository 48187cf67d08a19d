// Numbers whose popularity falls with a power of their rank: P(rank k) in proportion to 1 / (k + 1)^theta.
//
// Drawn by the approximation of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating
// Billion-Record Synthetic Databases", SIGMOD 1994, which YCSB uses. The two most popular ranks have their exact
// shares, 1/zeta_n and 2^-theta/zeta_n; the rest follows the continuous law
//   rank = n (eta u - eta + 1)^(1/(1-theta)),   eta = (1 - (2/n)^(1-theta)) / (1 - zeta_2/zeta_n),   u uniform in [0,
//   1)
// with zeta_n the sum of i^-theta over i = 1..n. It differs from the exact law by some per cent of a rank's own share
// near rank 2 and by less farther out. Holds for 0 < theta < 1.
#pragma once

#include <cstdint>

namespace spillway::load::ycsb {

// The sum of i^-theta over i = 1..n: the first 65536 terms one by one, the others by Euler and Maclaurin's formula,
// whose first omitted term is below 10^-19 there. REQUIRES: theta > 0, theta != 1
double zeta(std::uint64_t n, double theta);

class Zipfian {
 public:
  // REQUIRES: items > 0, 0 < theta < 1
  Zipfian(std::uint64_t items, double theta);

  std::uint64_t items() const { return items_; }

  // The rank for the uniform number `u` in [0, 1); it is in [0, items()). Pure.
  std::uint64_t rank(double u) const;

  // REQUIRES: items >= items(). Adds the new ranks' terms one by one.
  void grow(std::uint64_t items);

 private:
  void refresh();

  std::uint64_t items_;
  double theta_;
  double zeta_n_;
  double zeta_2_;
  double eta_ = 0;
};

}  // namespace spillway::load::ycsb
