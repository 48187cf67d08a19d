// The directory of a kept state, which is replaced as a whole or not at all.
//
//   PATH/kept.json   describes the state, with the size and CRC-32 of every file, and its own CRC-32
//   PATH/N/…         the files, in the generation that kept.json names; files never change after their creation
//   PATH/lock        held while a run uses the state: shared by runs that only start from it
//
// A new generation is written next to the old one. When all of it is durable, one rename of kept.json makes it the
// state. A run that fails or is killed before that leaves the old state. The next run that writes removes what it has
// left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

class KeptDirectory {
 public:
  enum class Use : std::uint8_t { start_from, replace };  // replace: and start from it as well

  // `key`: of the request, for messages ("kept.from").
  KeptDirectory(std::string key, std::string path) : key_(std::move(key)), path_(std::move(path)) {}
  // Removes a directory that was created and holds no state.
  ~KeptDirectory();
  KeptDirectory(const KeptDirectory&) = delete;
  KeptDirectory& operator=(const KeptDirectory&) = delete;

  // Locks the directory until this object is destroyed. Use::replace creates it if necessary. bad_input, with one
  // sentence: it is in use, or cannot be used.
  Status open(Use use);
  // kept.json, if intact and of this version. bad_input: there is none, it is damaged, or a file that it lists is
  // missing or has another size. REQUIRES: open()
  Result<Json> read();
  // Copies a file that read() has listed. bad_input if its contents have changed. REQUIRES: read()
  Status copy_out(const Json& entry, const std::string& target) const;
  // The same check without a copy.
  Status check(const Json& entry) const;
  std::string path_of(const Json& entry) const;

  // --- A new state. REQUIRES: open(Use::replace); in this order.
  Status begin();
  // The path at which the caller writes a file of its own, registered under `relative`.
  Result<std::string> new_file(const std::string& relative);
  Status add_written(const std::string& relative);
  // Adds a copy of `source`, or of all files below it.
  Status add_copy(const std::string& source, const std::string& relative);
  Status add_tree(const std::string& source, const std::string& relative);
  // Adds a file of another state. It shares the blocks if both are on one file system.
  Status add_kept(const KeptDirectory& from, const Json& entry);
  std::uint64_t added_bytes() const { return added_bytes_; }
  // Makes the new state replace the old one. `document`: its description, without files and checksums.
  Status commit(Json document);

  const std::string& path() const { return path_; }
  bool is_same_as(const KeptDirectory& other) const;

 private:
  Status refused(const std::string& what) const { return Status::bad_input(key_ + ": " + path_ + " " + what); }
  Status failed(const std::string& what, const std::string& path, int error) const;
  Status check_contents(const Json& entry, std::uint64_t bytes, std::uint32_t crc) const;
  void remove_others(std::uint64_t generation) const;
  std::string in_new(const std::string& relative) const;
  Status sync_directory(const std::string& path) const;
  Status sync_new() const;

  const std::string key_;
  const std::string path_;
  int lock_ = -1;
  Use use_ = Use::start_from;
  std::uint64_t generation_ = 0;  // the current generation; 0: none
  bool made_ = false;
  bool begun_ = false;
  Json files_ = Json::array();  // of the new state
  std::uint64_t added_bytes_ = 0;
};

}  // namespace spillway::tool
