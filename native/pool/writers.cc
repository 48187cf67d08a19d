#include "pool/writers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "device/real_time.h"

namespace spillway::pool {
namespace {

using device::Device;
using device::Done;
using device::Io;
using device::Nanos;
using device::Queue;

constexpr std::array<std::pair<WritersKind, const char*>, 3> kNames = {
    {{WritersKind::queue, "queue"}, {WritersKind::threads, "threads"}, {WritersKind::new_threads, "new-threads"}}};

Fault fate_of(Queue& queue, const Io& io) {
  const auto done = device::run(queue, io);
  return done ? done.value().fault : done.status().fault();
}

std::vector<std::unique_ptr<Queue>> open_queues(Device& device, std::uint32_t count) {
  std::vector<std::unique_ptr<Queue>> queues(count);
  for (auto& queue : queues) queue = device.open_queue();
  return queues;
}

class OneQueue final : public Writers {
 public:
  OneQueue(Device& device, std::uint32_t at_once) : device_(device), queue_(device.open_queue()), done_(at_once) {}

  void transfer(std::span<const Io> ios, std::span<Fault> faults) override {
    std::fill(faults.begin(), faults.end(), Fault::none);
    if (device_.issue_ns(ios.front()) == 0) {
      submit(ios, faults);
    } else {
      issue_one_by_one(ios, faults);
    }
    const std::size_t count = queue_->reap(done_, queue_->pending());
    for (std::size_t i = 0; i < count; ++i) faults[done_[i].tag] = done_[i].fault;
  }

 private:
  void submit(std::span<const Io> ios, std::span<Fault> faults) {
    if (Status status = queue_->submit(ios); !status) std::fill(faults.begin(), faults.end(), status.fault());
  }

  // In the model each I/O pays its own host overhead, as if each had a thread. Here one thread issues all, one after
  // another.
  void issue_one_by_one(std::span<const Io> ios, std::span<Fault> faults) {
    for (std::size_t i = 0; i < ios.size(); ++i) {
      if (i > 0) device_.spend(device_.issue_ns(ios[i - 1]));
      submit(ios.subspan(i, 1), faults.subspan(i, 1));
    }
  }

  Device& device_;
  std::unique_ptr<Queue> queue_;
  std::vector<Done> done_;
};

// Virtual time: one queue for each of n threads, and the time to hand work over to n threads.
class ImaginedThreads final : public Writers {
 public:
  ImaginedThreads(Device& device, std::uint32_t at_once, HandOffTable hand_off)
      : device_(device), hand_off_(std::move(hand_off)), queues_(open_queues(device, at_once)) {}

  void transfer(std::span<const Io> ios, std::span<Fault> faults) override {
    const HandOff cost = hand_off_of(hand_off_, static_cast<std::uint32_t>(ios.size()));
    const auto gaps = static_cast<Nanos>(std::max<std::size_t>(ios.size(), 2) - 1);
    for (std::size_t i = 0; i < ios.size(); ++i) {
      device_.spend(i == 0 ? cost.first_ns : (cost.last_ns - cost.first_ns) / gaps);
      const Status status = queues_[i]->submit(ios.subspan(i, 1));
      faults[i] = status ? Fault::none : status.fault();
    }
    std::array<Done, 1> done;
    for (std::size_t i = 0; i < ios.size(); ++i) {
      if (queues_[i]->pending() > 0 && queues_[i]->reap(done, 1) == 1) faults[i] = done[0].fault;
    }
    device_.spend(cost.told_ns);
  }

 private:
  Device& device_;
  const HandOffTable hand_off_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

class WaitingThreads final : public Writers {
 public:
  WaitingThreads(Device& device, std::uint32_t at_once) : device_(device), desks_(at_once) {
    threads_.reserve(at_once);
    try {
      for (Desk& desk : desks_) threads_.emplace_back([this, &desk] { work(desk); });
    } catch (...) {  // existing threads must end before the exception propagates
      end();
      throw;
    }
  }
  ~WaitingThreads() override { end(); }
  WaitingThreads(const WaitingThreads&) = delete;
  WaitingThreads& operator=(const WaitingThreads&) = delete;

  void transfer(std::span<const Io> ios, std::span<Fault> faults) override {
    left_.store(static_cast<std::uint32_t>(ios.size()), std::memory_order_relaxed);
    for (std::size_t i = 0; i < ios.size(); ++i) {
      desks_[i].io = &ios[i];
      call(desks_[i], kIo);
    }
    for (std::uint32_t left = 0; (left = left_.load(std::memory_order_acquire)) > 0;) {
      device::wait_on(left_, left, std::nullopt);
    }
    for (std::size_t i = 0; i < ios.size(); ++i) faults[i] = desks_[i].fault;
  }

 private:
  static constexpr std::uint32_t kNothing = 0;
  static constexpr std::uint32_t kIo = 1;
  static constexpr std::uint32_t kEnd = 2;

  // Each has its own cache line, so that neighbours do not slow each other down (false sharing).
  struct alignas(64) Desk {
    std::atomic<std::uint32_t> word{kNothing};
    const Io* io = nullptr;
    Fault fault = Fault::none;
  };

  static void call(Desk& desk, std::uint32_t what) {
    desk.word.store(what, std::memory_order_release);
    device::wake(&desk.word);
  }

