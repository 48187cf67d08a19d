// Virtual time: nobody sleeps. Whoever waits for an io lets the model jump from event to event until that io is done;
// what completes for other threads on the way is put into their queues, and they see time to have jumped.
#include <cassert>
#include <deque>
#include <mutex>

#include "device/emulated/emulated.h"
#include "device/emulated/model_frontend.h"
#include "device/emulated/queue_registry.h"

namespace spillway::device {
namespace {

class SimulatedDevice;

class SimulatedQueue final : public Queue {
 public:
  SimulatedQueue(SimulatedDevice& device, std::uint32_t index) : device_(device), index_(index) {}
  ~SimulatedQueue() override;

  Status submit(std::span<const Io> ios) override;
  std::size_t reap(std::span<Done> done, std::size_t at_least) override;
  std::size_t pending() const override { return pending_; }

 private:
  friend class SimulatedDevice;

  SimulatedDevice& device_;
  const std::uint32_t index_;
  std::size_t pending_ = 0;  // the owner's
  // Guarded by the device's lock:
  TagTable tags_;
  std::deque<Done> ready_;
};

class SimulatedDevice final : public EmulatedDevice {
 public:
  explicit SimulatedDevice(DriveModel drive) : frontend_(std::move(drive)), info_(frontend_.info(/*time_scale=*/0)) {}

  const DeviceInfo& info() const override { return info_; }

  std::unique_ptr<Queue> open_queue() override {
    const std::lock_guard lock(mutex_);
    return queues_.open(*this);
  }

  Nanos now() override {
    const std::lock_guard lock(mutex_);
    return frontend_.time();
  }

  Nanos issue_ns(const Io& io) const override { return frontend_.model().issue_ns(io.op, io.length_bytes); }

  void spend(Nanos for_ns) override {
    const std::lock_guard lock(mutex_);
    frontend_.advance(frontend_.time() + for_ns);
    hand_out();
  }

  ssd::Counters counters() override {
    const std::lock_guard lock(mutex_);
    return frontend_.model().counters();
  }

  ssd::KvCounters kv_counters() override {
    const std::lock_guard lock(mutex_);
    return frontend_.model().kv_counters();
  }

  Wear wear() override {
    const std::lock_guard lock(mutex_);
    return frontend_.wear();
  }

  DriveModel& drive() override {
    const std::lock_guard lock(mutex_);
    frontend_.settle();
    return frontend_.model();
  }

  void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) override {
    const std::lock_guard lock(mutex_);
    frontend_.record_trace(arrivals, completions);
  }

 private:
  friend class SimulatedQueue;

  // Time jumps to the model's next event. REQUIRES: the lock is held, and a command is in flight.
  void step() {
    const auto next = frontend_.next_event();
    assert(next && "a drive with commands in flight always has a next event");
    frontend_.advance(std::max(*next, frontend_.time()));
    hand_out();
  }

  // Completions go to their queues. REQUIRES: the lock is held.
  void hand_out() {
    for (const auto& completion : frontend_.done()) {
      SimulatedQueue& queue = queues_[ModelFrontend::queue_of(completion)];
      queue.ready_.push_back(ModelFrontend::done_of(completion, queue.tags_.take(ModelFrontend::slot_of(completion))));
    }
    frontend_.done().clear();
  }

  std::mutex mutex_;
  ModelFrontend frontend_;
  const DeviceInfo info_;
  QueueRegistry<SimulatedQueue> queues_;
};

SimulatedQueue::~SimulatedQueue() {
  const std::lock_guard lock(device_.mutex_);
  while (ready_.size() < pending_) device_.step();
  device_.queues_.close(index_);
}

Status SimulatedQueue::submit(std::span<const Io> ios) {
  const std::lock_guard lock(device_.mutex_);
  if (Status status = device_.frontend_.check(ios); !status) return status;
  for (const Io& io : ios) device_.frontend_.submit(device_.frontend_.time(), io, index_, tags_.put(io.tag));
  device_.hand_out();
  pending_ += ios.size();
  return {};
}

std::size_t SimulatedQueue::reap(std::span<Done> done, std::size_t at_least) {
  assert(at_least <= pending_ && at_least <= done.size());
  const std::lock_guard lock(device_.mutex_);
  // A poll that finds nothing lets one event pass: in virtual time a loop of polls would otherwise never end.
  if (at_least == 0 && ready_.empty() && pending_ > 0) device_.step();
  while (ready_.size() < at_least) device_.step();
  const std::size_t count = std::min(done.size(), ready_.size());
  std::copy_n(ready_.begin(), count, done.begin());
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  pending_ -= count;
  return count;
}

}  // namespace

std::unique_ptr<EmulatedDevice> make_simulated(DriveModel drive) {
  return std::make_unique<SimulatedDevice>(std::move(drive));
}

}  // namespace spillway::device
