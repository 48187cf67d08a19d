// Real time: reap returns an io when the clock reaches its modelled completion.
//
// The device has no thread of its own (the leader/followers pattern). One of the threads that wait in reap is the
// leader: it sleeps until the model's next event, advances the model, puts completions into the queues, and wakes the
// threads whose wait is over. When its own wait is over it makes another waiting thread the leader. The model decides
// when an io completes; this file waits.
//
// Cost of pacing: a lock, two clock readings and a model step for submit and reap each, and one sleep and one wake per
// wait. Figures: bench/paced_reads.cc.
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "device/emulated/emulated.h"
#include "device/emulated/model_device.h"
#include "device/real_time.h"

namespace spillway::device {
namespace {

class PacedDevice;

// Values of the word on which a thread waits.
constexpr std::uint32_t kAsleep = 0;        // no event yet
constexpr std::uint32_t kDone = 1;          // enough of its ios are complete
constexpr std::uint32_t kLead = 2;          // it becomes the leader
constexpr std::uint32_t kEarlierEvent = 3;  // (leader only) the next event has moved forward

// The leader is not woken for an event that is earlier than its wake-up by less than this, because waking takes about
// as long. Source: guess, of the order of a futex wake with a context switch.
constexpr RealNanos kWakeSlackNs = 2'000;

// Arming the timer of a sleep costs up to 15 us of processor time on a virtual machine, 2 us on bare metal. So the
// leader's sleeps are rationed: up to kSleepBurst in a row may be as short as needed, but over time there is one per
// kSleepIntervalNs. On a lightly loaded drive completions are only as late as the sleep itself. A busy drive returns
// all that became due within an interval at once, up to an interval late. The pacing error includes all of it. Source:
// bench/paced_reads.cc
constexpr RealNanos kSleepIntervalNs = 40'000;
constexpr RealNanos kSleepBurst = 8;

// For shorter waits the clock is polled, because a sleep would cost more.
constexpr RealNanos kWatchNs = 3'000;

// Rations sleeps: computes when the next one may end. (Virtual scheduling, as in the leaky bucket of ATM networks.)
class SleepRation {
 public:
  RealNanos earliest() const { return paid_until_ - kSleepBurst * kSleepIntervalNs; }
  void spend(RealNanos now) { paid_until_ = std::max(paid_until_, now) + kSleepIntervalNs; }

 private:
  RealNanos paid_until_ = 0;
};

class PacedQueue final : public ModelQueue {
 public:
  PacedQueue(PacedDevice& device, std::uint32_t index) : ModelQueue(index), device_(device) {}
  ~PacedQueue() override;

  Status submit(std::span<const Io> ios) override;
  std::size_t reap(std::span<Done> done, std::size_t at_least) override;

 private:
  friend class PacedDevice;

  std::size_t ready() const { return static_cast<std::size_t>(tail_.load(std::memory_order_acquire) - head_); }
  void make_room(std::size_t more);
  void push(const Done& done);
  bool has_all(std::size_t room) const;
  std::size_t pop(std::span<Done> done, std::size_t at_least, RealNanos asked);

  PacedDevice& device_;

  // Used by the owner. The ring is written under the device's lock at tail_ and read by the owner at head_ without it.
  // Only the owner, holding the lock, enlarges it.
  std::uint64_t head_ = 0;
  RealNanos held_up_ = 0;  // in submit(), since the owner asked last
  std::vector<Done> ring_ = std::vector<Done>(16);
  std::atomic<std::uint64_t> tail_{0};

  // Guarded by the device's lock:
  std::uint64_t served_at_ = 0;  // the wait is over when tail_ reaches this
  std::size_t place_ = 0;        // in the device's waiting_, while waiting
  bool waiting_ = false;

  std::atomic<std::uint32_t> word_{kAsleep};

  std::mutex error_mutex_;  // nearly always taken by the owner only; pacing() reads at intervals
  Histogram error_;
};

// Threads to wake after the lock is released. Has room for few, and wakes at once if there are more.
class WakeList {
 public:
  void add(const std::atomic<std::uint32_t>* word) {
    if (count_ == words_.size()) wake_all();
    words_[count_++] = word;
  }
  void wake_all() {
    for (std::size_t i = 0; i < count_; ++i) wake(words_[i]);
    count_ = 0;
  }
  ~WakeList() { wake_all(); }
  WakeList() = default;
  WakeList(const WakeList&) = delete;
  WakeList& operator=(const WakeList&) = delete;

 private:
  std::array<const std::atomic<std::uint32_t>*, 64> words_;
  std::size_t count_ = 0;
};

class PacedDevice final : public ModelDevice<PacedDevice, PacedQueue> {
 public:
  PacedDevice(DriveModel drive, double time_scale)
      : ModelDevice(std::move(drive), time_scale), scale_(time_scale), start_(real_now()) {
    assert(time_scale > 0);
  }

  Nanos now() override {
    const std::lock_guard lock(mutex_);
    return model_time(real_now());
  }

