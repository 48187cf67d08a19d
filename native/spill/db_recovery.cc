// Opening: what the spill store holds, and how much of it is kept so that what survives is a prefix (T26).
#include <algorithm>
#include <chrono>
#include <utility>

#include "spill/db_impl.h"
#include "spill/region_store.h"

namespace spillway::spill {
namespace {

using rocksdb::Slice;
using rocksdb::WriteBatch;

// A record that was read, without its contents.
struct Mark {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
  RecordHeader header;
};

// The first record that is not kept: after the last that was acknowledged as durable, the first that was made after a
// write which RocksDB has lost.
std::size_t count_kept(const std::vector<Mark>& marks, std::uint64_t main_recovered) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].header.sync) kept = i + 1;
  }
  while (kept < marks.size() && marks[kept].header.main_sequence <= main_recovered) ++kept;
  return kept;
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

rocksdb::Status DbImpl::recover() {
  auto generations = std::make_shared<Generations>();
  std::vector<Mark> marks;
  const auto add = [&](const StoredRecord& record) {
    const auto header = decode_header(record.bytes);
    if (!header) return damaged(record);
    if (generations->empty() || generations->back()->id() != record.generation) {
      generations->push_back(make_generation(record.generation));
    }
    marks.push_back({record.generation, record.offset, *header});
    const WriteBatch batch(batch_of(record.bytes).ToString());
    next_sequence_ = add_entries_of(batch, record.offset, header->first_sequence, *generations->back(), nullptr);
    return rocksdb::Status();
  };
  if (rocksdb::Status status = store_->recover(add); !status.ok()) return status;
  GenerationId newest = 0;
  for (const Mark& mark : marks) newest = std::max(newest, mark.generation);
  next_generation_ = std::max<GenerationId>(newest + 1, now_us());
  if (marks.empty()) return store_->cut(0, 0);  // whatever there is of a first record
  const std::size_t kept = count_kept(marks, base().GetLatestSequenceNumber());
  if (kept < marks.size()) {
    const Mark cut = marks[kept];
    if (rocksdb::Status status = store_->cut(cut.generation, cut.offset); !status.ok()) return status;
    // The generation that was cut is read again, up to there.
    std::erase_if(*generations, [&](const auto& one) { return one->id() >= cut.generation; });
    marks.clear();
    if (rocksdb::Status status = store_->scan(cut.generation, add); !status.ok()) return status;
    if (marks.empty()) {
      if (rocksdb::Status status = store_->drop(cut.generation); !status.ok()) return status;
      store_->release(cut.generation);
    }
  } else if (rocksdb::Status status = store_->cut(marks.back().generation, ~std::uint64_t{0}); !status.ok()) {
    return status;
  }
  for (const auto& generation : *generations) {
    generation->for_each([this](const Entry& entry) { index_.insert(&entry); });
  }
  visible_.store(next_sequence_ - 1, std::memory_order_release);
  publish(std::move(generations));
  return {};
}

}  // namespace spillway::spill
