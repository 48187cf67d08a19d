// A synthetic workload on the drive model in virtual time: iodepth commands in flight, a new one for each that
// completes.
//
// The model is called directly, without locks or virtual calls: what a simulated io costs is what the model costs.
#pragma once

#include <cstdint>
#include <functional>

#include "base/histogram.h"
#include "device/model/drive_model.h"
#include "ssd/ssd.h"
#include "ssd/structures/random.h"

namespace spillway::tool {

enum class Pattern : std::uint8_t { randwrite, randread, seqwrite, seqread, mixed, hotcold };

struct Workload {
  Pattern pattern = Pattern::randwrite;
  std::uint64_t bs_bytes = 4096;  // a multiple of lba_bytes; ios are aligned to it, as fio's are
  std::uint32_t iodepth = 32;
  double read_share = 0.5;   // mixed: of the commands
  double hot_space = 0.1;    // hotcold: the first share of the range is hot, in one piece, as fio's zones are
  double hot_traffic = 0.9;  // hotcold: share of the writes that go there
  std::uint64_t range_bytes = 0;
  double compression_ratio = 1;  // compressed size / size of what is written, for drives that compress
};

// Where the workload's next command goes. Deterministic in the seed.
class AddressStream {
 public:
  struct Target {
    bool is_write;
    std::uint64_t offset_bytes;
  };

  // REQUIRES: range_bytes >= bs_bytes > 0
  AddressStream(const Workload& workload, std::uint64_t seed);
  Target next();

 private:
  std::uint64_t anywhere() { return random_.below(places_); }

  Workload workload_;
  std::uint64_t places_;      // aligned places for an io in the range
  std::uint64_t hot_places_;  // the first of them; at least one, and one is left cold
  std::uint64_t cursor_ = 0;  // of sequential patterns
  ssd::Random random_;
};

struct LoopResult {
  Histogram latency;
  std::uint64_t ios = 0;
  std::uint64_t failed = 0;  // completed without success; not in the histogram
  ssd::Outcome first_failure = ssd::Outcome::success;
  ssd::Nanos duration_ns = 0;
  bool complete = false;
};

// Told the number of ios done, each few thousand of them; false ends the loop early.
using LoopWatch = std::function<bool(std::uint64_t ios)>;

// Leaves a quiet drive: the time that takes is not part of the duration, what it programs is in the counters.
// REQUIRES: a quiet drive whose time has not begun.
LoopResult run_closed_loop(device::DriveModel& drive, const Workload& workload, std::uint64_t ios, std::uint64_t seed,
                           const LoopWatch& watch);

}  // namespace spillway::tool
