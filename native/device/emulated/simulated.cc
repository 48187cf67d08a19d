// Virtual time: no thread sleeps. A thread that waits for an io advances the model from event to event until that io is
// complete. Completions of other threads' ios are put into their queues. For those threads time jumps.
#include <cassert>
#include <deque>
#include <mutex>

#include "device/emulated/emulated.h"
#include "device/emulated/model_device.h"

namespace spillway::device {
namespace {

class SimulatedDevice;

class SimulatedQueue final : public ModelQueue {
 public:
  SimulatedQueue(SimulatedDevice& device, std::uint32_t index) : ModelQueue(index), device_(device) {}
  ~SimulatedQueue() override;

  Status submit(std::span<const Io> ios) override;
  std::size_t reap(std::span<Done> done, std::size_t at_least) override;

 private:
  friend class SimulatedDevice;

  SimulatedDevice& device_;
  std::deque<Done> ready_;  // guarded by the device's lock
};

class SimulatedDevice final : public ModelDevice<SimulatedDevice, SimulatedQueue> {
 public:
  explicit SimulatedDevice(DriveModel drive) : ModelDevice(std::move(drive), /*time_scale=*/0) {}

  Nanos now() override {
    const std::lock_guard lock(mutex_);
    return frontend_.time();
  }

  void spend(Nanos for_ns) override {
    const std::lock_guard lock(mutex_);
    frontend_.advance(frontend_.time() + for_ns);
    deliver();
  }

  ssd::Counters counters() override {
    const std::lock_guard lock(mutex_);
    return frontend_.model().counters();
  }

  DriveModel& drive() override {
    const std::lock_guard lock(mutex_);
    frontend_.settle();
    return frontend_.model();
  }

 private:
  friend class SimulatedQueue;

  // Advances time to the model's next event. REQUIRES: the lock is held, and a command is in flight.
  void step() {
    const auto next = frontend_.next_event();
    assert(next && "a drive with commands in flight always has a next event");
    frontend_.advance(std::max(*next, frontend_.time()));
    deliver();
  }

  // Puts completions into their queues. REQUIRES: the lock is held.
  void deliver() {
    deliver_completions([](SimulatedQueue& queue, const Done& done) { queue.ready_.push_back(done); });
  }
};

SimulatedQueue::~SimulatedQueue() {
  const std::lock_guard lock(device_.mutex_);
  while (ready_.size() < pending_) device_.step();
  device_.queues_.close(index_);
}

Status SimulatedQueue::submit(std::span<const Io> ios) {
  const std::lock_guard lock(device_.mutex_);
  if (Status status = device_.frontend_.check(ios); !status) return status;
  device_.submit(*this, device_.frontend_.time(), ios);
  device_.deliver();
  return {};
}

std::size_t SimulatedQueue::reap(std::span<Done> done, std::size_t at_least) {
  assert(at_least <= pending_ && at_least <= done.size());
  const std::lock_guard lock(device_.mutex_);
  // A poll that finds nothing advances time by one event. Otherwise a loop of polls would never end in virtual time.
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
