// What was done to the files under a directory, in the order in which it was done: enough to say, after the process is
// dead, what a drive could hold if its power had gone then.
//
// Kept beside the directory `root`, in `root`.drive: the journal (events, appended with one write each, so that a
// process that is killed leaves it whole but for its last event) and, under ids/, a hard link to every file there ever
// was, so that what was deleted or renamed over can come back. It is meant for tests on a tmpfs and grows until the
// directory is removed.
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
    unlink,          // `path` names nothing
    rename,          // what `path` named is now named `to`
    write,           // `length` bytes at `offset` of `id`; a truncation is a write of none that takes bytes away
    sync,            // all writes to `id` among the first `length` events are durable: those before it began
    sync_directory,  // all links, unlinks and renames in directory `path` so far are durable
  };
  Kind kind = Kind::link;
  FileId id = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t size_before = 0;
  std::string path{};    // relative to the root
  std::string to{};      // likewise
  std::string before{};  // of a write: the bytes it replaces or takes away
};

// The files as a program sees them.
struct FileTable {
  std::map<std::string, FileId> names;
  std::map<FileId, std::uint64_t> sizes;
  FileId next_id = 1;

  void apply(const DriveEvent& event);
  std::uint64_t used_bytes() const;  // of files that have a name
};

std::string drive_directory(const std::string& root);
std::string path_of_file(const std::string& root, FileId id);
// The name of the directory in which a name is: empty for the root itself.
std::string parent_of(const std::string& name);
// False for what RocksDB writes past its file system: its locks and its info logs.
bool holds_data(const std::string& name);

// All events of the journal, but the last where it is not whole; and how many bytes they are.
Result<std::vector<DriveEvent>> read_journal(const std::string& root, std::uint64_t* whole_bytes = nullptr);

// Not thread-safe.
class DriveJournal {
 public:
  // Goes on with the journal beside `root`, and takes note of what a killed process did and could not write down. Where
  // there is none, begins one: all files under `root` count as durable.
  static Result<DriveJournal> open(const std::string& root);

  DriveJournal(DriveJournal&& other) noexcept;
  DriveJournal& operator=(DriveJournal&&) = delete;
  DriveJournal(const DriveJournal&) = delete;
  DriveJournal& operator=(const DriveJournal&) = delete;
  ~DriveJournal();

  const FileTable& files() const { return files_; }
  std::uint64_t events() const { return events_; }
  Status note(const DriveEvent& event);
  // Notes that `name`, which exists, is a new file. Returns its id.
  Result<FileId> note_created(const std::string& name);
  // Notes a write that is about to be done, with the bytes it is going to replace.
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
