// The changes to the files under a directory, in their order. They suffice to compute, after the process has died, what
// a drive could contain if its power had failed then.
//
// Kept in `root`.drive, next to the directory `root`: the journal (events, each appended with one write, so that a
// killed process leaves at most its last event incomplete) and, under ids/, a hard link to every file that ever
// existed, so that deleted and replaced files can be restored. For tests on a tmpfs. It grows until the directory is
// removed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace spillway::faults {

using FileId = std::uint64_t;

struct DriveEvent {
  enum class Kind : std::uint8_t {
    link,            // `path` names file `id` from now on: created, or linked
    unlink,          // `path` is removed
    rename,          // the file named `path` is now named `to`
    write,           // `length` bytes at `offset` of `id`; a truncation is an empty write that removes bytes
    sync,            // all writes to `id` among the first `length` events are durable: those before it began
    sync_directory,  // all links, unlinks and renames in directory `path` so far are durable
  };
  Kind kind = Kind::link;
  FileId id = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t size_before = 0;
  std::string path{};    // relative to the root
  std::string to{};      // relative to the root
  std::string before{};  // of a write: the bytes that it replaces or removes
};

// The files as a running program sees them.
struct FileTable {
  std::map<std::string, FileId> names;
  std::map<FileId, std::uint64_t> sizes;
  FileId next_id = 1;

  void apply(const DriveEvent& event);
  std::uint64_t used_bytes() const;  // of files that have a name
};

std::string drive_directory(const std::string& root);
std::string path_of_file(const std::string& root, FileId id);
// The directory part of a name; empty for the root itself.
std::string parent_of(const std::string& name);
// False for files that RocksDB writes past its FileSystem: its locks and its info logs.
bool holds_data(const std::string& name);

// All events of the journal, except an incomplete last one. Sets `whole_bytes` to their length.
Result<std::vector<DriveEvent>> read_journal(const std::string& root, std::uint64_t* whole_bytes = nullptr);

// Not thread-safe.
class DriveJournal {
 public:
  // Continues the journal of `root`, and adds what a killed process did without recording it. If there is none, begins
  // one: all files under `root` count as durable.
  static Result<DriveJournal> open(const std::string& root);

  DriveJournal(DriveJournal&& other) noexcept;
  DriveJournal& operator=(DriveJournal&&) = delete;
  DriveJournal(const DriveJournal&) = delete;
  DriveJournal& operator=(const DriveJournal&) = delete;
  ~DriveJournal();

  const FileTable& files() const { return files_; }
  std::uint64_t events() const { return events_; }
  Status note(const DriveEvent& event);
  // Records that `name`, which exists, is a new file. Returns its id.
  Result<FileId> note_created(const std::string& name);
  // Records a write before it is done, with the bytes that it will replace.
  Status note_write(FileId id, std::uint64_t offset, std::uint64_t length);
  Status note_truncation(FileId id, std::uint64_t size);

 private:
  DriveJournal(std::string root, int fd) : root_(std::move(root)), fd_(fd) {}
  Status begin();
  Status reconcile();
  Status note_change(FileId id, std::uint64_t offset, std::uint64_t length, std::uint64_t replaced_to);

  std::string root_;
  int fd_;
  FileTable files_;
  std::uint64_t events_ = 0;
};

}  // namespace spillway::faults
