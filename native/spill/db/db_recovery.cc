// Opening: what the spill store holds, and how much of it is kept so that what survives is a prefix (T26).
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "spill/db/db_impl.h"
#include "spill/store/region/region_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::WriteBatch;

// A record that was read, without its contents.
struct Read {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
  RecordHeader header;
};

// The first record that is not kept: after the last that was acknowledged as durable, the first that was made after a
// write which RocksDB has lost.
std::size_t count_kept(const std::vector<Read>& records, std::uint64_t main_recovered) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].header.sync) kept = i + 1;
  }
  while (kept < records.size() && records[kept].header.main_sequence <= main_recovered) ++kept;
  return kept;
}

// Every write to RocksDB up to here is there; what its log had beyond is lost. RocksDB's latest sequence number may be
// larger, see record.h.
std::uint64_t main_recovered(const std::vector<Read>& records, std::uint64_t replayed, rocksdb::DB& db) {
  std::uint64_t recovered = replayed;
  // Those before the last sync record are kept as they are; and their numbers may be of an earlier opening, from which
  // RocksDB kept less, and has given them again since.
  const auto last_sync =
      std::find_if(records.rbegin(), records.rend(), [](const Read& record) { return record.header.sync; });
  const auto first = last_sync == records.rend() ? records.begin() : last_sync.base() - 1;
  // (What a sync record came after is durable, too; each later record says so itself.)
  std::for_each(first, records.end(),
                [&](const Read& record) { recovered = std::max(recovered, record.header.main_durable); });
  // What is in tables was durable in the log before. After a recovery that did not get as far as its note they are all
  // that tells how far RocksDB's log went. (A compaction may set a table's numbers to 0.)
  std::vector<rocksdb::LiveFileMetaData> files;
  db.GetLiveFilesMetaData(&files);
  for (const auto& file : files) recovered = std::max(recovered, file.largest_seqno);
  return recovered;
}

// A number that no generation had before, even where none is left to tell: frames of an old one that a drive still
// holds must not be taken for a new one's.
GenerationId now_us() {
  using std::chrono::duration_cast;
  return static_cast<GenerationId>(
      duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

rocksdb::Status damaged(const StoredRecord& record) {
  return rocksdb::Status::Corruption("the spill store's generation " + std::to_string(record.generation) +
                                     " has a record at " + std::to_string(record.offset) +
                                     " that this version of Spillway cannot read");
}

}  // namespace

std::shared_ptr<Generation> DbImpl::make_generation(GenerationId id) {
  const std::shared_ptr<Store> store = store_;  // it outlives whoever holds a snapshot
  return std::make_shared<Generation>(id, families_, [store](GenerationId gone) { store->release(gone); });
}

rocksdb::Status read_remains(Store& store, Remains* remains) {
  const auto add = [&](const StoredRecord& record) {
    const auto header = decode_header(record.bytes);
    if (!header) return damaged(record);
    if (remains->generations.empty() || remains->generations.back() != record.generation) {
      remains->generations.push_back(record.generation);
    }
    const WriteBatch batch(batch_of(record.bytes).ToString());
    remains->has_writes = remains->has_writes || batch.Count() > 0;
    remains->survivors.last = header->first_sequence + static_cast<Sequence>(batch.Count()) - 1;
    return rocksdb::Status();
  };
  rocksdb::Status status = store.recover(add);
  for (const GenerationId generation : store.generations()) remains->survivors.generations.insert(generation);
  return status;
}

rocksdb::Status DbImpl::recover(const Remains& remains) {
  auto generations = std::make_shared<Generations>();
  std::vector<Read> records;
  const auto add = [&](const StoredRecord& record) {
    const auto header = decode_header(record.bytes);
    if (!header) return damaged(record);
    if (generations->empty() || generations->back()->id() != record.generation) {
      generations->push_back(make_generation(record.generation));
    }
    records.push_back({record.generation, record.offset, *header});
    const WriteBatch batch(batch_of(record.bytes).ToString());
    next_sequence_ = add_entries_of(batch, record.offset, header->first_sequence, *generations->back(), nullptr);
    return rocksdb::Status();
  };
  for (const GenerationId generation : remains.generations) {
    if (rocksdb::Status status = store_->scan(generation, add); !status.ok()) return status;
  }
  GenerationId newest = store_->newest_known();  // and the clock may have been set back
  for (const Read& record : records) newest = std::max(newest, record.generation);
  next_generation_ = std::max<GenerationId>(newest + 1, now_us());
  if (records.empty()) return store_->cut(0, 0);  // whatever there is of a first record
  const std::size_t kept = count_kept(records, main_recovered(records, main_order_->replayed(), base()));
  if (kept < records.size()) {
    const Read cut = records[kept];
    if (rocksdb::Status status = store_->cut(cut.generation, cut.offset); !status.ok()) return status;
    // The generation that was cut is read again, up to there.
    std::erase_if(*generations, [&](const auto& one) { return one->id() >= cut.generation; });
    records.clear();
    if (rocksdb::Status status = store_->scan(cut.generation, add); !status.ok()) return status;
    if (records.empty()) {
      if (rocksdb::Status status = store_->drop(cut.generation); !status.ok()) return status;
      store_->release(cut.generation);
    }
  } else if (rocksdb::Status status = store_->cut(records.back().generation, ~std::uint64_t{0}); !status.ok()) {
    return status;
  }
  for (const auto& generation : *generations) {
    generation->for_each([this](const Entry& entry) { index_.insert(&entry); });
  }
  recovered_ = next_sequence_ - 1;
  visible_.store(recovered_, std::memory_order_release);
  publish(std::move(generations));
  // What RocksDB replayed it has flushed: its log does not tell the next recovery any more.
  // And what its log did not have is gone, so its sequence numbers may begin again below those that records name. The
  // note ends what they say, whatever there is to prove.
  unproven_main_ = kept > 0 ? std::max<std::uint64_t>(main_durable_.load(std::memory_order_acquire), 1) : 0;
  const rocksdb::Status noted = append_note();
  if (!noted.ok() && !noted.IsNoSpace()) return noted;  // owed, where there is no room
  return check_ways_back();
}

// The options of a family may be others than when its writes were diverted.
rocksdb::Status DbImpl::check_ways_back() const {
  const auto generations = live();
  rocksdb::Status status;
  families_.for_each([&](const ColumnFamily& family) {
    if (family.can_be_diverted || family.handle == nullptr) return;
    if (std::ranges::none_of(*generations, [&](const auto& one) { return one->has_any_of(family.id); })) return;
    status = rocksdb::Status::NotSupported(
        "column family " + family.handle->GetName() +
        " has writes in the spill store, which cannot be ingested with FIFO compaction or with tables that are not "
        "block-based; open it with its former options and call Rollback() first");
  });
  return status;
}

}  // namespace spillway::spill
