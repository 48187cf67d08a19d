#include "spill/kv_append_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using device::KvView;
using rocksdb::Slice;
using rocksdb::Status;

// What one append has in memory. Commands point into it, so it stays where it is.
struct KvAppendWindow::Append {
  struct Record {
    std::uint64_t offset = 0;
    std::string bytes;  // the header before them
  };
  GenerationId generation = 0;
  std::vector<Record> records;
  std::uint64_t stored_bytes = 0;
  std::vector<PositionBytes> keys;
  std::vector<KvView> pairs;
  std::vector<std::size_t> commands;  // where in the pairs each ends
  std::size_t unanswered = 0;         // commands
  bool failed = false;

  void add(std::uint64_t offset, const Slice& record);
  void make_pairs(std::uint32_t piece_bytes, std::uint64_t most_bytes);
};

void KvAppendWindow::Append::add(std::uint64_t offset, const Slice& record) {
  const RecordLength length = record.size();
  Record& framed = records.emplace_back();
  framed.offset = offset;
  framed.bytes.reserve(sizeof(length) + length);
  framed.bytes.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(record.data(), record.size());
}

// One command takes as many pairs as the drive's memtable does.
void KvAppendWindow::Append::make_pairs(std::uint32_t piece_bytes, std::uint64_t most_bytes) {
  for (const Record& record : records) {
    stored_bytes += spill::stored_bytes(record.bytes.size() - sizeof(RecordLength), piece_bytes);
    for (std::uint64_t at = 0; at < record.bytes.size(); at += piece_bytes) {
      keys.push_back(bytes_of({generation, record.offset + at}));
      pairs.push_back({{}, std::string_view(record.bytes).substr(at, piece_bytes)});
    }
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].key = {keys[i].data(), keys[i].size()};
    const std::uint64_t pair_bytes = ssd::kPairHeaderBytes + pairs[i].key.size() + pairs[i].value.size();
    if (bytes > 0 && bytes + pair_bytes > most_bytes) {
      commands.push_back(i);
      bytes = 0;
    }
    bytes += pair_bytes;
  }
  commands.push_back(pairs.size());
}

KvAppendWindow::KvAppendWindow(device::KvNamespace& space, std::uint32_t piece_bytes)
    : space_(space), piece_bytes_(piece_bytes), queue_(space.open_queue()) {}

Status KvAppendWindow::submit(Append& append, std::uint64_t tag) {
  std::vector<KvIo> ios;
  std::size_t begin = 0;
  for (const std::size_t end : append.commands) {
    KvIo& io = ios.emplace_back();
    io.tag = tag;
    io.op = ssd::Opcode::kv_batch_store;
    io.cause = device::Cause::wal;
    io.pairs = std::span(append.pairs).subspan(begin, end - begin);
    begin = end;
  }
  if (const auto status = queue_->submit(ios); !status) return Status::IOError(status.message());
  append.unanswered = ios.size();
  return {};
}

Status KvAppendWindow::hand_over(GenerationId generation, std::span<const Slice> records,
                                 std::span<const std::uint64_t> offsets) {
  auto append = std::make_shared<Append>();
  append->generation = generation;
  append->records.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) append->add(offsets[i], records[i]);
  append->make_pairs(piece_bytes_, space_.info().batch_bytes);

  const std::lock_guard lock(mutex_);
  if (queue_->pending() > 0) reap(0);
  while (failure_.ok() && queue_->pending() > 0 && bytes() + append->stored_bytes > kWindowBytes) reap(1);
  if (!failure_.ok()) return failure_;
  if (Status status = submit(*append, first_ + appends_.size()); !status.ok()) return status;
  bytes_.fetch_add(append->stored_bytes, std::memory_order_acq_rel);
  const std::unique_lock appends_lock(appends_mutex_);
  appends_.push_back(std::move(append));
  return {};
}

// REQUIRES: mutex_ is held, and something is pending
void KvAppendWindow::reap(std::size_t at_least) {
  reaped_.resize(queue_->pending());
  const std::size_t count = queue_->reap(reaped_, at_least);
  for (std::size_t i = 0; i < count; ++i) {
    Append& append = *appends_[reaped_[i].tag - first_];
    --append.unanswered;
    Status status = status_of(reaped_[i], "batch store");
    if (status.ok()) continue;
    append.failed = true;
    if (failure_.ok()) failure_ = std::move(status);
  }
  let_go_of_done();
}

// In order: of what fails nothing behind it is let go either.
void KvAppendWindow::let_go_of_done() {
  while (!appends_.empty() && appends_.front()->unanswered == 0 && !appends_.front()->failed) pop_front();
}

// The drive counts it from before that on, so that nobody sees less used than is.
void KvAppendWindow::pop_front() {
  bytes_.fetch_sub(appends_.front()->stored_bytes, std::memory_order_acq_rel);
  const std::unique_lock lock(appends_mutex_);
  appends_.pop_front();
  ++first_;
}

Status KvAppendWindow::wait() {
  const std::lock_guard lock(mutex_);
  while (queue_->pending() > 0) reap(queue_->pending());
  return failure_;
}

Status KvAppendWindow::store_again() {
  const std::lock_guard lock(mutex_);
  failure_ = {};
  for (std::size_t i = 0; i < appends_.size() && failure_.ok(); ++i) {
    appends_[i]->failed = true;  // until it is stored
    failure_ = submit(*appends_[i], first_ + i);
    if (failure_.ok()) appends_[i]->failed = false;
  }
  while (queue_->pending() > 0) reap(queue_->pending());
  return failure_;
}

void KvAppendWindow::give_up() {
  const std::lock_guard lock(mutex_);
  while (!appends_.empty()) pop_front();
  failure_ = {};
}

std::shared_ptr<const KvAppendWindow::Append> KvAppendWindow::find(GenerationId generation,
                                                                   std::uint64_t offset) const {
  const std::shared_lock lock(appends_mutex_);
  const auto behind = std::upper_bound(appends_.begin(), appends_.end(), std::pair(generation, offset),
                                       [](const auto& wanted, const std::shared_ptr<Append>& one) {
                                         return wanted < std::pair(one->generation, one->records.front().offset);
                                       });
  return behind == appends_.begin() ? nullptr : *std::prev(behind);
}

bool KvAppendWindow::read(ReadRequest& request) const {
  if (bytes() == 0) return false;
  const auto append = find(request.generation, request.offset);
  if (append == nullptr || append->generation != request.generation) return false;
  const auto record =
      std::lower_bound(append->records.begin(), append->records.end(), request.offset,
                       [](const Append::Record& one, std::uint64_t offset) { return one.offset < offset; });
  if (record == append->records.end() || record->offset != request.offset) return false;
  const std::uint64_t has = record->bytes.size() - sizeof(RecordLength);
  if (request.from > has || request.length > has - request.from) {
    request.status = Status::Corruption("the spill store's record is shorter than what is read of it");
  } else {
    request.status = {};
    request.bytes.assign(record->bytes, sizeof(RecordLength) + request.from, request.length);
  }
  return true;
}

}  // namespace spillway::spill
