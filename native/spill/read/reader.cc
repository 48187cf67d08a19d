#include "spill/read/reader.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

namespace spillway::spill {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;

// Most attempts to take a view despite concurrent commits. After that, commits are held for it.
constexpr int kViewTries = 3;
// The value of ReadOptions::value_size_soft_limit that means no limit.
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

ReadOptions for_main(const ReadOptions& options, const ReadState& state) {
  ReadOptions main = options;
  main.snapshot = state.main.get();
  return main;
}

}  // namespace

View Reader::take_view(const LiveSet::TakeMain& take_main) {
  for (int i = 0; i < kViewTries; ++i) {
    if (auto view = live_.try_view(take_main)) return *view;
  }
  View held;
  queue_.run_alone([&] {
    if (auto view = live_.try_view(take_main)) held = *view;
  });
  return held;
}

ReadState Reader::take_state() {
  ReadState state;
  state.view = take_view([&](const auto&) {
    const rocksdb::Snapshot* const main = main_.db().GetSnapshot();
    state.main.reset();
    if (main == nullptr) return;
    state.main = {main, [this](const rocksdb::Snapshot* one) { main_.db().ReleaseSnapshot(one); }};
  });
  return state;  // without RocksDB's snapshot if RocksDB has none (a user's memtable without snapshot support)
}

ReadState Reader::state_of(const ReadOptions& options) {
  if (options.snapshot == nullptr) return take_state();
  // Functions that bypass this library take every snapshot for RocksDB's. So there are also RocksDB's own from then on.
  if (main_.is_handed_out() && !snapshots_.contains(options.snapshot)) {
    return {View{}, std::shared_ptr<const rocksdb::Snapshot>(options.snapshot, [](const rocksdb::Snapshot*) {})};
  }
  return static_cast<const SpillSnapshot*>(options.snapshot)->state();
}

const rocksdb::Snapshot* Reader::get_snapshot() {
  if (main_.is_handed_out()) return main_.db().GetSnapshot();
  ReadState state = take_state();
  if (state.main == nullptr) return nullptr;
  const Sequence diverted = std::max(state.view.up_to, live_.recovered()) - live_.recovered();
  return snapshots_.add(std::move(state), diverted);
}

void Reader::release_snapshot(const rocksdb::Snapshot* snapshot) {
  if (snapshot == nullptr || snapshots_.release(snapshot)) return;
  if (main_.is_handed_out()) main_.db().ReleaseSnapshot(snapshot);
}

rocksdb::Status Reader::value_of(const Entry& entry, const ReadOptions& options, PinnableSlice* value) {
  value->Reset();
  if (rocksdb::Status status = values_.may_read(options); !status.ok()) return status;
  const rocksdb::Status status = values_.read(entry, value->GetSelf());
  if (status.ok()) value->PinSelf();
  return status;
}

rocksdb::Status Reader::get_at(const ReadState& state, const ReadOptions& options, ColumnFamilyHandle* family,
                               const Slice& key, PinnableSlice* value) {
  const std::uint32_t id = family->GetID();
  const std::optional<View> kept = live_.dropped().view_of(id, state.view);
  const View& seen = kept ? *kept : state.view;
  const Entry* const entry = seen.find(id, view(key));
  const Sequence removed =
      options.ignore_range_deletions ? 0 : seen.covering_tombstone(id, view(key), live_.families());
  if (entry != nullptr && entry->sequence > removed) {
    if (entry->kind == Kind::remove) return rocksdb::Status::NotFound();
    return value_of(*entry, options, value);
  }
  if (entry != nullptr || removed != 0) return rocksdb::Status::NotFound();
  return main_.db().Get(for_main(options, state), family, key, value);
}

rocksdb::Status Reader::get_from_main(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                                      PinnableSlice* value) {
  if (live_.dropped().has_any()) return get_at({{nullptr, ~Sequence{0}}, nullptr}, options, family, key, value);
  return main_.db().Get(options, family, key, value);
}

// A range tombstone covers the key. The tombstone and the index are of the same state if all commits that were looked
// at are complete, and no generation was brought back meanwhile.
rocksdb::Status Reader::get_covered(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                                    PinnableSlice* value) {
  const std::uint32_t id = family->GetID();
  const auto generations = live_.generations();
  const Sequence visible = live_.visible();
  const Sequence removed = View{generations, visible}.covering_tombstone(id, view(key), live_.families());
  const auto found = live_.index().find(id, view(key));
  const Sequence written = found ? found->entry.sequence : 0;
  if (written > visible || live_.generations() != generations) return get_at(take_state(), options, family, key, value);
  if (written < removed) return rocksdb::Status::NotFound();
  if (!found || found->generation->is_dropped()) return get_from_main(options, family, key, value);
  if (found->entry.kind == Kind::remove) return rocksdb::Status::NotFound();
  return value_of(found->entry, options, value);
}

