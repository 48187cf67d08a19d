#include "spill/store/region/region_reads.h"

#include <utility>

namespace spillway::spill {

using rocksdb::FSReadRequest;
using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

Status check(const RegionLog* log, const ReadRequest& request) {
  if (log == nullptr) return no_such_generation(request.generation);
  const std::uint64_t end = log->bytes.load(std::memory_order_acquire);
  const bool inside = request.offset >= kLogHeaderBytes && request.offset <= end && request.from <= end &&
                      request.length <= end &&
                      request.offset + kFrameHeaderBytes + request.from + request.length <= end;
  return inside ? Status::OK() : damaged(*log, request.offset);
}

// Sets `asked` to the read of the file. False: the request has its result already.
bool ask(const RegionLog* log, ReadRequest* request, FSReadRequest* asked) {
  request->status = check(log, *request);
  if (!request->status.ok()) return false;
  request->bytes.resize(request->length);
  if (request->length == 0) return false;  // RocksDB's file system answers a read of nothing with an error
  asked->offset = request->offset + kFrameHeaderBytes + request->from;
  asked->len = request->length;
  asked->scratch = request->bytes.data();
  return true;
}

// Takes what the file answered.
void answer(const RegionLog& log, const IOStatus& status, const Slice& result, ReadRequest* request) {
  request->status = status;
  if (!status.ok()) return;
  if (result.data() != request->bytes.data()) request->bytes.replace(0, result.size(), result.data(), result.size());
  if (result.size() != request->length) request->status = damaged(log, request->offset);
}

}  // namespace

void read_one(const RegionLog* log, ReadRequest* request) {
  FSReadRequest asked;
  if (!ask(log, request, &asked)) return;
  std::uint64_t got = 0;
  const IOStatus status = read_at(*log->reader, {}, asked.offset, asked.len, asked.scratch, &got);
  answer(*log, status, {asked.scratch, got}, request);
}

void read_together(const RegionLog* log, std::span<ReadRequest> requests, std::span<const std::size_t> which) {
  std::vector<ReadRequest*> of;
  std::vector<FSReadRequest> reads;
  for (const std::size_t i : which) {
    FSReadRequest asked;
    if (!ask(log, &requests[i], &asked)) continue;
    of.push_back(&requests[i]);
    reads.push_back(std::move(asked));
  }
  if (reads.empty()) return;
  const IOStatus all = log->reader->MultiRead(reads.data(), reads.size(), {}, nullptr);
  for (std::size_t i = 0; i < reads.size(); ++i) answer(*log, all.ok() ? reads[i].status : all, reads[i].result, of[i]);
}

RegionReads::~RegionReads() {
  std::vector<void*> handles = handles_of_pending();
  if (!handles.empty()) files_.AbortIO(handles).PermitUncheckedError();
  for (Read& read : reads_) {
    if (read.handle != nullptr) read.delete_handle(read.handle);
  }
}

void RegionReads::begin(std::shared_ptr<const RegionLog> log, ReadRequest* request) {
  FSReadRequest asked;
  if (!ask(log.get(), request, &asked)) return;
  Read& read = reads_.emplace_back();
  read.log = std::move(log);
  read.request = request;
  const auto take = [](auto& done, void* of) {
    Read& taken = *static_cast<Read*>(of);
    taken.is_pending = false;
    answer(*taken.log, done.status, done.result, taken.request);
  };
  const IOStatus begun =
      read.log->reader->ReadAsync(asked, {}, take, &read, &read.handle, &read.delete_handle, nullptr);
  if (!begun.ok()) answer(*read.log, begun, {}, request);
  read.is_pending = begun.ok() && read.is_pending;
}

void RegionReads::wait() {
  std::vector<void*> handles = handles_of_pending();
  if (handles.empty()) return;
  const IOStatus polled = files_.Poll(handles, handles.size());
  for (Read& read : reads_) {
    if (read.is_pending) read.request->status = polled.ok() ? IOStatus::IOError("a read was lost") : polled;
    read.is_pending = false;
  }
}

std::vector<void*> RegionReads::handles_of_pending() const {
  std::vector<void*> handles;
  for (const Read& read : reads_) {
    if (read.is_pending) handles.push_back(read.handle);
  }
  return handles;
}

}  // namespace spillway::spill
