// Where diverted writes lie until they are brought back: a software region on an ordinary drive (region_store.h), or
// the key-value namespace of one (kv_store.h).
//
// It keeps *records* in *generations*. A record is the bytes of one atomic write; the store gives it an offset, which
// grows within a generation. The newest generation is appended to; the others are as they are until they are dropped,
// oldest first. A record is there whole or not at all, and never without those before it.
//
// append, begin and drop are called by one thread at a time; sync, read, scan and used_bytes by many, at any time.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spillway::spill {

using GenerationId = std::uint64_t;  // grows; never given twice while files or pairs of the first are there

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

// Reads on their way. What has not been waited for when this goes is left to the drive, its requests without an answer.
class ReadsInFlight {
 public:
  virtual ~ReadsInFlight() = default;
  // Returns when each request has its answer. To be called once, by any thread.
  virtual void wait() = 0;
};

class Store {
 public:
  using Each = std::function<rocksdb::Status(const StoredRecord&)>;

  virtual ~Store() = default;

  // Every record of every generation that was not dropped, oldest first. Ends at the first that is not whole: nothing
  // after it, of that generation or a later one, is handed over. Corruption where that one is known to have been
  // durable, so that no loss of power explains it. All of them are durable when this returns. An error of `each` ends
  // it and is returned. To be called once, before anything else.
  virtual rocksdb::Status recover(const Each& each) = 0;
  // Forgets, durably, the record at `offset` of `generation` and everything after it, later generations included;
  // `generation` itself stays, if only empty. An offset beyond its last whole record keeps all of them and forgets what
  // lies behind. The DB calls this once after every recovery that found a generation, with the last one it keeps, so
  // that what lay behind a record that was not whole never comes back. Between recover and begin.
  virtual rocksdb::Status cut(GenerationId generation, std::uint64_t offset) = 0;

  // From now on appends go to this generation. That it was begun is durable when this returns, so that generations()
  // tells one that was dropped from one of which nothing was synced. After a failure so is all that was taken before.
  virtual rocksdb::Status begin(GenerationId generation) = 0;
  // Takes the records in this order, all or none, and says in `offsets` where. They survive a killed process; after a
  // loss of power there is a prefix of them, and what was there before the last sync() is in it.
  // NoSpace: used_bytes() would pass capacity_bytes(), or the drive is full; nothing was taken.
  // IOError: nothing was taken, or it is not known; or something that was taken before did not reach the drive. Then
  // every later append and sync fails too, until a new begin(). What was taken can be read all the same.
  virtual rocksdb::Status append(std::span<const rocksdb::Slice> records, std::span<std::uint64_t> offsets) = 0;
  // What was taken before this was called, of any generation, is durable when it returns; appends go on meanwhile.
  virtual rocksdb::Status sync() = 0;
  // What a store holds back so that it may go to the drive together with more sets out now. By any thread.
  virtual void hand_on() {}
  // Those that were begun and not dropped, oldest first; of what an earlier process left perhaps also the one that
  // would have been next. After recover.
  virtual std::vector<GenerationId> generations() const = 0;
  // No generation of a number up to this can be begun. After recover.
  virtual GenerationId newest_known() const { return 0; }

  // `length` bytes from byte `from` of the record at `offset`. Corruption where they are not there. They are as the
  // drive has them: who reads a part of a record holds it against a checksum of its own (value_reader.h).
  virtual rocksdb::Status read(GenerationId generation, std::uint64_t offset, std::uint64_t from, std::uint64_t length,
                               std::string* bytes) const = 0;
  // The same for many at once, which a drive serves side by side. Each request has its own status.
  virtual void read_many(std::span<ReadRequest> requests) const {
    for (ReadRequest& one : requests) one.status = read(one.generation, one.offset, one.from, one.length, &one.bytes);
  }
  // The same, and the caller goes on meanwhile; null where the answers are there already, as in a store that cannot do
  // without the caller. REQUIRES: `requests` are not touched until wait() returns or the result is gone, which is
  // before the store is.
  virtual std::unique_ptr<ReadsInFlight> begin_reads(std::span<ReadRequest> requests) const {
    read_many(requests);
    return nullptr;
  }
  // Says that what lies there is not what was appended, by the name of its place on the drive.
  virtual rocksdb::Status damaged(GenerationId generation, std::uint64_t offset) const {
    return rocksdb::Status::Corruption("the spill store's generation " + std::to_string(generation) +
                                       " is damaged at byte " + std::to_string(offset));
  }
  // Every record of one generation in order, read in pieces of 512 KiB (K8). Corruption at the first that is not as it
  // was appended.
  virtual rocksdb::Status scan(GenerationId generation, const Each& each) const = 0;

  // What was taken is durable when it returns, and so is that this was its end: recover() of the next process takes
  // nothing that is missing or not whole for torn by a loss of power. Nothing but release() and reads may follow.
  virtual rocksdb::Status close() { return sync(); }

  // The reset of K8: recover() never returns this generation again, durably, when this returns. It can be read until
  // release(). REQUIRES: it is the oldest that is not dropped, or nothing is in it.
  virtual rocksdb::Status drop(GenerationId generation) = 0;
  // Its space is free. REQUIRES: dropped, and nobody reads it.
  virtual void release(GenerationId generation) = 0;

  // The binding record (binding_record.h), which is no record of a generation: what was written last, or nothing. A
  // crash leaves the old one or the new one whole; the new one is durable when write_binding returns OK. Beside
  // anything else, recover included; written by one thread at a time.
  virtual rocksdb::Status read_binding(std::string* bytes) const = 0;
  virtual rocksdb::Status write_binding(const std::string& bytes) = 0;
  // Where it lies, for whoever is told that it is damaged.
  virtual std::string binding_place() const { return "byte 0 of what the store gave"; }

  virtual std::uint64_t used_bytes()
      const = 0;  // what it holds, framing included, dropped ones until they are released
  virtual std::uint64_t held_bytes() const { return 0; }  // of those: dropped, and not yet released
  virtual std::uint64_t capacity_bytes() const = 0;
};

}  // namespace spillway::spill
