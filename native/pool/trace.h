// The pages that a workload requests from a buffer pool, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pool/buffer_pool.h"
#include "ssd/structures/random.h"

namespace spillway::pool {

struct Reference {
  Page page = 0;
  bool writes = false;
};

class Trace {
 public:
  virtual ~Trace() = default;
  // None at the end of the trace.
  virtual std::optional<Reference> next() = 0;
};

enum class Pattern : std::uint8_t { uniform, zipfian, sequential };

struct SyntheticSpec {
  Pattern pattern = Pattern::uniform;
  std::uint64_t pages = 0;     // > 0
  double read_fraction = 0.5;  // f_r: share of references that read; drawn for each reference
  double theta = 0.99;         // zipfian: the r-th most popular page is requested in proportion to r^-theta
};

// Endless, and deterministic in the seed. Popular pages are scattered over the whole range.
std::unique_ptr<Trace> make_synthetic(const SyntheticSpec& spec, std::uint64_t seed);

// Parses lines "r PAGE" or "w PAGE", with pages counted from 0. Skips empty lines and text after a #. An error names
// the line that is neither, or whose page is not below `pages`.
Result<std::vector<Reference>> parse_trace(const std::string& text, const std::string& name, std::uint64_t pages);
Result<std::vector<Reference>> read_trace(const std::string& path, std::uint64_t pages);
std::unique_ptr<Trace> make_recorded(std::vector<Reference> references);

// Ranks 1 … n with probability in proportion to rank^-theta, without a table: rejection-inversion (W. Hormann and
// G. Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM TOMACS 6(3),
// 1996). Exact for every theta >= 0.
class Zipf {
 public:
  // REQUIRES: n > 0, theta >= 0
  Zipf(std::uint64_t n, double theta);
  std::uint64_t operator()(ssd::Random& random) const;

 private:
  // The antiderivative of x^-theta that is 0 at 1, and its inverse.
  double area(double x) const;
  double place(double area) const;
  double height(double x) const;

  double n_;
  double theta_;
  double area_end_;    // area up to n + 1/2
  double area_begin_;  // area down to the start of rank 1, whose area equals its probability
  double sure_ = 0;    // a draw within this distance below its rank is accepted without the exact test
};

}  // namespace spillway::pool
