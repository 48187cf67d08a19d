#include "pool/write_back_tuner.h"

namespace spillway::pool {
namespace {

// An epoch's mean waits are then known to some per cent; three pairs of epochs are 800 pages.
constexpr std::uint64_t kEpochPages = 128;  // Source: guess
constexpr std::uint64_t kEpochBatches = 4;  // Source: guess
constexpr double kForget = 0.95;            // of the sums that q is made of, for each epoch. Source: guess

}  // namespace

std::uint32_t WriteBackTuner::next(const PoolCounters& counters) {
  const std::uint64_t written = counters.pages_written - epoch_began_.pages_written;
  const std::uint64_t batches = counters.write_batches - epoch_began_.write_batches;
  const std::uint64_t read = counters.pages_read - epoch_began_.pages_read;
  const std::uint64_t in_vain = counters.pages_written_in_vain - epoch_began_.pages_written_in_vain;
  if (written < kEpochPages || batches < kEpochBatches || read == 0 || in_vain >= written) return climb_.size();

  const auto write_ns = static_cast<double>(counters.write_wait_ns - epoch_began_.write_wait_ns);
  const auto read_ns = static_cast<double>(counters.read_wait_ns - epoch_began_.read_wait_ns);
  const auto useful = static_cast<double>(written - in_vain);
  reads_ = kForget * reads_ + static_cast<double>(read);
  useful_writes_ = kForget * useful_writes_ + useful;
  const double cost = write_ns / useful + reads_ / useful_writes_ * read_ns / static_cast<double>(read);
  epoch_began_ = counters;
  // A drive that takes no time has no size to find.
  if (cost > 0) climb_.observe(cost);
  return climb_.size();
}

}  // namespace spillway::pool
