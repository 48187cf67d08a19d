// A synthetic workload on the drive model in virtual time. iodepth commands are in flight; each completion is followed
// by a new command.
//
// Calls the model directly, without locks or virtual calls, so the run time is that of the model.
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
  double read_share = 0.5;   // mixed: share of the commands
  double hot_space = 0.1;    // hotcold: the first share of the range is hot, contiguous like fio's zones
  double hot_traffic = 0.9;  // hotcold: share of the writes that go to the hot part
  std::uint64_t range_bytes = 0;
  double compression_ratio = 1;  // compressed size / size of the written data, for drives that compress
};

// The addresses of the workload's commands. Deterministic in the seed.
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
  std::uint64_t places_;      // number of aligned addresses in the range
  std::uint64_t hot_places_;  // how many of them, from the first, are hot; at least one is hot and one is cold
  std::uint64_t cursor_ = 0;  // for sequential patterns
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

// Called every few thousand I/Os with their number so far. Returns false to end the loop early.
using LoopWatch = std::function<bool(std::uint64_t ios)>;

// At its end the drive is idle. The time until then is not part of the duration; what it programs is in the counters.
// REQUIRES: an idle drive whose time is 0.
LoopResult run_closed_loop(device::DriveModel& drive, const Workload& workload, std::uint64_t ios, std::uint64_t seed,
                           const LoopWatch& watch);

}  // namespace spillway::tool
