#include "spill/store/kv/kv_reads.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace spillway::spill {

using device::KvDone;
using device::KvIo;
using device::KvNamespace;
using device::KvViewPart;
using rocksdb::Status;

namespace {

// Most keys in a batch retrieve: few, because flash reads nothing until the core has done with the whole command.
// Source: bench/spill_scan.
constexpr std::size_t kKeysACommand = 16;

std::size_t keys_a_command(const KvNamespace::Info& info) {
  return std::min<std::size_t>(info.batch_retrieve_keys, kKeysACommand);
}

}  // namespace

KvReads::KvReads(const KvCommands& commands, const KvAppendWindow& window, std::uint32_t pair_bytes,
                 std::span<ReadRequest> requests)
    : lease_(commands),
      has_offset_(commands.kv_namespace().info().retrieve_offset),
      keys_a_command_(keys_a_command(commands.kv_namespace().info())),
      requests_(requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) plan(window, pair_bytes, i);
  const Status status = keys_a_command_ > 0 && pairs_.size() > 1 ? submit_batches() : submit_each();
  if (status.ok()) return;
  for (const PairRead& one : pairs_) requests_[one.request].status = status;
  pairs_.clear();
  commands_.clear();
}

Status KvReads::submit_each() {
  std::vector<KvIo> ios(pairs_.size());
  for (std::size_t i = 0; i < ios.size(); ++i) {
    const PositionBytes& key = lease_.keys()[i];
    ios[i].tag = i;
    ios[i].op = ssd::Opcode::kv_retrieve;
    ios[i].offset_bytes = pairs_[i].from;
    ios[i].buffer_bytes = pairs_[i].end - pairs_[i].from;
    ios[i].key = {key.data(), key.size()};
  }
  const auto status = lease_.queue().submit(ios);
  return status ? Status() : Status::IOError(status.message());
}

Status KvReads::submit_batches() {
  std::vector<KvViewPart>& parts = lease_.parts();
  std::uint64_t bytes = 0;  // of the last command's answer
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const PairRead& one = pairs_[i];
    const PositionBytes& key = lease_.keys()[i];
    parts.push_back({{key.data(), key.size()}, one.from, one.end - one.from});
    const std::uint64_t more = std::uint64_t{ssd::kPartHeaderBytes} + parts.back().buffer_bytes;
    if (commands_.empty() || i - commands_.back() == keys_a_command_ || bytes + more > ssd::kScanChunkBytes) {
      commands_.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  std::vector<KvIo> ios(commands_.size());
  for (std::size_t i = 0; i < ios.size(); ++i) {
    const std::size_t end = i + 1 < commands_.size() ? commands_[i + 1] : pairs_.size();
    ios[i].tag = i;
    ios[i].op = ssd::Opcode::kv_batch_retrieve;
    ios[i].parts = std::span(parts).subspan(commands_[i], end - commands_[i]);
  }
  const auto status = lease_.queue().submit(ios);
  return status ? Status() : Status::IOError(status.message());
}

void KvReads::wait() {
  if (!commands_.empty()) {
    wait_for_batches();
    return;
  }
  const std::vector<KvDone> done = reap_all(lease_.queue(), pairs_.size());
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Status& status = requests_[pairs_[i].request].status;
    if (status.ok()) status = status_of(done[i], "retrieve");
    if (status.ok()) take(pairs_[i], done[i].bytes);
  }
}

void KvReads::wait_for_batches() {
  std::vector<KvDone> done = reap_all(lease_.queue(), commands_.size());
  for (std::size_t command = 0, i = 0; i < pairs_.size(); ++i) {
    if (command + 1 < commands_.size() && commands_[command + 1] == i) ++command;
    KvDone answer{.outcome = done[command].outcome, .fault = done[command].fault, .bytes = {}, .found = {}};
    const std::size_t place = i - commands_[command];
    const bool is_answered = place < done[command].found.size();
    if (is_answered) answer.outcome = done[command].found[place].outcome;
    Status& status = requests_[pairs_[i].request].status;
    if (status.ok()) status = status_of(answer, "batch retrieve");
    if (status.ok()) take(pairs_[i], is_answered ? std::string_view(done[command].found[place].bytes) : "");
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
      take(one, staged);
      continue;
    }
    if (has_offset_) one.from = std::min(one.begin, one.header);
    lease_.keys().push_back(bytes_of(position));
    pairs_.push_back(one);
  }
}

// What a pair has of a record: `bytes` are those of the pair from where the read begins.
void KvReads::take(const PairRead& one, std::string_view bytes) {
  ReadRequest& request = requests_[one.request];
  if (!request.status.ok()) return;
  std::uint64_t length = request.from + request.length;
  if (one.header != PairRead::kNone && one.from + bytes.size() >= one.header + sizeof(RecordFrame)) {
    RecordFrame frame;
    std::memcpy(&frame, bytes.data() + (one.header - one.from), sizeof frame);
    length = frame.length;
  }
  if (one.from + bytes.size() < one.end || length < request.from + request.length) {
    request.status = damaged_at({request.generation, request.offset});
    return;
  }
  if (one.end == one.begin) return;
  std::memcpy(request.bytes.data() + one.into, bytes.data() + (one.begin - one.from), one.end - one.begin);
}

}  // namespace spillway::spill
