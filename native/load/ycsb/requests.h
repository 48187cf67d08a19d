// The kind of the next operation and its record: YCSB's distributions, as streams of a seed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "load/ycsb/properties.h"
#include "load/ycsb/zipfian.h"
#include "ssd/structures/random.h"

namespace spillway::load::ycsb {

enum class Kind : std::uint8_t { read, update, insert, scan, readmodifywrite };
inline constexpr std::size_t kKinds = 5;
const char* name_of(Kind kind);

// Draws kinds in proportion to the properties' proportions, which need not add up to 1.
class KindChooser {
 public:
  // REQUIRES: a proportion above 0
  explicit KindChooser(const Properties& properties);

  Kind next(ssd::Random& random) const {
    const double drawn = random.uniform();
    std::size_t kind = 0;
    while (kind < last_ && drawn >= upper_[kind]) ++kind;
    return static_cast<Kind>(kind);
  }

 private:
  std::array<double, kKinds> upper_{};  // cumulative shares
  std::size_t last_ = 0;                // the last kind with a share: rounding may leave its bound below 1
};

// The position of one thread among the threads of a phase, for choosing records.
struct Requester {
  std::uint64_t thread = 0;
  std::uint64_t threads = 1;
  std::uint64_t inserted_before = 0;   // by earlier phases, after recordcount
  std::uint64_t expected_inserts = 0;  // of this phase, for the zipfian distribution's range
};

// The numbers of the requested records. Over n records that exist from insertstart on:
//   uniform      all with the same probability; records inserted later are not requested
//   zipfian      a rank of Zipfian(10^10 ranks), hashed and taken modulo the range, so that the popular ones lie
//                scattered; the range leaves room for twice the inserts to come, so that an insert moves no popularity,
//                and a number that is not there yet is drawn again. Ranks beyond the range fall on all records alike:
//                with 0.99 and 10^6 records those are 42 % of the requests, which other generators leave out.
//   latest       the last record minus a rank of Zipfian(last record), so that the newest is the most popular
//   hotspot      hotspotopnfraction of the requests, evenly, to the first hotspotdatafraction of the records
//   exponential  the last record minus an exponentially distributed distance, of which exponential.percentile % lie
//                within exponential.frac of recordcount
//   sequential   one after another and again from the start; threads take turns
// Source: CoreWorkload and site.ycsb.generator of YCSB.
class RecordChooser {
 public:
  RecordChooser(const Properties& properties, const Requester& requester);

  // In [0, last]. REQUIRES: last never falls from one call to the next.
  std::uint64_t next(ssd::Random& random, std::uint64_t last);

 private:
  std::uint64_t draw(ssd::Random& random, std::uint64_t last);

  Request distribution_;
  std::uint64_t start_;
  std::uint64_t count_;  // of the records that the distribution spans
  std::uint64_t hot_ = 0;
  double hot_share_ = 0;
  double rate_ = 0;     // of the exponential distribution, per record
  std::uint64_t next_;  // of `sequential`
  std::uint64_t stride_;
  std::optional<Zipfian> zipfian_;
};

}  // namespace spillway::load::ycsb
