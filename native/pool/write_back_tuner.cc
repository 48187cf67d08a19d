#include "pool/write_back_tuner.h"

namespace spillway::pool {
namespace {

// Some per cent of noise are left in an epoch; four pairs of epochs are 1500 pages.
constexpr std::uint64_t kEpochPages = 192;  // Source: guess
constexpr std::uint64_t kEpochBatches = 4;  // Source: guess
constexpr double kForget = 0.95;            // of the sums over all epochs, for each epoch. Source: guess

constexpr double kOwnReads = 0.1;  // Source: guess; write_back_tuner.h says why

}  // namespace

std::uint32_t WriteBackTuner::next(const PoolCounters& counters) {
  if (!has_begun_) {  // while the pool fills, nothing is written
    has_begun_ = true;
    epoch_began_ = counters;
  }
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
  read_ns_ = kForget * read_ns_ + read_ns;
  const double read_cost = kOwnReads * read_ns / static_cast<double>(read) + (1 - kOwnReads) * read_ns_ / reads_;
  const double cost = write_ns / useful + reads_ / useful_writes_ * read_cost;
  epoch_began_ = counters;
  // A drive that takes no time has no size to find.
  if (cost > 0) climb_.observe(cost);
  return climb_.size();
}

}  // namespace spillway::pool
