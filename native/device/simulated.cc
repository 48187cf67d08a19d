// Virtual time: nobody sleeps. Whoever waits for an io lets the model jump from event to event until that io is done;
// what completes for other threads on the way is put into their queues, and they see time to have jumped.
#include <cassert>
#include <deque>
#include <mutex>

#include "device/emulated.h"
#include "device/model_door.h"
#include "device/queue_registry.h"

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
  explicit SimulatedDevice(DriveModel drive) : door_(std::move(drive)), info_(door_.info(/*time_scale=*/0)) {}

  const DeviceInfo& info() const override { return info_; }

  std::unique_ptr<Queue> open_queue() override {
    const std::lock_guard lock(mutex_);
    return queues_.open(*this);
  }

  Nanos now() override {
    const std::lock_guard lock(mutex_);
    return door_.time();
  }

  Nanos issue_ns(const Io& io) const override { return door_.model().issue_ns(io.op, io.length_bytes); }

  void spend(Nanos for_ns) override {
    const std::lock_guard lock(mutex_);
    door_.advance(door_.time() + for_ns);
    hand_out();
  }

  ssd::Counters counters() override {
    const std::lock_guard lock(mutex_);
    return door_.model().counters();
  }

  ssd::KvCounters kv_counters() override {
    const std::lock_guard lock(mutex_);
    return door_.model().kv_counters();
  }

  Wear wear() override {
    const std::lock_guard lock(mutex_);
    return door_.wear();
  }

  DriveModel& drive() override {
    const std::lock_guard lock(mutex_);
    door_.settle();
    return door_.model();
  }

  void record_trace(std::vector<Arrival>* arrivals, std::vector<ssd::Completion>* completions) override {
    const std::lock_guard lock(mutex_);
    door_.record_trace(arrivals, completions);
  }

 private:
  friend class SimulatedQueue;

  // Time jumps to the model's next event. REQUIRES: the lock is held, and a command is in flight.
  void step() {
    const auto next = door_.next_event();
    assert(next && "a drive with commands in flight always has a next event");
    door_.advance(std::max(*next, door_.time()));
    hand_out();
  }

  // Completions go to their queues. REQUIRES: the lock is held.
  void hand_out() {
    for (const auto& completion : door_.done()) {
      SimulatedQueue& queue = queues_[ModelDoor::queue_of(completion)];
      queue.ready_.push_back(ModelDoor::done_of(completion, queue.tags_.take(ModelDoor::slot_of(completion))));
    }
    door_.done().clear();
  }

  std::mutex mutex_;
  ModelDoor door_;
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
  if (Status status = device_.door_.check(ios); !status) return status;
  for (const Io& io : ios) device_.door_.submit(device_.door_.time(), io, index_, tags_.put(io.tag));
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
