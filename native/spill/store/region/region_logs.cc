#include "spill/store/region/region_logs.h"

#include <utility>

#include "spill/store/region/region_directory.h"

namespace spillway::spill {

using rocksdb::Status;

std::string RegionLog::path() const { return base + (is_dropped ? kDropped : kLogSuffix); }

Status no_such_generation(GenerationId generation) {
  return Status::Corruption("the spill store has no generation " + std::to_string(generation));
}

Status damaged(const RegionLog& log, std::uint64_t offset) {
  return Status::Corruption(log.path() + " is damaged at byte " + std::to_string(offset));
}

std::shared_ptr<RegionLog> RegionLogs::find(GenerationId generation) const {
  const SharedLock lock(mutex_);
  const auto found = logs_.find(generation);
  return found == logs_.end() ? nullptr : found->second;
}

std::shared_ptr<RegionLog> RegionLogs::newest() const {
  const SharedLock lock(mutex_);
  return logs_.empty() ? nullptr : logs_.rbegin()->second;
}

std::vector<std::shared_ptr<RegionLog>> RegionLogs::all() const {
  const SharedLock lock(mutex_);
  std::vector<std::shared_ptr<RegionLog>> all;
  for (const auto& [generation, log] : logs_) all.push_back(log);
  return all;
}

std::vector<DurableEnd> RegionLogs::ends() const {
  std::vector<DurableEnd> ends;
  for (const auto& log : all()) {
    if (!log->is_dropped && log->bytes > 0) ends.push_back({log->name.generation, log->name.salt, log->bytes});
  }
  return ends;
}

void RegionLogs::put(std::shared_ptr<RegionLog> log) {
  const GenerationId generation = log->name.generation;
  const ExclusiveLock lock(mutex_);
  logs_[generation] = std::move(log);
}

void RegionLogs::remove(const RegionLog& log, bool is_freed) {
  if (is_freed) used_ -= log.bytes;
  if (log.is_dropped) held_ -= log.bytes;
  const ExclusiveLock lock(mutex_);
  logs_.erase(log.name.generation);
}

void RegionLogs::resize(RegionLog& log, std::uint64_t bytes) {
  const std::uint64_t before = log.bytes.load(std::memory_order_relaxed);
  log.bytes.store(bytes, std::memory_order_release);
  used_ += bytes - before;  // modulo 2^64 where it shrinks
}

void RegionLogs::set_dropped(RegionLog& log, bool is_dropped) {
  if (log.is_dropped.exchange(is_dropped) == is_dropped) return;
  held_ += is_dropped ? log.bytes.load() : -log.bytes.load();
}

}  // namespace spillway::spill
