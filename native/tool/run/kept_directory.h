// Where a kept state lies: a directory that is replaced whole or not at all.
//
//   PATH/kept.json   what is kept, with the size and CRC-32 of every file, and its own CRC-32
//   PATH/N/…         the files, in a generation that kept.json names; files are never changed once they are there
//   PATH/lock        held while a run uses the state: shared by runs that only start from it
//
// A new generation is written beside the old one and becomes the state by one rename, of kept.json, once all of it is
// on the medium. A run that fails or is killed before leaves the old one; what it left is removed by the next that
// writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/protocol/events.h"

namespace spillway::tool {

class KeptDirectory {
 public:
  enum class Use : std::uint8_t { start_from, replace };  // replace: and to start from as well

  // `key`: of the request, in messages ("kept.from").
  KeptDirectory(std::string key, std::string path) : key_(std::move(key)), path_(std::move(path)) {}
  // A place that was made and holds no state is gone again.
  ~KeptDirectory();
  KeptDirectory(const KeptDirectory&) = delete;
  KeptDirectory& operator=(const KeptDirectory&) = delete;

  // Locks it until this object goes; for Use::replace it is made where it is not there. bad_input, with one sentence:
  // it is in use, or cannot be used.
  Status open(Use use);
  // kept.json, whole and of this version. bad_input: there is none, or it is damaged, or a file that it lists is
  // missing or has another size. REQUIRES: open()
  Result<Json> read();
  // Copies a file that read() has listed; bad_input when its contents are not what was kept. REQUIRES: read()
  Status copy_out(const Json& entry, const std::string& target) const;
  // The same without a copy.
  Status check(const Json& entry) const;
  std::string path_of(const Json& entry) const;

  // --- A new state. REQUIRES: open(Use::replace); in this order.
  Status begin();
  // Where the caller writes a file of its own, by its relative path, and that it has.
  Result<std::string> new_file(const std::string& relative);
  Status add_written(const std::string& relative);
  // A copy of `source`, or of all files below it.
  Status add_copy(const std::string& source, const std::string& relative);
  Status add_tree(const std::string& source, const std::string& relative);
  // A file of another state, as it is; it shares its blocks where both are on one file system.
  Status add_kept(const KeptDirectory& from, const Json& entry);
  std::uint64_t added_bytes() const { return added_bytes_; }
  // The new state takes the old one's place. `document`: what is kept, without files and checksums.
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
  std::uint64_t generation_ = 0;  // that is there; 0: none
  bool made_ = false;
  bool begun_ = false;
  Json files_ = Json::array();  // of the new state
  std::uint64_t added_bytes_ = 0;
};

}  // namespace spillway::tool
