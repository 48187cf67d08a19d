#include "spill/detector.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace spillway::spill {
namespace {

using Properties = rocksdb::DB::Properties;

std::uint64_t int_property(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family, const std::string& name) {
  std::uint64_t value = 0;
  return db.GetIntProperty(family, name, &value) ? value : 0;
}

int l0_files_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  static const std::string kName = Properties::kNumFilesAtLevelPrefix + "0";
  std::string text;
  return db.GetProperty(family, kName, &text) ? std::atoi(text.c_str()) : 0;
}

}  // namespace

Signals signals_of(rocksdb::DB& db, const ColumnFamilies& families) {
  Signals worst;
  rocksdb::ColumnFamilyHandle* const any = db.DefaultColumnFamily();
  worst.stopped = int_property(db, any, Properties::kIsWriteStopped) != 0 ||
                  int_property(db, any, Properties::kActualDelayedWriteRate) != 0;
  bool is_first = true;
  families.for_each([&](const ColumnFamily& family) {
    if (family.handle == nullptr) return;
    Signals one = family.limits;
    one.stopped = worst.stopped;
    one.l0_files = l0_files_of(db, family.handle);
    one.immutable_memtables = static_cast<int>(int_property(db, family.handle, Properties::kNumImmutableMemTable));
    one.pending_compaction_bytes = int_property(db, family.handle, Properties::kEstimatePendingCompactionBytes);
    // Triggers differ from family to family: the worst is the one that is closest to its own.
    const auto nearness = [](const Signals& s) {
      const double l0 = static_cast<double>(s.l0_files) / std::max(1, s.l0_stop_trigger);
      const double debt =
          s.hard_pending_compaction_bytes == 0
              ? 0
              : static_cast<double>(s.pending_compaction_bytes) / static_cast<double>(s.hard_pending_compaction_bytes);
      return std::max(l0, debt);
    };
    if (is_first || nearness(one) > nearness(worst)) worst = one;
    is_first = false;
  });
  return worst;
}

Detector::Detector(DivertPolicy policy, std::chrono::milliseconds interval) : policy_(policy), interval_(interval) {}

Detector::~Detector() { stop(); }

void Detector::start(rocksdb::DB* db, const ColumnFamilies* families, OnLook on_look) {
  db_ = db;
  families_ = families;
  on_look_ = std::move(on_look);
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void Detector::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Signals Detector::signals() const {
  const std::lock_guard lock(mutex_);
  return signals_;
}

void Detector::divert_now() {
  if (route_.load(std::memory_order_relaxed) != Route::spill) route_.store(Route::spill, std::memory_order_release);
  look_soon();
}

void Detector::refused() { divert_now(); }

void Detector::forget(const std::string& family) {
  {
    const std::lock_guard lock(mutex_);
    stalled_families_.erase(family);
  }
  look_soon();
}

void Detector::look_soon() {
  {
    const std::lock_guard lock(mutex_);
    look_soon_ = true;
  }
  wake_.notify_one();
}

void Detector::OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) {
  bool any = false;
  {
    const std::lock_guard lock(mutex_);
    if (info.condition.cur == rocksdb::WriteStallCondition::kNormal) {
      stalled_families_.erase(info.cf_name);
    } else {
      stalled_families_.insert(info.cf_name);
    }
    any = !stalled_families_.empty();
  }
  any ? divert_now() : look_soon();
}

void Detector::look() {
  Signals signals = signals_of(*db_, *families_);
  Route before = Route::main;
  Route now = Route::main;
  {
    const std::lock_guard lock(mutex_);
    signals.stopped = signals.stopped || !stalled_families_.empty();
    signals_ = signals;
    now = next_route(route_.load(std::memory_order_relaxed), signals, policy_);
    route_.store(now, std::memory_order_release);
    before = std::exchange(told_, now);
  }
  on_look_(signals, before, now);
}

void Detector::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    look_soon_ = false;
    lock.unlock();
    look();
    lock.lock();
    wake_.wait_for(lock, interval_, [this] { return stopping_ || look_soon_; });
  }
}

}  // namespace spillway::spill