  // Host software keeps its processor busy, so this does not sleep.
  void spend(Nanos for_ns) override {
    const RealNanos until = real_now() + static_cast<RealNanos>(std::ceil(static_cast<double>(for_ns) * scale_));
    while (real_now() < until) {
    }
  }

  ssd::Counters counters() override {
    WakeList wakes;
    const std::lock_guard lock(mutex_);
    catch_up(real_now(), wakes);
    return frontend_.model().counters();
  }

  PacingReport pacing() override {
    const std::lock_guard lock(mutex_);
    PacingReport report{closed_error_};
    queues_.each([&report](PacedQueue& queue) {
      const std::lock_guard error_lock(queue.error_mutex_);
      report.error.merge(queue.error_);
    });
    return report;
  }

  DriveModel& drive() override {
    const std::lock_guard lock(mutex_);
    // The model completes its background work at once. The device's clock continues from that time.
    const Nanos settled = frontend_.settle();
    frontend_.done().clear();
    const Nanos now = model_time(real_now());
    if (settled > now) offset_ += settled - now;
    return frontend_.model();
  }

  // The real time at which the model's clock shows `model`.
  RealNanos real_time(Nanos model) const {
    const Nanos elapsed = model - offset_;
    return start_ + (scale_ == 1 ? elapsed : static_cast<RealNanos>(std::ceil(static_cast<double>(elapsed) * scale_)));
  }

 private:
  friend class PacedQueue;

  static constexpr RealNanos kNotAsleep = -1;

  // At least the model's time. Rounding, or a clock that was read before the lock was taken, must not decrease time.
  Nanos model_time(RealNanos real) const {
    const RealNanos elapsed = real - start_;
    const Nanos time = offset_ + (scale_ == 1 ? elapsed : static_cast<Nanos>(static_cast<double>(elapsed) / scale_));
    return std::max(time, frontend_.time());
  }

  // The following methods REQUIRE that the lock is held.

  // Advances the model to now. Adds threads whose wait is over to `wakes`.
  void catch_up(RealNanos now, WakeList& wakes) {
    const Nanos time = model_time(now);
    if (const auto next = frontend_.next_event(); next && *next <= time) frontend_.advance(time);
    deliver(wakes);
  }

  void deliver(WakeList& wakes) {
    deliver_completions([this, &wakes](PacedQueue& queue, const Done& done) {
      queue.push(done);
      if (!queue.waiting_ || queue.tail_.load(std::memory_order_relaxed) < queue.served_at_) return;
      stop_waiting(queue);
      queue.word_.store(kDone, std::memory_order_release);
      wakes.add(&queue.word_);
    });
  }

  void start_waiting(PacedQueue& queue) {
    queue.word_.store(kAsleep, std::memory_order_relaxed);
    queue.place_ = waiting_.size();
    queue.waiting_ = true;
    waiting_.push_back(&queue);
  }

  void stop_waiting(PacedQueue& queue) {
    waiting_.back()->place_ = queue.place_;
    std::swap(waiting_[queue.place_], waiting_.back());
    waiting_.pop_back();
    queue.waiting_ = false;
  }

  // After an arrival: wakes the leader if the next event is earlier than the end of its sleep.
  void wake_leader_if_earlier(WakeList& wakes) {
    if (leader_ == nullptr || leader_wakes_at_ == kNotAsleep) return;
    const auto next = frontend_.next_event();
    if (!next || std::max(real_time(*next), ration_.earliest()) + kWakeSlackNs >= leader_wakes_at_) return;
    leader_wakes_at_ = kNotAsleep;
    leader_->word_.store(kEarlierEvent, std::memory_order_release);
    wakes.add(&leader_->word_);
  }

  // The caller is the leader until `queue` is served. Then it appoints another.
  void lead(PacedQueue& queue, std::unique_lock<std::mutex>& lock, WakeList& wakes) {
    leader_ = &queue;
    for (;;) {
      const RealNanos now = real_now();
      catch_up(now, wakes);
      if (queue.tail_.load(std::memory_order_relaxed) >= queue.served_at_) break;
      const RealNanos due = std::max(real_time(next_event_or_die()), ration_.earliest());
      if (due > now) sleep_until(queue, now, due, lock, wakes);
    }
    appoint_leader(wakes);
  }

  // Releases the lock until `due`, or until the next event has moved forward.
  void sleep_until(PacedQueue& queue, RealNanos now, RealNanos due, std::unique_lock<std::mutex>& lock,
                   WakeList& wakes) {
    const bool sleeps = due - now > kWatchNs;
    if (sleeps) {
      leader_wakes_at_ = due;
      queue.word_.store(kAsleep, std::memory_order_relaxed);
      ration_.spend(now);
    }
    lock.unlock();
    wakes.wake_all();
    if (sleeps) {
      wait_on(queue.word_, kAsleep, due);
    } else {
      while (real_now() < due) {
      }
    }
    lock.lock();
    leader_wakes_at_ = kNotAsleep;
  }

