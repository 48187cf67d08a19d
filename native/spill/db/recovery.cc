#include "spill/db/recovery.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::WriteBatch;

// The header and position of a record.
struct Read {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
  RecordHeader header;
};

// The index of the first record that is not kept. All records up to the last one that was acknowledged as durable are
// kept, and those after it up to the first that follows a write which RocksDB has lost.
std::size_t count_kept(const std::vector<Read>& records, std::uint64_t main_recovered) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].header.sync) kept = i + 1;
  }
  while (kept < records.size() && records[kept].header.main_sequence <= main_recovered) ++kept;
  return kept;
}

// The sequence up to which RocksDB has every write. Later writes of its log are lost. RocksDB's latest sequence number
// may be larger, see record.h.
std::uint64_t main_recovered(const std::vector<Read>& records, std::uint64_t replayed, rocksdb::DB& db) {
  std::uint64_t recovered = replayed;
  // Records before the last sync record are kept in any case. Their sequence numbers may be of an earlier opening: if
  // RocksDB lost writes then, it has used the numbers again since.
  const auto last_sync =
      std::find_if(records.rbegin(), records.rend(), [](const Read& record) { return record.header.sync; });
  const auto first = last_sync == records.rend() ? records.begin() : last_sync.base() - 1;
  // (What precedes a sync record is durable, too, and each later record says so itself.)
  std::for_each(first, records.end(),
                [&](const Read& record) { recovered = std::max(recovered, record.header.main_durable); });
  // What is in tables was durable in the log before. If a recovery ended before its note, only the tables show how far
  // RocksDB's log reached. (A compaction may set a table's sequence numbers to 0.)
  std::vector<rocksdb::LiveFileMetaData> files;
  db.GetLiveFilesMetaData(&files);
  for (const auto& file : files) recovered = std::max(recovered, file.largest_seqno);
  return recovered;
}

// A number that no generation had before, even if the store has no trace of one. A drive may still hold frames of an
// old generation, which must not be taken for those of a new one.
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

// Reads the records of generations again and makes entries of them.
class Replay {
 public:
  Replay(const LiveSet& live, const Store& store) : live_(live), store_(store) {}

  rocksdb::Status read(GenerationId generation) REQUIRES(in_commit_queue) {
    return store_.scan(generation,
                       [this](const StoredRecord& record) REQUIRES(in_commit_queue) { return add(record); });
  }
  // Discards the records of the generation and of later ones.
  void discard_from(GenerationId generation) {
    std::erase_if(*generations, [&](const auto& one) { return one->id() >= generation; });
    records.clear();
  }

  std::shared_ptr<Generations> generations = std::make_shared<Generations>();
  std::vector<Read> records;  // since the last discarded one
  Sequence next_sequence = 1;

 private:
  rocksdb::Status add(const StoredRecord& record) REQUIRES(in_commit_queue) {
    const auto header = decode_header(record.bytes);
    if (!header) return damaged(record);
    if (generations->empty() || generations->back()->id() != record.generation) {
      generations->push_back(live_.make_generation(record.generation));
      keys_ = std::make_unique<KeyIndex>();
    }
    records.push_back({record.generation, record.offset, *header});
    const WriteBatch batch(batch_of(record.bytes).ToString());
    next_sequence = add_entries_of(batch, record.offset, header->first_sequence, *generations->back(), *keys_,
                                   /*may_replace=*/true);
    return {};
  }

  const LiveSet& live_;
  const Store& store_;
  std::unique_ptr<KeyIndex> keys_;  // of the newest generation, which thus takes no more memory than before
};

