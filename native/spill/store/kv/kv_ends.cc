#include "spill/store/kv/kv_ends.h"

namespace spillway::spill {

void KvEnds::add_pair(Position position) {
  const MutexLock lock(mutex_);
  ends_[position.generation] = position.offset + 1;
}

void KvEnds::add_record(Position position) {
  const MutexLock lock(mutex_);
  last_[position.generation] = position.offset;
}

void KvEnds::append(GenerationId generation, std::uint64_t last, std::uint64_t end) {
  const MutexLock lock(mutex_);
  ends_[generation] = end;
  last_[generation] = last;
}

KvDurable::Last KvEnds::last_records() const {
  const MutexLock lock(mutex_);
  return last_;
}

void KvEnds::cut_ends(Position from) {
  const MutexLock lock(mutex_);
  std::erase_if(ends_, [&](const auto& one) { return !(Position{one.first, 0} < from); });
}

bool KvEnds::cut_records(Position from) {
  const MutexLock lock(mutex_);
  return std::erase_if(last_, [&](const auto& one) { return !(Position{one.first, one.second} < from); }) > 0;
}

bool KvEnds::is_oldest(GenerationId generation, GenerationId dropped) const {
  const MutexLock lock(mutex_);
  const auto next = ends_.upper_bound(dropped);
  return next == ends_.end() || next->first >= generation;
}

void KvEnds::drop(GenerationId generation) {
  const MutexLock lock(mutex_);
  last_.erase(generation);
}

std::uint64_t KvEnds::release(GenerationId generation) {
  const MutexLock lock(mutex_);
  const auto known = ends_.find(generation);
  if (known == ends_.end()) return 0;
  const std::uint64_t end = known->second;
  ends_.erase(known);
  return end;
}

std::uint64_t KvEnds::bytes_to(GenerationId dropped) const {
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [generation, end] : ends_) bytes += generation <= dropped ? end : 0;
  return bytes;
}

}  // namespace spillway::spill
