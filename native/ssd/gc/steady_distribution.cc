#include "ssd/gc/steady_distribution.h"

#include <algorithm>
#include <cmath>

namespace spillway::ssd {
namespace {

// m such that c i m = 1 - (above + m)^d: both sides are monotone in m, so bisection finds the one crossing.
double share_with(double scale, double above, double choices) {
  double low = 0;
  double high = 1 - above;
  for (int step = 0; step < 60; ++step) {
    const double m = (low + high) / 2;
    (scale * m < 1 - std::pow(above + m, choices) ? low : high) = m;
  }
  return (low + high) / 2;
}

// The distribution for c. Sets *mean to the mean number of valid pages.
std::vector<double> distribution_for(double c, std::uint32_t b, double choices, double* mean) {
  std::vector<double> m(b + 1, 0.0);
  double above = 0;
  *mean = 0;
  for (std::uint32_t i = b; i >= 1; --i) {
    m[i] = share_with(c * i, above, choices);
    above += m[i];
    *mean += i * m[i];
  }
  m[0] = std::max(0.0, 1 - above);
  return m;
}

}  // namespace

std::vector<double> d_choices_distribution(double rho, std::uint32_t pages_per_block, double choices) {
  const double target = rho * pages_per_block;
  double low = 1e-9;  // a small c keeps blocks full, a large one empties them
  double high = 1.0;
  double mean = 0;
  while (distribution_for(high, pages_per_block, choices, &mean), mean > target) high *= 2;
  for (int step = 0; step < 50; ++step) {
    const double c = (low + high) / 2;
    distribution_for(c, pages_per_block, choices, &mean);
    (mean > target ? low : high) = c;
  }
  return distribution_for((low + high) / 2, pages_per_block, choices, &mean);
}

double fifo_write_amplification(double rho) {
  // A (1 - exp(-1 / (rho A))) grows with A and reaches 1 at the solution.
  double low = 1.0;
  double high = 1.0 / (1.0 - rho) + 1;  // FIFO is at least as good as d = 1
  for (int step = 0; step < 200; ++step) {
    const double a = (low + high) / 2;
    (a * (1 - std::exp(-1 / (rho * a))) < 1 ? low : high) = a;
  }
  return (low + high) / 2;
}

}  // namespace spillway::ssd
