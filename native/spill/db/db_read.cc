// Reads: the index says where the newest version of a key lies; snapshots and iterators see both stores of one moment.
#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

#include "spill/db/db_impl.h"
#include "spill/read/iterator.h"

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;

// How often a moment is taken again, when a commit came in between, before commits are held for it.
constexpr int kMomentTries = 3;
// Of ReadOptions::value_size_soft_limit.
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

ReadOptions for_main(const ReadOptions& options, const Moment& moment) {
  ReadOptions main = options;
  main.snapshot = moment.main.get();
  return main;
}

}  // namespace

std::shared_ptr<const Generations> DbImpl::live() const {
  const std::lock_guard lock(live_mutex_);
  return live_;
}

void DbImpl::publish(std::shared_ptr<const Generations> generations) {
  const bool any = !generations->empty();
  if (any) has_live_.store(true, std::memory_order_seq_cst);
  {
    const std::lock_guard lock(live_mutex_);
    live_ = std::move(generations);
  }
  if (!any) has_live_.store(false, std::memory_order_seq_cst);
}

// Nothing if a commit or a rollback came in between, so that the two stores may not be of one moment.
std::optional<View> DbImpl::try_view(const TakeMain& take_main) {
  const auto generations = live();
  const Sequence visible = visible_.load(std::memory_order_acquire);
  take_main(generations);
  if (visible_.load(std::memory_order_acquire) != visible || live() != generations) return std::nullopt;
  return View{generations, visible};
}

// The view of the moment at which `take_main` was called last, which takes RocksDB's side.
View DbImpl::take_view(const TakeMain& take_main) {
  for (int i = 0; i < kMomentTries; ++i) {
    if (auto view = try_view(take_main)) return *view;
  }
  View held;
  commits_.run_alone([&] {
    if (auto view = try_view(take_main)) held = *view;
  });
  return held;
}

Moment DbImpl::take_moment() {
  Moment moment;
  moment.view = take_view([&](const auto&) {
    const rocksdb::Snapshot* const main = base().GetSnapshot();
    moment.main.reset();
    if (main == nullptr) return;
    moment.main = {main, [this](const rocksdb::Snapshot* one) { base().ReleaseSnapshot(one); }};
  });
  return moment;  // without a snapshot where RocksDB has none (a memtable of the user's own)
}

Moment DbImpl::moment_of(const ReadOptions& options) {
  if (options.snapshot == nullptr) return take_moment();
  // Functions that go past us take every snapshot for one of RocksDB's, so from then on there are those, too.
  if (root_handed_out_.load(std::memory_order_acquire) && !snapshots_.contains(options.snapshot)) {
    return {View{}, std::shared_ptr<const rocksdb::Snapshot>(options.snapshot, [](const rocksdb::Snapshot*) {})};
  }
  return static_cast<const SpillSnapshot*>(options.snapshot)->moment();
}

const rocksdb::Snapshot* DbImpl::GetSnapshot() {
  if (root_handed_out_.load(std::memory_order_acquire)) return base().GetSnapshot();
  Moment moment = take_moment();
  if (moment.main == nullptr) return nullptr;
  const Sequence diverted = std::max(moment.view.up_to, recovered_) - recovered_;
  return snapshots_.add(std::move(moment), diverted);
}

void DbImpl::ReleaseSnapshot(const rocksdb::Snapshot* snapshot) {
  if (snapshot == nullptr || snapshots_.release(snapshot)) return;
  if (root_handed_out_.load(std::memory_order_acquire)) base().ReleaseSnapshot(snapshot);
}

rocksdb::Status DbImpl::value_of(const Entry& entry, const ReadOptions& options, PinnableSlice* value) {
  value->Reset();
  if (rocksdb::Status status = values_.may_read(options); !status.ok()) return status;
  const rocksdb::Status status = values_.read(entry, value->GetSelf());
  if (status.ok()) value->PinSelf();
  return status;
}

rocksdb::Status DbImpl::get_at(const Moment& moment, const ReadOptions& options, ColumnFamilyHandle* family,
                               const Slice& key, PinnableSlice* value) {
  const std::uint32_t id = family->GetID();
  const Entry* const entry = moment.view.find(id, view(key));
  const Sequence removed =
      options.ignore_range_deletions ? 0 : moment.view.covering_tombstone(id, view(key), families_);
  if (entry != nullptr && entry->sequence > removed) {
    if (entry->kind == Kind::remove) return rocksdb::Status::NotFound();
    return value_of(*entry, options, value);
  }
  if (entry != nullptr || removed != 0) return rocksdb::Status::NotFound();
  return base().Get(for_main(options, moment), family, key, value);
}

