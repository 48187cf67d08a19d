#include "spill/live/value_reader.h"

#include <utility>

#include "spill/store/checksum.h"

namespace spillway::spill {

using rocksdb::Status;

namespace {

void check(const Store& store, std::span<ReadRequest> requests) {
  for (ReadRequest& one : requests) {
    if (one.status.ok() && crc32c(one.bytes) != one.checksum) one.status = store.damaged(one.generation, one.offset);
  }
}

class CheckedReads final : public ReadsInFlight {
 public:
  CheckedReads(const Store& store, std::span<ReadRequest> requests, std::unique_ptr<ReadsInFlight> reads)
      : store_(store), requests_(requests), reads_(std::move(reads)) {}
  void wait() override {
    reads_->wait();
    check(store_, requests_);
  }

 private:
  const Store& store_;
  const std::span<ReadRequest> requests_;
  const std::unique_ptr<ReadsInFlight> reads_;
};

}  // namespace

Status ValueReader::may_read(const rocksdb::ReadOptions& options) const {
  if (options.read_tier == rocksdb::kBlockCacheTier) {
    return Status::Incomplete("the value is in the spill store, and reading was not allowed");
  }
  if (options.deadline.count() > 0 && clock_->NowMicros() >= static_cast<std::uint64_t>(options.deadline.count())) {
    return Status::TimedOut("the deadline has passed before a value of the spill store was read");
  }
  return Status::OK();
}

Status ValueReader::read(const Entry& entry, std::string* value) const {
  const GenerationId generation = entry.generation->id();
  const Location& place = entry.value;
  const Status status = store_->read(generation, place.offset, place.from, place.length, value);
  if (status.ok() && crc32c(*value) != entry.value_checksum) return store_->damaged(generation, place.offset);
  return status;
}

ReadRequest ValueReader::request(const Entry& entry) {
  ReadRequest request;
  ask(entry, &request);
  return request;
}

void ValueReader::ask(const Entry& entry, ReadRequest* request) {
  request->generation = entry.generation->id();
  request->offset = entry.value.offset;
  request->from = entry.value.from;
  request->length = entry.value.length;
  request->status = Status::OK();
  request->checksum = entry.value_checksum;
}

void ValueReader::read_many(std::span<ReadRequest> requests) const {
  store_->read_many(requests);
  check(*store_, requests);
}

std::unique_ptr<ReadsInFlight> ValueReader::begin_reads(std::span<ReadRequest> requests) const {
  if (auto reads = store_->begin_reads(requests)) {
    return std::make_unique<CheckedReads>(*store_, requests, std::move(reads));
  }
  check(*store_, requests);
  return nullptr;
}

}  // namespace spillway::spill
