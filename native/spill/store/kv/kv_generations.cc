#include "spill/store/kv/kv_generations.h"

#include <algorithm>
#include <iterator>

#include "base/steps.h"
#include "spill/store/kv/generation_list.h"

namespace spillway::spill {

using device::KvIo;
using rocksdb::Status;

namespace {

constexpr Position kDropped{0, 0};
constexpr Position kBegun{0, 1};

}  // namespace

Status KvGenerations::recover() {
  std::vector<GenerationId> dropped;
  if (Status status = read_list(kDropped, &dropped); !status.ok()) return status;
  const GenerationId told = staging_.durable().dropped();  // by this host alone, for the drive was full
  if (!dropped.empty() || told > 0) {
    newest_ = dropped_ = std::max(told, dropped.empty() ? 0 : dropped.front());
    // Their space may not have been free yet when the last process ended.
    if (Status status = commands_.reset({{1, 0}, {dropped_ + 1, 0}}); !status.ok()) return status;
  }
  return read_list(kBegun, &begun_);
}

std::vector<GenerationId> KvGenerations::begun() const {
  std::vector<GenerationId> result;
  std::copy_if(begun_.begin(), begun_.end(), std::back_inserter(result),
               [this](GenerationId one) { return one > dropped_; });
  return result;
}

Status KvGenerations::begin(GenerationId generation) {
  if (generation <= newest_ || generation == ~GenerationId{0}) {
    return Status::InvalidArgument("generation " + std::to_string(generation) + " is not newer than " +
                                   std::to_string(newest_));
  }
  finish_announcement();
  std::erase(begun_, generation);  // that an earlier process has announced
  begun_.push_back(generation);
  Status status;
  if (announced_.generation != generation) status = write_list(kBegun, begun());
  if (status.ok()) {
    newest_ = generation;
  } else {
    begun_.pop_back();
  }
  steps::reached("spill.kv.begin.begun");
  return status;
}

void KvGenerations::announce(GenerationId next) {
  std::vector<GenerationId> ids = begun();
  ids.push_back(next);
  announced_.value = encode_generations(ids);
  if (announced_.value.size() > commands_.kv_namespace().info().vml_bytes) return;
  if (!announced_.queue) announced_.queue = commands_.kv_namespace().open_queue();
  KvIo io;
  io.op = ssd::Opcode::kv_store;
  io.cause = device::Cause::wal;
  io.key = {announced_.key.data(), announced_.key.size()};
  io.value = announced_.value;
  if (!announced_.queue->submit({&io, 1})) return;
  announced_.generation = next;
  count(kBegun, announced_.value.size());
}

void KvGenerations::finish_announcement() {
  if (!announced_.queue || announced_.queue->pending() == 0) return;
  if (!status_of(reap_all(*announced_.queue, 1).front(), "store").ok()) announced_.generation = 0;
}

void KvGenerations::prepare_drop(GenerationId generation) {
  if (write_list(kDropped, std::span(&generation, 1)).ok()) prepared_ = generation;
}

Status KvGenerations::drop_to(GenerationId generation) {
  Status status = prepared_ == generation ? Status() : write_list(kDropped, std::span(&generation, 1));
  if (status.IsNoSpace()) {
    staging_.durable().drop(generation);
    status = staging_.sync_head();
  }
  if (!status.ok()) return status;
  dropped_ = generation;
  std::erase_if(begun_, [&](GenerationId one) { return one <= generation; });
  steps::reached("spill.kv.drop.stored");
  return status;
}

Status KvGenerations::drop_empty(GenerationId generation) {
  std::erase(begun_, generation);
  finish_announcement();
  announced_.generation = 0;
  const Status status = write_list(kBegun, begun());
  return status.IsNoSpace() ? Status() : status;  // the next that begins is written without it
}

// --- The pairs

Status KvGenerations::read_list(Position where, std::vector<GenerationId>* ids) {
  std::string bytes;
  ids->clear();
  if (Status status = commands_.retrieve(where, commands_.kv_namespace().info().vml_bytes, &bytes); !status.ok()) {
    return status;
  }
  if (bytes.empty()) return {};
  count(where, bytes.size());
  return decode_generations(bytes, ids);
}

// Durable when it returns. REQUIRES: all numbers of that pair that are there were read or written before
Status KvGenerations::write_list(Position where, std::span<const GenerationId> ids) {
  const std::string value = encode_generations(ids);
  if (value.size() > commands_.kv_namespace().info().vml_bytes) {
    return Status::NoSpace("the spill store has too many generations");
  }
  if (Status status = commands_.store(where, value); !status.ok()) return status;
  count(where, value.size());
  return {};
}

// They are no records, and do not count as used.
void KvGenerations::count(Position where, std::uint64_t value_bytes) {
  bytes_of_pair_[where.offset] = value_bytes > 0 ? kPairOverheadBytes + value_bytes : 0;
}

}  // namespace spillway::spill