// There is a range tombstone over the key. It and the index are of one moment if every commit that was looked at is
// over, and nothing that a rollback brought back has left the index meanwhile.
rocksdb::Status DbImpl::get_covered(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                                    PinnableSlice* value) {
  const std::uint32_t id = family->GetID();
  const auto generations = live();
  const Sequence visible = visible_.load(std::memory_order_acquire);
  const Sequence removed = View{generations, visible}.covering_tombstone(id, view(key), families_);
  const auto found = index_.find(id, view(key));
  const Sequence written = found ? found->entry.sequence : 0;
  if (written > visible || live() != generations) return get_at(take_moment(), options, family, key, value);
  if (written < removed) return rocksdb::Status::NotFound();
  if (!found || found->generation->is_dropped()) return base().Get(options, family, key, value);
  if (found->entry.kind == Kind::remove) return rocksdb::Status::NotFound();
  return value_of(found->entry, options, value);
}

rocksdb::Status DbImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                            PinnableSlice* value) {
  if (options.timestamp != nullptr) return base().Get(options, family, key, value);  // which refuses it
  if (options.snapshot != nullptr) return get_at(moment_of(options), options, family, key, value);
  if (!has_live_.load(std::memory_order_acquire)) return base().Get(options, family, key, value);
  counts_.reads_with_live.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t id = family->GetID();
  const View now{live(), ~Sequence{0}};  // before the look into the index: a tombstone it misses is not older
  const auto found = index_.find(id, view(key));
  // Its commit is not over: what it wrote can be seen when all of it can.
  while (found && visible_.load(std::memory_order_acquire) < found->entry.sequence) std::this_thread::yield();
  if (!options.ignore_range_deletions && now.covering_tombstone(id, view(key), families_) != 0) {
    return get_covered(options, family, key, value);
  }
  if (!found || found->generation->is_dropped()) return base().Get(options, family, key, value);  // RocksDB has it
  if (found->entry.kind == Kind::remove) return rocksdb::Status::NotFound();
  return value_of(found->entry, options, value);
}

std::vector<rocksdb::Status> DbImpl::MultiGet(const ReadOptions& options,
                                              const std::vector<ColumnFamilyHandle*>& families,
                                              const std::vector<Slice>& keys, std::vector<std::string>* values) {
  values->resize(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  std::vector<PinnableSlice> found(keys.size());
  auto handles = families;
  if (options.value_size_soft_limit == kNoLimit || options.timestamp != nullptr) {
    MultiGet(options, keys.size(), handles.data(), keys.data(), found.data(), statuses.data());
  } else {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    read_in_order(moment_of(options), options, order, /*limit_is_of_family=*/false, handles.data(), keys.data(),
                  found.data(), statuses.data());
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) (*values)[i] = found[i].ToString();
  }
  return statuses;
}

void DbImpl::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, std::size_t count, const Slice* keys,
                      PinnableSlice* values, rocksdb::Status* statuses, bool sorted_input) {
  std::vector<ColumnFamilyHandle*> families(count, family);
  MultiGet(options, count, families.data(), keys, values, statuses, sorted_input);
}

void DbImpl::MultiGet(const ReadOptions& options, std::size_t count, ColumnFamilyHandle** families, const Slice* keys,
                      PinnableSlice* values, rocksdb::Status* statuses, bool sorted_input) {
  const Sequence visible = visible_.load(std::memory_order_acquire);  // first
  if (options.snapshot == nullptr && !has_live_.load(std::memory_order_acquire)) {
    base().MultiGet(options, count, families, keys, values, statuses, sorted_input);
    // Else RocksDB may have taken a moment that is behind a diverted write.
    if (visible_.load(std::memory_order_acquire) == visible) return;
    std::for_each_n(values, count, [](PinnableSlice& value) { value.Reset(); });
  }
  const Moment moment = moment_of(options);
  // (With a timestamp RocksDB says why not.)
  if (moment.view.generations == nullptr || moment.view.generations->empty() || options.timestamp != nullptr) {
    base().MultiGet(for_main(options, moment), count, families, keys, values, statuses, sorted_input);
    return;
  }
  counts_.reads_with_live.fetch_add(count, std::memory_order_relaxed);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.value_size_soft_limit != kNoLimit && !sorted_input) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const std::uint32_t of_a = families[a]->GetID();
      const std::uint32_t of_b = families[b]->GetID();
      return of_a != of_b ? of_a < of_b : families_.comparator(of_a)->Compare(keys[a], keys[b]) < 0;
    });
  }
  read_in_order(moment, options, order, /*limit_is_of_family=*/true, families, keys, values, statuses);
}

// Once the values are larger than their limit, nothing more is read. RocksDB looks for many keys in the order of the
// keys, and begins to count with each family; with its older function, in the order given, for all families together.
void DbImpl::read_in_order(const Moment& moment, const ReadOptions& options, std::span<const std::size_t> order,
                           bool limit_is_of_family, ColumnFamilyHandle** families, const Slice* keys,
                           PinnableSlice* values, rocksdb::Status* statuses) {
  std::uint64_t bytes = 0;
  bool is_over = false;
  std::optional<std::uint32_t> family;
  for (const std::size_t i : order) {
    is_over = is_over || bytes > options.value_size_soft_limit;
    if (limit_is_of_family && family != families[i]->GetID()) bytes = 0;
    family = families[i]->GetID();
    statuses[i] = is_over ? rocksdb::Status::Aborted() : get_at(moment, options, families[i], keys[i], &values[i]);
    if (statuses[i].ok()) bytes += values[i].size();
  }
}

