// A clock that the test moves, a store with scripted answers, and a drive that only counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/device.h"
#include "engine/engine.h"
#include "engine/rocksdb/stall_timeline.h"
#include "load/clock.h"

namespace spillway::load::testing {

// Time passes only by a sleep, or when the test moves it. For one thread.
class ManualClock final : public Clock {
 public:
  std::int64_t now_ns() override { return now_ns_; }
  void sleep_until(std::int64_t time_ns) override { now_ns_ = std::max(now_ns_, time_ns + oversleep_ns_); }
  void advance(std::int64_t ns) { now_ns_ += ns; }
  void oversleep(std::int64_t ns) { oversleep_ns_ = ns; }

 private:
  std::int64_t oversleep_ns_ = 0;
  std::int64_t now_ns_ = 1'000'000;
};

// Keeps pairs in a map, and calls `before` ahead of each operation, in which a test advances time, or fails.
class FakeEngine final : public engine::Engine {
 public:
  std::function<Status(std::uint64_t index)> before = [](std::uint64_t) { return Status::ok(); };
  // Ahead of each get and put; several threads may be in one at once.
  std::function<void()> before_get = [] {};
  std::function<void()> before_put = [] {};
  bool never_at_rest = false;  // there is always something left to compact
  // What stalls() returns.
  std::function<std::vector<engine::Stall>()> script = [] { return std::vector<engine::Stall>(); };

  std::vector<engine::Event> events;                                    // returned once
  std::vector<std::pair<engine::Diversion, std::uint64_t>> diversions;  // as they were set, and after how many puts

  Status put(std::string_view key, std::string_view value) override {
    before_put();
    const std::lock_guard lock(mutex_);
    if (Status status = before(operations_++); !status) return status;
    pairs_[std::string(key)] = value;
    ++puts_;
    bytes_put_ += key.size() + value.size();
    note_call("p", key);
    return Status::ok();
  }
  Status remove(std::string_view) override { return Status::error(Fault::not_supported, "no deletes here"); }
  Result<bool> get(std::string_view key, std::string* value) override {
    before_get();
    const std::lock_guard lock(mutex_);
    if (Status status = before(operations_++); !status) return status;
    note_call("g", key);
    const auto found = pairs_.find(std::string(key));
    if (found == pairs_.end()) return false;
    if (value != nullptr) *value = found->second;
    return true;
  }
  Status write(std::span<const engine::Write>) override {
    return Status::error(Fault::not_supported, "no batches here");
  }
  std::span<const char* const> stall_causes() const override { return engine::RocksdbCause::names; }
  Result<std::uint64_t> scan(std::string_view key, std::uint64_t nexts, engine::Direction, engine::Pairs*) override {
    const std::lock_guard lock(mutex_);
    if (Status status = before(operations_++); !status) return status;
    note_call("s" + std::to_string(nexts) + " ", key);
    std::uint64_t seen = 0;
    for (auto at = pairs_.lower_bound(std::string(key)); at != pairs_.end() && seen <= nexts; ++at) ++seen;
    return seen;
  }
  engine::Observation observe() override { return {}; }
  std::vector<engine::Stall> stalls() override { return script(); }
  std::map<std::string, std::uint64_t> statistics() override { return {}; }
  std::vector<engine::Event> take_events() override { return std::exchange(events, {}); }
  void set_diversion(engine::Diversion diversion) override { diversions.emplace_back(diversion, puts_); }
  Status flush() override {
    ++flushes_;
    return Status::ok();
  }
  Status wait_for_compaction(const std::atomic<bool>& stop) override {
    ++waits_;
    while (never_at_rest && !stop) std::this_thread::yield();
    return Status::ok();
  }
  Status close() override { return Status::ok(); }

  std::uint64_t puts() const { return puts_; }
  std::uint64_t waits() const { return waits_; }
  std::uint64_t flushes() const { return flushes_; }
  std::uint64_t live() const { return pairs_.size(); }
  std::uint64_t live_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [key, value] : pairs_) bytes += key.size() + value.size();
    return bytes;
  }
  // The calls since the last take_calls(), in order: 'p' and 'g' with the key, 's' with the steps and the key.
  std::vector<std::string> take_calls() {
    const std::lock_guard lock(mutex_);
    return std::exchange(calls_, {});
  }
  std::uint64_t bytes_put() const { return bytes_put_; }
  bool keeps_calls = false;

 private:
  void note_call(const std::string& call, std::string_view key) {
    if (keeps_calls) calls_.push_back(call + std::string(key));
  }

  std::mutex mutex_;
  std::map<std::string, std::string> pairs_;
  std::vector<std::string> calls_;
  std::uint64_t bytes_put_ = 0;
  std::uint64_t operations_ = 0;
  std::atomic<std::uint64_t> puts_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> flushes_{0};
};

// A drive whose counters and time the test sets at each reading.
class CountingDevice final : public device::Device {
 public:
  std::function<ssd::Counters()> counting = [] { return ssd::Counters(); };
  device::DeviceInfo facts;

  const device::DeviceInfo& info() const override { return facts; }
  std::unique_ptr<device::Queue> open_queue() override { return nullptr; }
  device::Nanos now() override { return now_ += 1'000'000; }
  ssd::Counters counters() override { return counting(); }

 private:
  device::Nanos now_ = 0;
};

}  // namespace spillway::load::testing