rocksdb::Status Reader::get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                            PinnableSlice* value) {
  if (options.timestamp != nullptr) return main_.db().Get(options, family, key, value);  // not supported
  if (options.snapshot != nullptr) return get_at(state_of(options), options, family, key, value);
  if (has_nothing_diverted()) return main_.db().Get(options, family, key, value);
  increment(telemetry_.counts.reads_with_live);
  const std::uint32_t id = family->GetID();
  // Taken before the index is read: a tombstone that is missing here cannot be older than the entry.
  const View now{live_.generations(), ~Sequence{0}};
  const auto found = live_.index().find(id, view(key));
  // Its commit is not complete. Its writes become visible together.
  while (found && live_.visible() < found->entry.sequence) std::this_thread::yield();
  if (!options.ignore_range_deletions && now.covering_tombstone(id, view(key), live_.families()) != 0) {
    return get_covered(options, family, key, value);
  }
  if (!found || found->generation->is_dropped()) return get_from_main(options, family, key, value);
  if (found->entry.kind == Kind::remove) return rocksdb::Status::NotFound();
  return value_of(found->entry, options, value);
}

std::vector<rocksdb::Status> Reader::multi_get(const ReadOptions& options,
                                               const std::vector<ColumnFamilyHandle*>& families,
                                               const std::vector<Slice>& keys, std::vector<std::string>* values) {
  values->resize(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  std::vector<PinnableSlice> found(keys.size());
  auto handles = families;
  const KeysToGet all{keys.size(), handles.data(), keys.data(), found.data(), statuses.data()};
  if (options.value_size_soft_limit == kNoLimit || options.timestamp != nullptr) {
    multi_get(options, all, /*is_sorted=*/false);
  } else {
    std::vector<std::size_t> order(keys.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    get_in_order(state_of(options), options, order, SizeLimit::of_all, all);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) (*values)[i] = found[i].ToString();
  }
  return statuses;
}

void Reader::multi_get(const ReadOptions& options, const KeysToGet& keys, bool is_sorted) {
  const Sequence visible = live_.visible();  // before RocksDB is read
  if (options.snapshot == nullptr && has_nothing_diverted()) {
    main_.db().MultiGet(options, keys.count, keys.families, keys.keys, keys.values, keys.statuses, is_sorted);
    // Otherwise RocksDB's state may be newer than a diverted write that this read would miss.
    if (live_.visible() == visible) return;
    std::for_each_n(keys.values, keys.count, [](PinnableSlice& value) { value.Reset(); });
  }
  const ReadState state = state_of(options);
  // (With a timestamp RocksDB returns the reason why not.)
  const bool has_none = is_empty(state.view.generations) && !live_.dropped().has_any();
  if (has_none || options.timestamp != nullptr) {
    main_.db().MultiGet(for_main(options, state), keys.count, keys.families, keys.keys, keys.values, keys.statuses,
                        is_sorted);
    return;
  }
  increment(telemetry_.counts.reads_with_live, keys.count);
  std::vector<std::size_t> order(keys.count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.value_size_soft_limit != kNoLimit && !is_sorted) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const std::uint32_t of_a = keys.families[a]->GetID();
      const std::uint32_t of_b = keys.families[b]->GetID();
      if (of_a != of_b) return of_a < of_b;
      return live_.families().comparator(of_a)->Compare(keys.keys[a], keys.keys[b]) < 0;
    });
  }
  get_in_order(state, options, order, SizeLimit::of_each_family, keys);
}

// Once the values are larger than the limit, no more values are read. RocksDB reads many keys in key order, and counts
// from 0 for each family. Its older function reads them in the given order, and counts over all families.
void Reader::get_in_order(const ReadState& state, const ReadOptions& options, std::span<const std::size_t> order,
                          SizeLimit limit, const KeysToGet& keys) {
  std::uint64_t bytes = 0;
  bool is_over = false;
  std::optional<std::uint32_t> family;
  for (const std::size_t i : order) {
    is_over = is_over || bytes > options.value_size_soft_limit;
    if (limit == SizeLimit::of_each_family && family != keys.families[i]->GetID()) bytes = 0;
    family = keys.families[i]->GetID();
    keys.statuses[i] =
        is_over ? rocksdb::Status::Aborted() : get_at(state, options, keys.families[i], keys.keys[i], &keys.values[i]);
    if (keys.statuses[i].ok()) bytes += keys.values[i].size();
  }
}

