#include "load/ycsb/requests.h"

#include <algorithm>
#include <cmath>

#include "load/ycsb/records.h"

namespace spillway::load::ycsb {
namespace {

constexpr std::uint64_t kScrambledRanks = 10'000'000'000;  // Source: YCSB's ScrambledZipfianGenerator

}  // namespace

const char* name_of(Kind kind) {
  constexpr std::array kNames = {"read", "update", "insert", "scan", "readmodifywrite"};
  return kNames[static_cast<std::size_t>(kind)];
}

KindChooser::KindChooser(const Properties& properties) {
  const std::array<double, kKinds> shares = {properties.readproportion, properties.updateproportion,
                                             properties.insertproportion, properties.scanproportion,
                                             properties.readmodifywriteproportion};
  double sum = 0;
  for (const double share : shares) sum += share;
  double upper = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    upper += shares[kind] / sum;
    upper_[kind] = upper;
    if (shares[kind] > 0) last_ = kind;
  }
}

RecordChooser::RecordChooser(const Properties& properties, const Requester& requester)
    : distribution_(properties.requestdistribution),
      start_(properties.insertstart),
      count_(properties.inserts_of_load()),
      next_(requester.thread),
      stride_(requester.threads) {
  switch (distribution_) {
    case Request::zipfian:
      // One more than the number of records, as in YCSB, whose range includes its upper end.
      count_ += requester.inserted_before + requester.expected_inserts + 1;
      zipfian_.emplace(kScrambledRanks, properties.zipfian_const);
      break;
    case Request::latest:
      zipfian_.emplace(properties.recordcount - 1 + requester.inserted_before, properties.zipfian_const);
      break;
    case Request::hotspot:
      hot_ = static_cast<std::uint64_t>(static_cast<double>(count_) * properties.hotspotdatafraction);
      hot_share_ = hot_ == 0 ? 0 : properties.hotspotopnfraction;
      if (hot_ == count_) hot_share_ = 1;
      break;
    case Request::exponential:
      rate_ = -std::log(1 - properties.exponential_percentile / 100) /
              (static_cast<double>(properties.recordcount) * properties.exponential_frac);
      break;
    case Request::uniform:
    case Request::sequential:
      break;
  }
}

std::uint64_t RecordChooser::next(ssd::Random& random, std::uint64_t last) {
  std::uint64_t record = draw(random, last);
  while (record > last) record = draw(random, last);
  return record;
}

std::uint64_t RecordChooser::draw(ssd::Random& random, std::uint64_t last) {
  switch (distribution_) {
    case Request::zipfian:
      return start_ + fnv_hash(zipfian_->rank(random.uniform())) % count_;
    case Request::latest:
      zipfian_->grow(last);
      return last - zipfian_->rank(random.uniform());
    case Request::hotspot: {
      const bool hot = random.uniform() < hot_share_;
      return start_ + (hot ? random.below(hot_) : hot_ + random.below(count_ - hot_));
    }
    case Request::exponential: {
      // A distance beyond the first record wraps around to a number above `last`, and is drawn again.
      const double distance = -std::log(1 - random.uniform()) / rate_;
      return last - static_cast<std::uint64_t>(std::min(distance, 0x1.0p62));
    }
    case Request::sequential: {
      const std::uint64_t record = start_ + next_ % count_;
      next_ += stride_;
      return record;
    }
    case Request::uniform:
      break;
  }
  return start_ + random.below(count_);
}

}  // namespace spillway::load::ycsb
