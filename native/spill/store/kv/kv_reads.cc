#include "spill/store/kv/kv_reads.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using rocksdb::Status;

KvReads::KvReads(const KvCommands& commands, const KvAppendWindow& window, std::uint32_t pair_bytes,
                 std::span<ReadRequest> requests)
    : lease_(commands), requests_(requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) plan(window, pair_bytes, i);
  const std::vector<PositionBytes>& keys = lease_.keys();
  std::vector<KvIo> ios(pairs_.size());
  for (std::size_t i = 0; i < ios.size(); ++i) {
    ios[i].tag = i;
    ios[i].op = ssd::Opcode::kv_retrieve;
    ios[i].buffer_bytes = pairs_[i].end;
    ios[i].key = {keys[i].data(), keys[i].size()};
  }
  if (const auto status = lease_.queue().submit(ios); !status) {
    for (const PairRead& one : pairs_) requests[one.request].status = Status::IOError(status.message());
    pairs_.clear();
  }
}

void KvReads::wait() {
  const std::vector<KvDone> done = reap_all(lease_.queue(), pairs_.size());
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    ReadRequest& request = requests_[pairs_[i].request];
    if (!request.status.ok()) continue;
    request.status = status_of(done[i], "retrieve");
    if (request.status.ok()) take(request, pairs_[i], done[i].bytes);
  }
}

// Answers what is in memory, and adds what is to be read for the rest.
void KvReads::plan(const KvAppendWindow& window, std::uint32_t pair_bytes, std::size_t index) {
  ReadRequest& request = requests_[index];
  request.bytes.assign(request.length, '\0');
  request.status = {};
  const std::uint64_t first = request.offset / pair_bytes * pair_bytes;
  const std::uint64_t header = request.offset - first;
  const std::uint64_t begin = header + sizeof(RecordFrame) + request.from;
  const std::uint64_t end = begin + request.length;
  std::string staged;
  for (std::uint64_t at = begin / pair_bytes * pair_bytes; at < end; at += pair_bytes) {
    PairRead one;
    one.request = index;
    one.into = std::max(begin, at) - begin;
    one.begin = static_cast<std::uint32_t>(std::max(begin, at) - at);
    one.end = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - at, pair_bytes));
    if (at == 0) one.header = static_cast<std::uint32_t>(header);
    const Position position{request.generation, offset_of_pair(first, at / pair_bytes, pair_bytes)};
    if (window.read(position, one.end, &staged)) {
      take(request, one, staged);
    } else {
      lease_.keys().push_back(bytes_of(position));
      pairs_.push_back(one);
    }
  }
}

// What a pair has of a record: its bytes up to where they are wanted.
void KvReads::take(ReadRequest& request, const PairRead& one, std::string_view bytes) {
  if (!request.status.ok()) return;
  std::uint64_t length = request.from + request.length;
  if (one.header != PairRead::kNone && bytes.size() >= one.header + sizeof(RecordFrame)) {
    RecordFrame frame;
    std::memcpy(&frame, bytes.data() + one.header, sizeof frame);
    length = frame.length;
  }
  if (bytes.size() < one.end || length < request.from + request.length) {
    request.status = damaged_at({request.generation, request.offset});
    return;
  }
  if (one.end == one.begin) return;
  std::memcpy(request.bytes.data() + one.into, bytes.data() + one.begin, one.end - one.begin);
}

}  // namespace spillway::spill