// Truncates the store after the first `kept` records. Reads the truncated generation again, up to there.
rocksdb::Status cut_behind(std::size_t kept, Store& store, Replay* replay) REQUIRES(in_commit_queue) {
  if (kept == replay->records.size()) return store.cut(replay->records.back().generation, ~std::uint64_t{0});
  const Read cut = replay->records[kept];
  if (rocksdb::Status status = store.cut(cut.generation, cut.offset); !status.ok()) return status;
  replay->discard_from(cut.generation);
  if (rocksdb::Status status = replay->read(cut.generation); !status.ok()) return status;
  if (!replay->records.empty()) return {};
  if (rocksdb::Status status = store.drop(cut.generation); !status.ok()) return status;
  store.release(cut.generation);
  return {};
}

// Whether each live record can be brought back. A family's options may have changed since it was diverted.
rocksdb::Status check_ways_back(const LiveSet& live) REQUIRES(in_commit_queue) {
  const auto generations = live.generations();
  rocksdb::Status status;
  live.families().for_each([&](const ColumnFamily& family) REQUIRES(in_commit_queue) {
    if (family.can_be_diverted || family.handle == nullptr) return;
    const auto has_any = [&](const auto& one) REQUIRES(in_commit_queue) { return one->has_any_of(family.id); };
    if (std::ranges::none_of(*generations, has_any)) return;
    status = rocksdb::Status::NotSupported(
        "column family " + family.handle->GetName() +
        " has writes in the spill store, which cannot be ingested with FIFO compaction or with tables that are not "
        "block-based; open it with its former options and call Rollback() first");
  });
  return status;
}

}  // namespace

rocksdb::Status read_contents(Store& store, StoreContents* contents) {
  const auto add = [&](const StoredRecord& record) {
    const auto header = decode_header(record.bytes);
    if (!header) return damaged(record);
    if (contents->generations.empty() || contents->generations.back() != record.generation) {
      contents->generations.push_back(record.generation);
    }
    const WriteBatch batch(batch_of(record.bytes).ToString());
    contents->has_writes = contents->has_writes || batch.Count() > 0;
    contents->survivors.last = header->first_sequence + static_cast<Sequence>(batch.Count()) - 1;
    return rocksdb::Status();
  };
  rocksdb::Status status = store.recover(add);
  for (const GenerationId generation : store.generations()) contents->survivors.generations.insert(generation);
  return status;
}

rocksdb::Status recover(const StoreContents& contents, MainDb& main, LiveSet& live, Commits& commits) {
  in_commit_queue.assume_held();  // the database is not in use yet
  Store& store = live.store();
  Replay replay(live, store);
  for (const GenerationId generation : contents.generations) {
    if (rocksdb::Status status = replay.read(generation); !status.ok()) return status;
  }
  GenerationId newest = store.newest_known();  // the clock may have been set back
  for (const Read& record : replay.records) newest = std::max(newest, record.generation);
  const GenerationId next_generation = std::max<GenerationId>(newest + 1, now_us());
  std::size_t kept = 0;
  rocksdb::Status status;
  const bool is_empty = replay.records.empty();
  if (is_empty) {
    status = store.cut(0, 0);  // discards a torn first record
  } else {
    kept = count_kept(replay.records, main_recovered(replay.records, main.order().replayed(), main.db()));
    status = cut_behind(kept, store, &replay);
  }
  if (!status.ok()) return status;
  commits.pipeline.queue().run_alone([&]() REQUIRES(in_commit_queue) {
    commits.writer.begin_at(next_generation, replay.next_sequence);
    if (is_empty) return;
    live.recover(std::move(replay.generations), replay.next_sequence - 1);
    // RocksDB has flushed what it replayed, so the next recovery finds nothing in its log. Sequence numbers that the
    // log has lost may be used again, and then records name numbers of other writes. Therefore a note is written in any
    // case: records before it do not count any more.
    commits.notes.begin(kept > 0 ? std::max<std::uint64_t>(main.durable_up_to(), 1) : 0);
    status = commits.notes.append_durably();
  });
  if (!status.ok() && !status.IsNoSpace()) return status;  // NoSpace: the note is owed
  return check_ways_back(live);
}

}  // namespace spillway::spill
