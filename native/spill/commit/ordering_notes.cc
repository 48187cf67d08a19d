#include "spill/commit/ordering_notes.h"

#include <algorithm>

#include "spill/store/record.h"

namespace spillway::spill {

using rocksdb::Status;

Status OrderingNotes::append_durably() {
  const Status status = append(Covers::all);
  return status.ok() ? writer_.sync() : status;
}

Status OrderingNotes::append(Covers covers) {
  const Status status = try_append(covers);
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

Status OrderingNotes::try_append(Covers covers) {
  MainDb& main = context_.main;
  if (unsynced_main_sequence_ == 0 || context_.live.generations()->empty()) return {};
  if (writer_.has_failed()) return writer_.failure();
  if (covers == Covers::all && unsynced_main_sequence_ > main.durable_up_to()) {
    if (Status status = main.make_durable(); !status.ok()) return status;
  }
  const rocksdb::WriteBatch nothing;
  const std::uint64_t durable = main.durable_up_to();
  const bool covers_all = covers == Covers::all || unsynced_main_sequence_ <= durable;
  std::string note = encode(RecordHeader{writer_.next_sequence(), durable, durable, /*sync=*/covers_all});
  note.append(nothing.Data());
  const rocksdb::Slice record(note);
  std::uint64_t offset = 0;
  const Status status = writer_.append({&record, 1}, {&offset, 1});
  if (status.ok() && covers_all) unsynced_main_sequence_ = 0;
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

// What a flush takes out of RocksDB's log is durable by now. Diverted writes that follow later ones have those in the
// log, and a later flush takes them out. Otherwise RocksDB's log is synced first, while commits continue.
Status OrderingNotes::add_concurrently(bool in_flush) {
  Status status;
  for (bool is_last = in_flush;; is_last = true) {
    bool is_noted = false;
    const bool was_run = queue_.run_alone_unless_held([&]() REQUIRES(in_commit_queue) {
      if (!is_last && unsynced_main_sequence_ > context_.main.durable_up_to()) return;
      status = append(Covers::durable);
      is_noted = true;
    });
    if (!was_run) return {};  // the queue's holder has added the note, and nothing was diverted since (hold_commits)
    if (is_noted) return status.ok() ? writer_.sync_concurrently(in_flush) : status;
    if (status = context_.main.make_durable(); !status.ok()) break;
  }
  if (context_.live.has_any()) owe();
  return status;
}

}  // namespace spillway::spill