  // The thread opens its own queue, because some rings can only be used by the thread that created them.
  void work(Desk& desk) {
    const auto queue = device_.open_queue();
    for (;;) {
      std::uint32_t what = kNothing;
      while ((what = desk.word.load(std::memory_order_acquire)) == kNothing) {
        device::wait_on(desk.word, kNothing, std::nullopt);
      }
      if (what == kEnd) return;
      desk.word.store(kNothing, std::memory_order_relaxed);
      desk.fault = fate_of(*queue, *desk.io);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) device::wake(&left_);
    }
  }

  void end() {
    for (std::size_t i = 0; i < threads_.size(); ++i) call(desks_[i], kEnd);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  Device& device_;
  std::vector<Desk> desks_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> left_{0};
};

class NewThreads final : public Writers {
 public:
  NewThreads(Device& device, std::uint32_t at_once) : queues_(open_queues(device, at_once)) {
    threads_.reserve(at_once);
  }

  void transfer(std::span<const Io> ios, std::span<Fault> faults) override {
    std::fill(faults.begin(), faults.end(), Fault::io_error);  // for those that get no thread
    try {
      for (std::size_t i = 0; i < ios.size(); ++i) {
        threads_.emplace_back([this, &ios, faults, i] { faults[i] = fate_of(*queues_[i], ios[i]); });
      }
    } catch (const std::system_error&) {  // no more threads are available; wait for those that have begun
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::unique_ptr<Queue>> queues_;  // one for each thread of a batch
  std::vector<std::thread> threads_;
};

}  // namespace

const char* name_of(WritersKind kind) { return kNames[static_cast<std::size_t>(kind)].second; }

std::optional<WritersKind> writers_named(const std::string& name) {
  for (const auto& [kind, known] : kNames) {
    if (name == known) return kind;
  }
  return std::nullopt;
}

HandOff hand_off_of(const HandOffTable& table, std::uint32_t n) {
  if (table.empty()) return {.n = n};
  const auto above = std::find_if(table.begin(), table.end(), [n](const HandOff& row) { return row.n >= n; });
  if (above == table.begin()) return table.front();
  const HandOff& low = *std::prev(above);
  if (above == table.end()) return {n, low.first_ns, low.last_ns * n / low.n, low.told_ns * n / low.n};
  const auto between = [&](Nanos a, Nanos b) {
    return a + (b - a) * static_cast<Nanos>(n - low.n) / static_cast<Nanos>(above->n - low.n);
  };
  return {n, between(low.first_ns, above->first_ns), between(low.last_ns, above->last_ns),
          between(low.told_ns, above->told_ns)};
}

// Source: runs/bench/thread_handoff.json, medians, rounded to 0.1 us
const HandOffTable& measured_hand_off(WritersKind kind) {
  static const HandOffTable none;
  static const HandOffTable waiting = {
      {1, 3'800, 3'800, 2'400},   {2, 5'800, 10'000, 3'700},   {3, 6'000, 12'100, 2'500},   {4, 8'800, 18'100, 3'300},
      {6, 8'200, 24'200, 2'200},  {8, 8'700, 33'700, 2'400},   {12, 9'100, 49'400, 2'400},  {16, 9'900, 65'000, 2'400},
      {24, 9'000, 98'200, 2'400}, {32, 8'000, 132'400, 2'300}, {48, 9'100, 199'800, 2'400}, {64, 8'900, 271'400, 2'500},
  };
  static const HandOffTable fresh = {
      {1, 13'400, 13'400, 11'600},      {2, 19'300, 30'800, 9'700},       {3, 20'700, 53'100, 10'200},
      {4, 21'800, 71'200, 9'700},       {6, 21'200, 130'400, 20'000},     {8, 22'000, 191'500, 30'300},
      {12, 28'400, 328'500, 57'100},    {16, 24'700, 447'600, 78'500},    {24, 25'600, 717'100, 122'900},
      {32, 28'100, 1'039'300, 173'500}, {48, 31'200, 1'790'300, 269'700}, {64, 29'800, 2'434'000, 356'400},
  };
  if (kind == WritersKind::queue) return none;
  return kind == WritersKind::threads ? waiting : fresh;
}

Result<std::unique_ptr<Writers>> make_writers(Device& device, WritersKind kind, std::uint32_t at_once,
                                              const HandOffTable& hand_off) {
  assert(at_once > 0);
  if (kind == WritersKind::queue) return std::unique_ptr<Writers>(std::make_unique<OneQueue>(device, at_once));
  assert(at_once <= kMostWriterThreads);
  if (device.info().time_scale == 0) {
    return std::unique_ptr<Writers>(std::make_unique<ImaginedThreads>(device, at_once, hand_off));
  }
  try {
    if (kind == WritersKind::threads) {
      return std::unique_ptr<Writers>(std::make_unique<WaitingThreads>(device, at_once));
    }
    return std::unique_ptr<Writers>(std::make_unique<NewThreads>(device, at_once));
  } catch (const std::system_error&) {
    return Status::io_error("the system has no " + std::to_string(at_once) +
                            " threads to give; lower pool.write_back, or take pool.writers queue");
  }
}

}  // namespace spillway::pool