rocksdb::Status DbImpl::VerifyChecksum(const ReadOptions& options) {
  const rocksdb::Status status = base().VerifyChecksum(options);
  return status.ok() ? verify_spilled() : status;
}

rocksdb::Status DbImpl::VerifyFileChecksums(const ReadOptions& options) {
  const rocksdb::Status status = base().VerifyFileChecksums(options);
  return status.ok() ? verify_spilled() : status;
}

// Those of this moment are held meanwhile, brought back or not.
rocksdb::Status DbImpl::verify_spilled() const {
  const auto generations = live();
  for (const auto& generation : *generations) {
    rocksdb::Status status = store_->scan(generation->id(), [](const StoredRecord&) { return rocksdb::Status(); });
    if (!status.ok()) return status;
  }
  return {};
}

bool DbImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, std::string* value,
                         bool* value_found) {
  if (!has_live_.load(std::memory_order_acquire) && options.snapshot == nullptr) {
    return base().KeyMayExist(options, family, key, value, value_found);
  }
  if (value_found != nullptr) *value_found = false;
  return true;  // "may": a caller that needs to know asks Get
}

// Of now, RocksDB's iterator is taken together with the view: it holds its moment by itself, where the release of a
// snapshot has RocksDB look for files of the last level to compact.
IteratorBase DbImpl::base_of_now(const ReadOptions& options, ColumnFamilyHandle* family) {
  IteratorBase made;
  made.view = take_view([&](const std::shared_ptr<const Generations>& generations) {
    made.main.reset(base().NewIterator(main_options(options, generations), family));
  });
  made.prefix_extractor = prefix_extractor_of(family, options, made.view);
  return made;
}

rocksdb::Iterator* DbImpl::iterator_on(IteratorBase on, const ReadOptions& options, ColumnFamilyHandle* family) {
  if (has_live_.load(std::memory_order_acquire)) counts_.reads_with_live.fetch_add(1, std::memory_order_relaxed);
  ReadOptions kept = options;
  kept.snapshot = nullptr;
  const std::uint32_t id = family->GetID();
  return make_iterator(std::move(on), IteratedFamily{id, families_.comparator(id)}, options, values_,
                       [this, kept, id] { return base_of_now(kept, id); })
      .release();
}

// Through a handle that nobody destroys meanwhile, whatever the user has done to his.
IteratorBase DbImpl::base_of_now(const ReadOptions& options, std::uint32_t id) {
  const UsedColumnFamily family = families_.use(id);
  if (family.handle != nullptr) return base_of_now(options, family.handle);
  return {};
}

rocksdb::Iterator* DbImpl::iterator_at(const Moment& moment, const ReadOptions& options, ColumnFamilyHandle* family) {
  IteratorBase on;
  on.view = moment.view;
  on.main.reset(base().NewIterator(main_options(for_main(options, moment), moment.view.generations), family));
  on.holds = std::const_pointer_cast<rocksdb::Snapshot>(moment.main);
  on.prefix_extractor = prefix_extractor_of(family, options, on.view);
  return iterator_on(std::move(on), options, family);
}

rocksdb::Iterator* DbImpl::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  if (options.tailing) {
    return rocksdb::NewErrorIterator(rocksdb::Status::NotSupported("spillway::DB does not support tailing iterators"));
  }
  if (options.snapshot == nullptr) return iterator_on(base_of_now(options, family), options, family);
  return iterator_at(moment_of(options), options, family);
}

rocksdb::Status DbImpl::NewIterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                     std::vector<rocksdb::Iterator*>* iterators) {
  iterators->clear();
  if (options.tailing) return rocksdb::Status::NotSupported("spillway::DB does not support tailing iterators");
  // Several need a snapshot of RocksDB's: without one, RocksDB 7.8.3 may miss a key that is overwritten and flushed
  // before it comes to the key's family.
  const bool is_one = families.size() == 1 && options.snapshot == nullptr;
  const Moment moment = is_one ? Moment() : moment_of(options);
  for (ColumnFamilyHandle* family : families) {
    iterators->push_back(is_one ? iterator_on(base_of_now(options, family), options, family)
                                : iterator_at(moment, options, family));
    const rocksdb::Status status = iterators->back()->status();  // why RocksDB makes none with these options
    if (status.ok()) continue;
    for (const rocksdb::Iterator* one : *iterators) delete one;  // NOLINT: theirs who call only if all are made
    iterators->clear();
    return status;
  }
  return {};
}

}  // namespace spillway::spill