// Keeps the generations until it returns, even if they are brought back.
rocksdb::Status Reader::verify_checksums() const {
  const auto generations = live_.generations();
  for (const auto& generation : *generations) {
    rocksdb::Status status = store_.scan(generation->id(), [](const StoredRecord&) { return rocksdb::Status(); });
    if (!status.ok()) return status;
  }
  return {};
}

bool Reader::key_may_exist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, std::string* value,
                           bool* value_found) {
  if (has_nothing_diverted() && options.snapshot == nullptr) {
    return main_.db().KeyMayExist(options, family, key, value, value_found);
  }
  if (value_found != nullptr) *value_found = false;
  return true;  // a caller that must know calls Get
}

// A base of the current state has RocksDB's iterator taken together with the view. The iterator keeps its state by
// itself, without a snapshot: when a snapshot is released, RocksDB checks for files of the last level to compact.
IteratorSource Reader::base_of_now(const ReadOptions& options, ColumnFamilyHandle* family) {
  IteratorSource made;
  made.view = take_view([&](const std::shared_ptr<const Generations>& generations) {
    made.main.reset(main_.db().NewIterator(main_options(options, generations), family));
  });
  if (const auto kept = live_.dropped().view_of(family->GetID())) {
    made.view = *kept;
    made.main.reset(main_.db().NewIterator(main_options(options, kept->generations), family));
  }
  made.prefix_extractor = prefix_extractor_of(family, options, made.view);
  return made;
}

rocksdb::Iterator* Reader::iterator_on(IteratorSource on, const ReadOptions& options, ColumnFamilyHandle* family) {
  if (live_.has_any()) increment(telemetry_.counts.reads_with_live);
  const std::uint32_t id = family->GetID();
  const auto renew = [this, options, id](const rocksdb::Snapshot* snapshot) {
    ReadOptions renewed = options;
    renewed.snapshot = snapshot;
    return base_at_any(renewed, id);
  };
  return make_iterator(std::move(on), IteratedFamily{id, live_.families().comparator(id)}, options, values_, renew)
      .release();
}

// Uses a handle that cannot be destroyed during the call, even if the user deletes theirs.
IteratorSource Reader::base_at_any(const ReadOptions& options, std::uint32_t id) {
  const UsedColumnFamily family = live_.families().use(id);
  if (family.handle == nullptr) return {};
  if (options.snapshot == nullptr) return base_of_now(options, family.handle);
  return base_at(state_of(options), options, family.handle);
}

IteratorSource Reader::base_at(const ReadState& state, const ReadOptions& options, ColumnFamilyHandle* family) {
  IteratorSource on;
  on.view = live_.dropped().view_of(family->GetID(), state.view).value_or(state.view);
  on.main.reset(main_.db().NewIterator(main_options(for_main(options, state), on.view.generations), family));
  on.holds = std::const_pointer_cast<rocksdb::Snapshot>(state.main);
  on.prefix_extractor = prefix_extractor_of(family, options, on.view);
  return on;
}

rocksdb::Iterator* Reader::iterator_at(const ReadState& state, const ReadOptions& options, ColumnFamilyHandle* family) {
  return iterator_on(base_at(state, options, family), options, family);
}

rocksdb::Iterator* Reader::new_iterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  if (options.tailing) {
    return rocksdb::NewErrorIterator(rocksdb::Status::NotSupported("spillway::DB does not support tailing iterators"));
  }
  if (options.snapshot == nullptr) return iterator_on(base_of_now(options, family), options, family);
  return iterator_at(state_of(options), options, family);
}

rocksdb::Status Reader::new_iterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                      std::vector<rocksdb::Iterator*>* iterators) {
  iterators->clear();
  if (options.tailing) return rocksdb::Status::NotSupported("spillway::DB does not support tailing iterators");
  // Several iterators need a snapshot of RocksDB's: without one, RocksDB 7.8.3 may miss a key that is overwritten and
  // flushed before the iterator of the key's family is made.
  const bool is_one = families.size() == 1 && options.snapshot == nullptr;
  const ReadState state = is_one ? ReadState() : state_of(options);
  for (ColumnFamilyHandle* family : families) {
    iterators->push_back(is_one ? iterator_on(base_of_now(options, family), options, family)
                                : iterator_at(state, options, family));
    const rocksdb::Status status = iterators->back()->status();  // why RocksDB cannot make one with these options
    if (status.ok()) continue;
    for (const rocksdb::Iterator* one : *iterators) delete one;  // the caller gets none if one fails
    iterators->clear();
    return status;
  }
  return {};
}

}  // namespace spillway::spill
