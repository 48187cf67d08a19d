// What is live: the generations that are not yet brought back, the index of their keys, and what of them can be seen.
//
// Changes are made in the commit queue, one after the other; everything here can be read by any thread. Only the keys
// of what a rollback has brought back leave the index outside of the queue, which the index allows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/mutex.h"
#include "spill/live/column_families.h"
#include "spill/live/commit_role.h"
#include "spill/live/deferred_releases.h"
#include "spill/live/dropped_families.h"
#include "spill/live/generation.h"
#include "spill/live/key_index.h"
#include "spill/live/memory_count.h"
#include "spill/store/record.h"
#include "spill/store/store.h"

namespace spillway::spill {

class LiveSet {
 public:
  explicit LiveSet(std::shared_ptr<Store> store)
      : store_(std::move(store)), generations_(std::make_shared<Generations>()) {}

  Store& store() const { return *store_; }
  ColumnFamilies& families() { return families_; }
  const ColumnFamilies& families() const { return families_; }
  DroppedFamilies& dropped() { return dropped_; }
  const DroppedFamilies& dropped() const { return dropped_; }
  KeyIndex& index() { return index_; }
  const KeyIndex& index() const { return index_; }

  // Entries are read through a view alone, except those of generations to which nothing is added any more.
  std::shared_ptr<const Generations> generations() const;
  // Of now. Waits for a commit group that replaces entries.
  View view() const;
  // Set before an entry can be seen, and cleared after the last generation has gone. `order`: seq_cst where a write to
  // RocksDB and a commit look for each other (key_fence.h).
  bool has_any(std::memory_order order = std::memory_order_acquire) const { return has_any_.load(order); }
  // Bytes of keys and values in all generations.
  std::uint64_t user_bytes() const;
  std::uint64_t entries() const;  // in all generations
  // Memory of all generations and the index, without generations that only readers hold.
  std::uint64_t memory_bytes() const;
  // Of all generations, also those that only readers hold, and the index.
  std::uint64_t all_memory_bytes() const { return index_.memory_bytes() + memory_->load(std::memory_order_relaxed); }
  Tally tally(std::optional<std::uint32_t> family) const;  // without one: of all

  // Every entry up to here is in the index.
  Sequence visible() const { return visible_.load(std::memory_order_acquire); }
  // visible() when the database was opened.
  Sequence recovered() const { return recovered_; }
  // The newest entry that is visible, for the marks in RocksDB's log.
  Mark newest() const;

  // The index or a range tombstone says that the newest version of the key is here.
  bool is_covered(std::uint32_t family, std::string_view key) const;
  // The same of the index alone, but only by an entry that is durable: its sequence is at most `durable`.
  bool is_superseded(const Entry& entry, Sequence durable) const;

  // Takes RocksDB's side of a view with these generations.
  using TakeMain = std::function<void(const std::shared_ptr<const Generations>& generations)>;
  // The view of the moment at which `take_main` was called. Nothing if a commit or a rollback came in between, so that
  // the two stores may not be of one moment.
  std::optional<View> try_view(const TakeMain& take_main) const;

  // A generation that releases its place in the store after its last reader. It is not live yet.
  std::shared_ptr<Generation> make_generation(GenerationId id) const;
  // While releases are deferred, only release_deferred() frees space in the store.
  void defer_releases(bool is_deferred) { releases_->set_deferred(is_deferred); }
  void release_deferred() { releases_->release_all(*store_); }

  // --- In the commit queue
  void add(const std::shared_ptr<Generation>& generation) REQUIRES(in_commit_queue);  // the newest
  // From here to end_replacing() entries of the newest generation may be replaced by those of a commit group, which
  // become visible in between: no view is made meanwhile. False: a view has that generation, and they may not.
  bool begin_replacing() REQUIRES(in_commit_queue);
  void end_replacing() REQUIRES(in_commit_queue);
  // Operations up to here become visible.
  void show(const Mark& newest) REQUIRES(in_commit_queue);
  // They are in RocksDB: no longer live, but kept as long as a reader uses them. Their keys stay in the index until
  // index().remove().
  void retire(const Generations& brought_back) REQUIRES(in_commit_queue);
  // While the database is opened.
  void recover(std::shared_ptr<const Generations> generations, Sequence last) REQUIRES(in_commit_queue);

 private:
  void publish(std::shared_ptr<const Generations> generations, bool has_new = false);

  const std::shared_ptr<Store> store_;  // outlives every generation
  ColumnFamilies families_;
  KeyIndex index_;
  const MemoryCount::Sum memory_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  const std::shared_ptr<DeferredReleases> releases_ = std::make_shared<DeferredReleases>();
  mutable Mutex mutex_;
  std::shared_ptr<const Generations> generations_ GUARDED_BY(mutex_);
  // Held by each view that has the newest generation. Each newest generation has one of its own.
  std::shared_ptr<const ViewPin> pin_ GUARDED_BY(mutex_) = std::make_shared<const ViewPin>();
  bool is_replacing_ GUARDED_BY(mutex_) = false;
  mutable Mutex newest_mutex_;
  Mark newest_ GUARDED_BY(newest_mutex_);
  std::atomic<bool> has_any_{false};
  std::atomic<Sequence> visible_{0};
  Sequence recovered_ = 0;
  DroppedFamilies dropped_;
};

}  // namespace spillway::spill
