// A real drive as a target: a given file, a test file created here, or a block device.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "device/direct/direct_device.h"
#include "probe/target.h"
#include "ssd/structures/random.h"

namespace spillway::probe {
namespace {

using Clock = std::chrono::steady_clock;
using device::DirectFile;
using device::DirectFileSpec;
using device::Io;

// Most memory for buffers of all I/Os; it is locked.
constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 30;

// SNIA's preconditioning writes 128 KiB in order (S3). Larger writes are as fast on every drive, and fewer.
constexpr std::uint64_t kSequentialBytes = 1 << 20;
constexpr std::uint64_t kRandomBytes = 4096;
constexpr std::uint32_t kPrepareDepth = 32;  // guess: enough for the highest write throughput of any drive

class DirectTarget final : public Target {
 public:
  DirectTarget(std::unique_ptr<DirectFile> file, DirectFileSpec::Kind kind) : file_(std::move(file)), kind_(kind) {}

  TargetInfo info() const override {
    TargetInfo info;
    info.kind = kind_ == DirectFileSpec::Kind::file     ? "file"
                : kind_ == DirectFileSpec::Kind::device ? "device"
                                                        : "directory";
    info.path = file_->path();
    info.size_bytes = file_->size_bytes();
    info.range_bytes = file_->size_bytes();
    info.lba_bytes = file_->lba_bytes();
    info.direct = true;
    info.has_io_uring = device::io_uring_is_there();
    info.writable = file_->writable();
    info.time_scale = 1;
    return info;
  }

  Status admits(const Point& point) override {
    const std::string where = "point " + std::to_string(point.id) + ": ";
    if (point.bs_bytes > kMostBufferBytes / point.in_flight()) {
      return Status::bad_input(where + "numjobs x iodepth x bs_bytes comes to more than " +
                               std::to_string(kMostBufferBytes) + " bytes of buffers; make one of them smaller");
    }
    if (point.engine == Engine::io_uring && !device::io_uring_is_there()) {
      return Status::bad_input(where + "engine is io_uring, which this system does not let us have; take sync");
    }
    if (point.reads() && file_->has_holes(range_of(point, info().extent()))) {
      return Status::bad_input(where + file_->path() +
                               " has parts that were never written, which are read without the drive; prepare it "
                               "sequential first (target.destroy_data), or lower range");
    }
    return {};
  }

  device::Device& device_for(const Point& point) override {
    device::DirectQueues queues;
    queues.io_uring = point.engine == Engine::io_uring;
    queues.depth = point.iodepth;
    queues.io_bytes = point.bs_bytes;
    device_ = device::make_direct(*file_, queues);
    return *device_;
  }

  Result<Written> prepare(const Preparation& preparation, std::uint64_t seed, const WriteWatch& watch) override {
    if (!file_->writable()) {
      return Status::bad_input("prepare writes all over " + file_->path() + "; set target.destroy_data if it may");
    }
    const std::uint64_t size = file_->size_bytes();
    const bool random = preparation.kind == Preparation::Kind::random;
    const std::uint64_t lba = file_->lba_bytes();
    const std::uint64_t wanted = std::max(random ? kRandomBytes : kSequentialBytes, lba);
    const std::uint64_t io_bytes = std::min(wanted, size);
    const auto total = static_cast<std::uint64_t>(std::llround(preparation.capacities * static_cast<double>(size)));
    ssd::Random places(ssd::mix(seed));
    std::uint64_t cursor = 0;
    const auto next = [&] {
      Io io;
      io.op = device::Opcode::write;
      io.length_bytes = io_bytes;
      io.offset_bytes = random ? places.below(size / io_bytes) * io_bytes : cursor;
      if (!random) io.length_bytes = std::min(io_bytes, size - cursor);
      cursor = cursor + io.length_bytes == size ? 0 : cursor + io.length_bytes;
      return io;
    };
    return write(next, io_bytes, total, preparation.seconds.value_or(kEver), watch);
  }

  Result<Written> reset_to_steady(double /*share*/, const WriteWatch& /*watch*/) override {
    return Status::bad_input("fill makes a new drive, which only a simulated or paced target can; use prepare");
  }

  bool is_emulated() const override { return false; }

 private:
  static constexpr double kEver = 1e18;  // seconds

  template <class Next>
  Result<Written> write(Next next, std::uint64_t io_bytes, std::uint64_t total, double most_seconds,
                        const WriteWatch& watch) {
    const auto device = device::make_direct(*file_, {device::io_uring_is_there(), kPrepareDepth, io_bytes});
    const auto queue = device->open_queue();
    const auto began = Clock::now();
    std::uint64_t asked = 0;
    std::uint64_t done_bytes = 0;
    bool go_on = true;
    std::vector<Io> wanted;
    std::array<device::Done, kPrepareDepth> done;
    while (go_on || queue->pending() > 0) {
      wanted.clear();
      while (go_on && asked < total && queue->pending() + wanted.size() < kPrepareDepth) {
        wanted.push_back(next());
        wanted.back().tag = wanted.back().length_bytes;
        asked += wanted.back().length_bytes;
      }
      if (Status status = queue->submit(wanted); !status) return status;
      if (queue->pending() == 0) break;
      const std::size_t count = queue->reap(done, 1);
      for (std::size_t i = 0; i < count; ++i) {
        if (done[i].fault != Fault::none) return Status::io_error(file_->path() + ": a write failed on the drive");
        done_bytes += done[i].tag;
      }
      const std::chrono::duration<double> elapsed = Clock::now() - began;
      go_on = go_on && watch(done_bytes, total) && elapsed.count() < most_seconds;
    }
    if (Status status = file_->sync(); !status) return status;
    return Written{done_bytes, done_bytes >= total};
  }

  const std::unique_ptr<DirectFile> file_;
  const DirectFileSpec::Kind kind_;
  std::unique_ptr<device::Device> device_;
};

}  // namespace

Result<PreparedTarget> make_direct(const DirectFileSpec& spec, std::uint64_t seed, const WriteWatch& watch) {
  auto file = DirectFile::open(spec);
  if (!file) return file.status();
  auto target = std::make_unique<DirectTarget>(std::move(*file), spec.kind);
  if (spec.kind != DirectFileSpec::Kind::directory) return PreparedTarget{std::move(target), {0, true}};
  auto written = target->prepare({Preparation::Kind::sequential, 1, std::nullopt}, seed, watch);
  if (!written) return written.status();
  if (!written->complete) return Status::error(Fault::stopped, "stopped before the test file was written");
  return PreparedTarget{std::move(target), *written};
}

}  // namespace spillway::probe
