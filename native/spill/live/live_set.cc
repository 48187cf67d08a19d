#include "spill/live/live_set.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace spillway::spill {

std::shared_ptr<const Generations> LiveSet::generations() const {
  const MutexLock lock(mutex_);
  return generations_;
}

View LiveSet::view() const {
  for (;; std::this_thread::yield()) {  // a group becomes visible soon
    const MutexLock lock(mutex_);
    if (!is_replacing_) return {generations_, visible(), pin_};
  }
}

// use_count() does not order this thread after those that have released their pins; to take and release one does, so
// their reads have ended before entries are replaced.
bool LiveSet::begin_replacing() {
  const MutexLock lock(mutex_);
  auto one_more = pin_;
  if (one_more.use_count() > 2) return false;
  one_more.reset();
  is_replacing_ = true;
  return true;
}

void LiveSet::end_replacing() {
  const MutexLock lock(mutex_);
  is_replacing_ = false;
}

void LiveSet::publish(std::shared_ptr<const Generations> generations, bool has_new) {
  const bool any = !generations->empty();
  if (any) has_any_.store(true, std::memory_order_seq_cst);
  {
    const MutexLock lock(mutex_);
    generations_ = std::move(generations);
    if (has_new) pin_ = std::make_shared<const ViewPin>();
  }
  if (!any) has_any_.store(false, std::memory_order_seq_cst);
}

std::uint64_t LiveSet::user_bytes() const {
  const auto generations = this->generations();
  std::uint64_t bytes = 0;
  for (const auto& one : *generations) bytes += one->user_bytes();
  return bytes;
}

std::uint64_t LiveSet::entries() const {
  const auto generations = this->generations();
  std::uint64_t entries = 0;
  for (const auto& one : *generations) entries += one->entries();
  return entries;
}

std::uint64_t LiveSet::memory_bytes() const {
  const auto generations = this->generations();
  std::uint64_t bytes = index_.memory_bytes();
  for (const auto& one : *generations) bytes += one->memory_bytes();
  return bytes;
}

Tally LiveSet::tally(std::optional<std::uint32_t> family) const {
  const auto generations = this->generations();
  Tally sum;
  for (const auto& one : *generations) sum += one->tally(family);
  return sum;
}

Mark LiveSet::newest() const {
  const MutexLock lock(newest_mutex_);
  return newest_;
}

bool LiveSet::is_covered(std::uint32_t family, std::string_view key) const {
  if (index_.contains(family, key)) return true;
  const auto generations = this->generations();
  for (const auto& generation : *generations) {
    if (generation->has_range_tombstones()) {
      return View{generations, ~Sequence{0}}.covering_tombstone(family, key, families_) != 0;
    }
  }
  return false;
}

bool LiveSet::is_superseded(const Entry& entry, Sequence durable) const {
  const auto found = index_.find(entry.column_family, entry.key());
  return found && found->entry.sequence > entry.sequence && found->entry.sequence <= durable;
}

std::optional<View> LiveSet::try_view(const TakeMain& take_main) const {
  View view = this->view();
  take_main(view.generations);
  if (visible() != view.up_to || generations() != view.generations) return std::nullopt;
  return view;
}

std::shared_ptr<Generation> LiveSet::make_generation(GenerationId id) const {
  const std::shared_ptr<Store> store = store_;  // it outlives every snapshot
  const auto release = [store, releases = releases_](GenerationId gone) { releases->release(*store, gone); };
  return std::make_shared<Generation>(id, families_, release, memory_);
}

void LiveSet::add(const std::shared_ptr<Generation>& generation) {
  auto more = std::make_shared<Generations>(*generations());
  more->push_back(generation);
  publish(std::move(more), /*has_new=*/true);
}

void LiveSet::show(const Mark& newest) {
  {
    const MutexLock lock(newest_mutex_);
    newest_ = newest;
  }
  visible_.store(newest.sequence, std::memory_order_release);
}

void LiveSet::retire(const Generations& brought_back) {
  auto rest = std::make_shared<Generations>(*generations());
  std::erase_if(*rest, [&](const auto& one) {
    return std::find(brought_back.begin(), brought_back.end(), one) != brought_back.end();
  });
  publish(std::move(rest));
}

void LiveSet::recover(std::shared_ptr<const Generations> generations, Sequence last) {
  for (const auto& generation : *generations) {
    generation->for_each([this](const Entry& entry) REQUIRES(in_commit_queue) { index_.insert(&entry); });
  }
  recovered_ = last;
  visible_.store(last, std::memory_order_release);
  publish(std::move(generations));
}

}  // namespace spillway::spill
