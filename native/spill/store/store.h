// Where diverted writes lie until a rollback brings them back: files on an ordinary drive (region/region_store.h), or
// a drive's key-value namespace (kv/kv_store.h).
//
// A store keeps *records* in *generations*. A record is the bytes of one atomic write. The store gives it an offset,
// which grows within a generation. The newest generation is appended to; older ones do not change until they are
// dropped, oldest first. A record is recovered whole or not at all, and never without those before it.
//
// One thread at a time calls append, begin and drop. Any number of threads call sync, read, scan and used_bytes.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spillway::spill {

using GenerationId = std::uint64_t;  // grows; no number is used twice while files or pairs of its first use exist

struct StoredRecord {
  GenerationId generation = 0;
  std::uint64_t offset = 0;  // as append gave it
  rocksdb::Slice bytes;      // until the callback returns
};

// One of many reads that go out together.
struct ReadRequest {
  GenerationId generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t from = 0;
  std::uint64_t length = 0;
  std::string bytes;           // the answer,
  rocksdb::Status status;      // if this is OK
  std::uint32_t checksum = 0;  // crc32c of what the answer has to be; for the caller, no store looks at it
};

// Reads in flight. Its destructor does not wait: requests that were not waited for have no answer then.
class ReadsInFlight {
 public:
  virtual ~ReadsInFlight() = default;
  // Returns when every request has its answer. Called once, by any thread.
  virtual void wait() = 0;
};

class Store {
 public:
  using Each = std::function<rocksdb::Status(const StoredRecord&)>;

  virtual ~Store() = default;

  // Calls `each` for every record of every generation that was not dropped, oldest first. Ends at the first record that
  // is not whole: no record after it is passed on, of that generation or a later one. Corruption if that record is
  // known to have been durable, so that a loss of power does not explain it. The records are durable when this returns.
  // An error of `each` ends it and is returned. Called once, before anything else.
  virtual rocksdb::Status recover(const Each& each) = 0;
  // Removes, durably, the record at `offset` of `generation` and everything after it, later generations included.
  // `generation` itself stays, though it may be empty. An offset behind its last whole record removes only what follows
  // that record. The DB calls this once after every recovery that found a generation, with the last record that it
  // keeps, so that bytes behind an incomplete record never come back. Called between recover and begin.
  virtual rocksdb::Status cut(GenerationId generation, std::uint64_t offset) = 0;

  // Appends go to this generation from now on. Its beginning is durable when this returns, so that generations()
  // distinguishes a dropped generation from one of which nothing was synced. After a failed append or sync, this also
  // makes durable what was appended before.
  virtual rocksdb::Status begin(GenerationId generation) = 0;
  // Nothing is appended any more before the next begin(). A store may do ahead what that one does with what came
  // before, as long as it does not wait for the drive. By the appending thread.
  virtual void end() {}
  // Appends the records in this order, all or none, and sets `offsets`. They survive a killed process. A loss of power
  // leaves a prefix of them, which contains everything that was appended before the last sync().
  // NoSpace: used_bytes() would exceed capacity_bytes(), or the drive is full; nothing was appended.
  // IOError: nothing was appended, or that is unknown; or an earlier record did not reach the drive. Every later append
  // and sync fails too, until the next begin(). Records that were appended can still be read.
  virtual rocksdb::Status append(std::span<const rocksdb::Slice> records, std::span<std::uint64_t> offsets) = 0;
  // How long begin() and append() have waited for the drive since the store was opened: for room in a buffer, for a
  // sync that is behind, in pauses, and for the drive's own answer where it is almost full.
  virtual std::chrono::nanoseconds append_wait() const { return {}; }
  // Most bytes of an append() that waits for no longer than a pause.
  virtual std::uint64_t most_group_bytes() const { return ~std::uint64_t{0}; }
  // The records of the next append() have been paced for so long already, which a pause of its own may count.
  virtual void note_paced(std::chrono::nanoseconds /*paced*/) {}
  // Everything that was appended before the call, to any generation, is durable when it returns. Appends may continue
  // meanwhile.
  virtual rocksdb::Status sync() = 0;
  // Submits records that the store holds back to write them together with later ones. Called by any thread.
  virtual void hand_on() {}
  // Generations that were begun and not dropped, oldest first. After another process they may include one that it was
  // about to begin. Called after recover.
  virtual std::vector<GenerationId> generations() const = 0;
  // No generation with a number up to this can be begun. Called after recover.
  virtual GenerationId newest_known() const { return 0; }

