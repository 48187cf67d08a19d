// What ties a spill store to its database: one name in RocksDB's MANIFEST, one record in the spill store.
//
// The *guard* is an empty column family that exists while writes may lie in the spill store. RocksDB opens a database
// for writing only if every column family is named, so a program that does not know the guard is refused. Its name says
// which spill store belongs to the database, and which *opening* of the two was the last. The spill store keeps the
// same in its *binding record*. Every opening has a number, one more than the last, and a nonce, so that two copies of
// a database that were opened apart do not pass for each other.
//
// An opening writes the record with a pending opening, creates the guard of that opening, drops the guard of the last
// one, and confirms. So after a crash at any point the newest guard is that of the confirmed or of the pending opening.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spillway::spill {

struct Opening {
  std::uint64_t number = 0;  // 0: none
  std::uint64_t nonce = 0;
  friend bool operator==(const Opening&, const Opening&) = default;
};

struct Guard {
  std::string id;  // of the pair of database and spill store: 32 hexadecimal digits
  Opening opening;
  std::string location;  // of the spill store, for messages
};

// Names that no column family of a user's may have.
bool is_guard(std::string_view family);
std::string name_of(const Guard& guard);
// Nothing if `family` is no guard that this version can read.
std::optional<Guard> parse_guard(std::string_view family);
// That of the last opening among the families of a MANIFEST.
std::optional<Guard> newest_guard(const std::vector<std::string>& families);

struct BindingRecord {
  std::string id;
  Opening confirmed;
  Opening pending;
  bool is_released = false;  // closed with nothing spilled: any database may take the spill store
  std::string identity;      // RocksDB's, of the database
  std::string database;      // its path
};
std::string encode(const BindingRecord& record);
// Nothing if the bytes are not those of a record that this version can read.
std::optional<BindingRecord> decode_binding(const rocksdb::Slice& bytes);
// Whether the bytes are an undamaged record of another version: its first line, and the checksum in its last, have the
// same form in every version.
bool is_binding_of_another_version(const rocksdb::Slice& bytes);
// The same of bytes that may be damaged.
bool names_another_version(const rocksdb::Slice& bytes);

// In the directory of a spill store of files.
inline constexpr char kBindingFile[] = "BINDING";
// A guard's location where the store is none of files.
inline constexpr char kOwnStore[] = "a store of the program's own";

// What is known of a database and a spill store before they are opened together.
struct Pairing {
  std::string database;                 // path
  std::string identity;                 // empty: a database that is yet to be made
  std::string location;                 // of the spill store, as guards have it
  std::optional<Guard> guard;           // the newest
  std::optional<BindingRecord> record;  // of the spill store
  bool has_writes = false;              // in the spill store
};
// Whether the two may be opened together. If not, an error of one sentence that says what to do.
rocksdb::Status check_pairing(const Pairing& pairing);

}  // namespace spillway::spill
