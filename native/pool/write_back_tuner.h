// How many dirty pages a buffer pool writes back at once, tuned while the pool runs (P27).
//
// An epoch is a number of batches of one size. Its cost is what a page written costs the pool's caller, and the reads
// that go with it:
//
//   cost = write wait / useful pages written + q * read
//   read = a tenth of this epoch's mean wait for a page read + nine tenths of the mean over all epochs
//
// q: pages read for each useful page written, over all epochs so far with those of late counting most. So what the
// trace happened to ask for in an epoch (how many of its victims were dirty) is in no comparison. Useful are pages that
// were not changed again before their frame was reused: a larger batch writes more pages too early. Reads belong to the
// cost because a batch that is larger than the drive's concurrency may delay the reads after it. But how long a read
// waits depends far more on the drive's garbage collection, whose bursts last about an epoch: at full weight, they
// would hide what a batch costs. The price is that a delay of the reads counts for a tenth of what it is.
//
// An epoch begins and ends at a batch, when no frame that is clean because of an earlier batch is left to evict. So
// sizes that alternate do not lend each other clean frames.
#pragma once

#include <cstdint>
#include <vector>

#include "pool/counters.h"
#include "pool/hill_climb.h"

namespace spillway::pool {

class WriteBackTuner {
 public:
  // REQUIRES: 0 < least <= most
  WriteBackTuner(std::uint32_t least, std::uint32_t most) : climb_(least, most) {}

  // The size of the next batch. `counters`: the pool's, before that batch.
  std::uint32_t next(const PoolCounters& counters);

  // The counters went back to zero: the running epoch begins again.
  void restart_epoch() { epoch_began_ = {}; }

  // The size that was found best so far, the number of epochs, and the sizes that were held one after another.
  std::uint32_t held() const { return climb_.held(); }
  std::uint64_t epochs() const { return climb_.epochs(); }
  const std::vector<std::uint32_t>& path() const { return climb_.path(); }

 private:
  HillClimb climb_;
  PoolCounters epoch_began_;
  bool has_begun_ = false;
  double reads_ = 0;  // of all epochs, those of late counting most
  double read_ns_ = 0;
  double useful_writes_ = 0;
};

}  // namespace spillway::pool