  // `length` bytes from byte `from` of the record at `offset`. Corruption if they do not exist. The store does not
  // verify its checksum here: readers of parts of a record have their own checksums (live/value_reader.h).
  virtual rocksdb::Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
                               std::string* bytes) const = 0;
  // The same for many at once, which a drive serves concurrently. Each request has its own status.
  virtual void read_many(std::span<ReadRequest> requests) const {
    for (ReadRequest& one : requests) one.status = read(one.generation, one.offset, one.from, one.length, &one.bytes);
  }
  // The same without waiting. Null: the requests are answered already, as by a store that reads synchronously.
  // REQUIRES: `requests` are not touched until wait() returns or the result is destroyed, and the store outlives the
  // result.
  virtual std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const {
    read_many(requests);
    return nullptr;
  }
  // A Corruption that names the place of the record on the drive.
  virtual rocksdb::Status damaged(GenerationId generation, std::uint64_t offset) const {
    return rocksdb::Status::Corruption("the spill store's generation " + std::to_string(generation) +
                                       " is damaged at byte " + std::to_string(offset));
  }
  // Calls `each` for every record of one generation in order, read in pieces of 512 KiB (K8). Corruption at the first
  // record that is not as it was appended.
  virtual rocksdb::Status scan(GenerationId generation, const Each& each) const = 0;

  // Makes everything durable, and that the store was closed: recover() of the next process then takes nothing that is
  // missing or incomplete for torn by a loss of power. Only release() and reads may follow.
  virtual rocksdb::Status close() { return sync(); }

  // Gives up the exclusive use of what the store lies in. Called after close() and the last write_binding(); then only
  // release() may follow, and frees nothing: the next opening frees what was dropped.
  virtual void unlock() {}

  // Does ahead what drop() would wait for the drive for, where it can: recover() need not pass on this generation from
  // now on. All else is as before. Errors are left to drop(). By any thread, one at a time, beside appends. REQUIRES:
  // it is the oldest that is not dropped, and takes no more records
  virtual void prepare_drop(GenerationId /*generation*/) {}
  // The reset of K8: durable when this returns, recover() never passes on this generation again. It can be read until
  // release(). REQUIRES: it is the oldest that is not dropped, or nothing is in it.
  virtual rocksdb::Status drop(GenerationId generation) = 0;
  // Frees its bytes on the drive. REQUIRES: it was dropped, and no thread reads it.
  virtual void release(GenerationId generation) = 0;

  // The binding record (binding_record.h), which belongs to no generation: what was written last, or nothing. A crash
  // leaves the old one or the new one whole; the new one is durable when write_binding returns OK. Both may be called
  // at any time, also before recover; one thread at a time writes.
  virtual rocksdb::Status read_binding(std::string* bytes) const = 0;
  virtual rocksdb::Status write_binding(const std::string& bytes) = 0;
  // Its place on the drive, for a message that it is damaged.
  virtual std::string binding_place() const { return "byte 0 of what the store gave"; }

  // Bytes of all generations with their framing, dropped ones until they are released.
  virtual std::uint64_t used_bytes() const = 0;
  // The part of them in generations that were dropped and not yet released.
  virtual std::uint64_t held_bytes() const { return 0; }
  virtual std::uint64_t capacity_bytes() const = 0;
};

}  // namespace spillway::spill
