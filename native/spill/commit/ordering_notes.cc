#include "spill/commit/ordering_notes.h"

#include <algorithm>

#include "spill/store/record.h"

namespace spillway::spill {

using rocksdb::Status;

Status OrderingNotes::append_durably() {
  const Status status = append();
  return status.ok() ? writer_.sync() : status;
}

Status OrderingNotes::append() {
  const Status status = try_append();
  status.ok() ? end_owing() : owe();
  return status;
}

// While a note is owed, compactions are held: RocksDB's tables keep their sequence numbers, which say how far RocksDB
// has got. When the spill store is empty, the note is not needed.
void OrderingNotes::owe() {
  context_.main.hold_compactions(MainOrder::Until::note_taken);
  is_owed_.store(true, std::memory_order_release);
}

void OrderingNotes::end_owing() {
  is_owed_.store(false, std::memory_order_release);
  context_.main.order().let_compactions_run(MainOrder::Until::note_taken);
}

Status OrderingNotes::try_append() {
  MainDb& main = context_.main;
  if (unsynced_main_sequence_ == 0 || context_.live.generations()->empty()) return {};
  if (writer_.has_failed()) return writer_.failure();
  if (unsynced_main_sequence_ > main.durable_up_to()) {
    if (Status status = main.make_durable(); !status.ok()) return status;
  }
  const rocksdb::WriteBatch nothing;
  const std::uint64_t durable = main.durable_up_to();
  std::string note = encode(RecordHeader{writer_.next_sequence(), durable, durable, true});
  note.append(nothing.Data());
  const rocksdb::Slice record(note);
  std::uint64_t offset = 0;
  const Status status = writer_.append({&record, 1}, {&offset, 1});
  if (status.ok()) unsynced_main_sequence_ = 0;
  return status.IsBusy() ? Status::NoSpace("the spill store has no room for a note") : status;
}

void OrderingNotes::on_commit(bool sync, std::uint64_t main_sequence) {
  unsynced_main_sequence_ = sync ? 0 : std::max(unsynced_main_sequence_, main_sequence);
}

// What is to be made durable while commits wait is little after the first two lines: what came during the second sync.
void OrderingNotes::hold_commits(const std::function<void()>& held) {
  add_concurrently(/*in_flush=*/false).PermitUncheckedError();
  writer_.sync_concurrently().PermitUncheckedError();
  const auto prepare = [&]() REQUIRES(in_commit_queue) {
    if (!append_durably().ok()) writer_.sync().PermitUncheckedError();  // a failed store takes no note
  };
  queue_.run_held(prepare, held);
}

// A flush removes writes from RocksDB's log, and with them the marks that order them after diverted writes.
void OrderingNotes::before_flush() {
  if (!context_.main.make_durable().ok()) {  // later writes report other failures
    if (context_.live.has_any()) owe();
    (void)writer_.sync_concurrently(/*in_flush=*/true);  // makes durable what the removed marks name
    return;
  }
  if (!add_concurrently(/*in_flush=*/true).ok()) (void)writer_.sync_concurrently(/*in_flush=*/true);
}

// If diverted writes follow unsynced writes to RocksDB, the note leaves the queue, syncs RocksDB's log and retries.
// Only the last try syncs that log while commits wait.
Status OrderingNotes::add_concurrently(bool in_flush) {
  constexpr int kTries = 3;
  Status status;
  for (int tries = 1; status.ok(); ++tries) {
    bool is_noted = false;
    const bool was_run = queue_.run_alone_unless_held([&]() REQUIRES(in_commit_queue) {
      if (tries < kTries && unsynced_main_sequence_ > context_.main.durable_up_to()) return;
      status = append();
      is_noted = true;
    });
    if (!was_run) return {};  // the queue's holder has added the note, and nothing was diverted since (hold_commits)
    if (is_noted) return status.ok() ? writer_.sync_concurrently(in_flush) : status;
    status = context_.main.make_durable();
  }
  if (context_.live.has_any()) owe();
  return status;
}

}  // namespace spillway::spill