  // The thread that began to wait last probably waits longest, so it leads longest.
  void appoint_leader(WakeList& wakes) {
    leader_ = nullptr;
    if (waiting_.empty()) return;
    leader_ = waiting_.back();
    stop_waiting(*leader_);
    leader_->word_.store(kLead, std::memory_order_release);
    wakes.add(&leader_->word_);
  }

  // A model with ios in flight and no event is defective, and waiting for one would never end.
  Nanos next_event_or_die() {
    if (const auto next = frontend_.next_event()) return *next;
    std::fprintf(
        stderr,
        "spillway: the drive model holds %zu commands and has nothing to do at %lld ns: a defect of the model\n",
        frontend_.model().in_flight(), static_cast<long long>(frontend_.time()));
    std::abort();
  }

  const double scale_;
  const RealNanos start_;
  Nanos offset_ = 0;  // the model's time at start_

  std::vector<PacedQueue*> waiting_;  // asleep in reap, without the leader
  PacedQueue* leader_ = nullptr;
  RealNanos leader_wakes_at_ = kNotAsleep;  // the deadline of the leader's sleep
  SleepRation ration_;
  Histogram closed_error_;  // of closed queues
};

PacedQueue::~PacedQueue() {
  std::vector<Done> rest(pending_);
  if (pending_ > 0) reap(rest, pending_);
  const std::lock_guard lock(device_.mutex_);
  device_.closed_error_.merge(error_);
  device_.queues_.close(index_);
}

// REQUIRES: called by the owner, with the device's lock held
void PacedQueue::make_room(std::size_t more) {
  if (pending_ + more <= ring_.size()) return;
  std::vector<Done> larger(std::max(2 * ring_.size(), pending_ + more));
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  for (std::uint64_t i = head_; i < tail; ++i) larger[i % larger.size()] = ring_[i % ring_.size()];
  ring_.swap(larger);
}

void PacedQueue::push(const Done& done) {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  ring_[tail % ring_.size()] = done;
  tail_.store(tail + 1, std::memory_order_release);
}

Status PacedQueue::submit(std::span<const Io> ios) {
  const RealNanos called = real_now();  // a wait for the lock is the emulator's, so the command does not arrive later
  WakeList wakes;                       // destroyed after the lock, so that threads are woken when it is free
  std::unique_lock lock(device_.mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    lock.lock();
    held_up_ += real_now() - called;
  }
  if (Status status = device_.frontend_.check(ios); !status) return status;
  make_room(ios.size());
  device_.submit(*this, device_.model_time(called), ios);
  device_.deliver(wakes);
  device_.wake_leader_if_earlier(wakes);
  return {};
}

std::size_t PacedQueue::reap(std::span<Done> done, std::size_t at_least) {
  assert(at_least <= pending_ && at_least <= done.size());
  const RealNanos asked = real_now() - std::exchange(held_up_, 0);
  if (has_all(done.size())) return pop(done, at_least, asked);

  WakeList wakes;
  std::unique_lock lock(device_.mutex_);
  device_.catch_up(real_now(), wakes);
  served_at_ = head_ + at_least;
  if (ready() >= at_least) {
    lock.unlock();
    return pop(done, at_least, asked);
  }
  ask_for_punctual_sleeps();
  if (device_.leader_ != nullptr) {
    device_.start_waiting(*this);
    lock.unlock();
    wakes.wake_all();
    std::uint32_t told = kAsleep;
    while ((told = word_.load(std::memory_order_acquire)) == kAsleep) wait_on(word_, kAsleep, std::nullopt);
    if (told == kDone) return pop(done, at_least, asked);
    lock.lock();
  }
  device_.lead(*this, lock, wakes);
  lock.unlock();
  wakes.wake_all();
  return pop(done, at_least, asked);
}

// Whether nothing can be due that the ring does not have, or that `room` would take. Otherwise the model is asked: an
// io that is due and not returned would look as if its owner had asked for it late.
bool PacedQueue::has_all(std::size_t room) const { return ready() >= std::min(room, pending_); }

// Takes available completions and records how late they are. An owner that waits for several is to be served when the
// last of those is complete, so none of them is late before; what is complete beyond them is late from its own
// completion on; and nothing is late before its owner asks, or would have asked if the device had not held it up.
std::size_t PacedQueue::pop(std::span<Done> done, std::size_t at_least, RealNanos asked) {
  const std::size_t count = std::min(done.size(), ready());
  for (std::size_t i = 0; i < count; ++i) done[i] = ring_[(head_ + i) % ring_.size()];
  head_ += count;
  pending_ -= count;
  const RealNanos handed = real_now();
  RealNanos due = asked;
  for (std::size_t i = 0; i < at_least; ++i) due = std::max(due, device_.real_time(done[i].completed));
  const std::lock_guard lock(error_mutex_);
  for (std::size_t i = 0; i < count; ++i) error_.record(handed - std::max(due, device_.real_time(done[i].completed)));
  return count;
}

}  // namespace

std::unique_ptr<EmulatedDevice> make_paced(DriveModel drive, double time_scale) {
  return std::make_unique<PacedDevice>(std::move(drive), time_scale);
}

}  // namespace spillway::device
