#include "faults/drive_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/file_bytes.h"

namespace spillway::faults {

namespace {

namespace fs = std::filesystem;
using Kind = DriveEvent::Kind;

std::string journal_path(const std::string& root) { return drive_directory(root) + "/journal"; }

Status failed(const std::string& what, const std::string& path) {
  return Status::io_error(what + " " + path + ": " + std::strerror(errno));
}

// --- One event: length u32, checksum u64, then its fields in the order of the struct, strings with their length.

template <typename Number>
void put(std::string* to, Number number) {
  to->append(reinterpret_cast<const char*>(&number), sizeof number);
}
void put(std::string* to, const std::string& text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  *to += text;
}

template <typename Number>
bool take(std::string_view* from, Number* number) {
  if (from->size() < sizeof *number) return false;
  std::memcpy(number, from->data(), sizeof *number);
  from->remove_prefix(sizeof *number);
  return true;
}
bool take(std::string_view* from, std::string* text) {
  std::uint32_t length = 0;
  if (!take(from, &length) || from->size() < length) return false;
  text->assign(from->substr(0, length));
  from->remove_prefix(length);
  return true;
}

// FNV-1a. It only distinguishes a torn event from an intact one.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return sum;
}

std::string encode(const DriveEvent& event) {
  std::string fields;
  put(&fields, event.kind);
  put(&fields, event.id);
  put(&fields, event.offset);
  put(&fields, event.length);
  put(&fields, event.size_before);
  put(&fields, event.path);
  put(&fields, event.to);
  put(&fields, event.before);
  std::string framed;
  put(&framed, static_cast<std::uint32_t>(fields.size()));
  put(&framed, checksum(fields));
  return framed + fields;
}

bool decode(std::string_view* from, DriveEvent* event) {
  std::uint32_t length = 0;
  std::uint64_t sum = 0;
  std::string_view rest = *from;
  if (!take(&rest, &length) || !take(&rest, &sum) || rest.size() < length) return false;
  std::string_view fields = rest.substr(0, length);
  if (checksum(fields) != sum) return false;
  from->remove_prefix(from->size() - rest.size() + length);
  return take(&fields, &event->kind) && take(&fields, &event->id) && take(&fields, &event->offset) &&
         take(&fields, &event->length) && take(&fields, &event->size_before) && take(&fields, &event->path) &&
         take(&fields, &event->to) && take(&fields, &event->before);
}

// Names of all data files under the root, with the host's inode number of each.
std::map<std::string, ino_t> files_under(const std::string& root) {
  std::map<std::string, ino_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(root, ignored)) {
    struct stat attributes {};
    const std::string path = entry.path().string();
    if (stat(path.c_str(), &attributes) != 0 || !S_ISREG(attributes.st_mode)) continue;
    const std::string name = path.substr(root.size() + 1);
    if (holds_data(name)) found.emplace(name, attributes.st_ino);
  }
  return found;
}

}  // namespace

std::string drive_directory(const std::string& root) { return root + ".drive"; }

std::string path_of_file(const std::string& root, FileId id) {
  return drive_directory(root) + "/ids/" + std::to_string(id);
}

std::string parent_of(const std::string& name) { return fs::path(name).parent_path().string(); }

bool holds_data(const std::string& name) {
  const std::string last = name.substr(name.rfind('/') + 1);
  return last != "LOCK" && last != "LOG" && !last.starts_with("LOG.old");
}

void FileTable::apply(const DriveEvent& event) {
  switch (event.kind) {
    case Kind::link:
      names[event.path] = event.id;
      sizes.try_emplace(event.id, 0);
      next_id = std::max(next_id, event.id + 1);
      break;
    case Kind::unlink:
      names.erase(event.path);
      break;
    case Kind::rename:
      if (const auto found = names.find(event.path); found != names.end()) {
        const FileId id = found->second;
        names.erase(found);
        names[event.to] = id;
      }
      break;
    case Kind::write:
      sizes[event.id] = event.length == 0 ? event.offset : std::max(event.size_before, event.offset + event.length);
      break;
    case Kind::sync:
    case Kind::sync_directory:
      break;
  }
}

std::uint64_t FileTable::used_bytes() const {
  std::set<FileId> named;
  for (const auto& [name, id] : names) named.insert(id);
  std::uint64_t bytes = 0;
  for (const FileId id : named) {
    if (const auto found = sizes.find(id); found != sizes.end()) bytes += found->second;
  }
  return bytes;
}

Result<std::vector<DriveEvent>> read_journal(const std::string& root, std::uint64_t* whole_bytes) {
  std::string bytes;
  if (!read_file_bytes(journal_path(root), &bytes)) return failed("cannot read", journal_path(root));
  std::vector<DriveEvent> events;
  std::string_view rest = bytes;
  for (DriveEvent event; decode(&rest, &event); event = DriveEvent()) events.push_back(std::move(event));
  if (whole_bytes != nullptr) *whole_bytes = bytes.size() - rest.size();
  return events;
}

Result<DriveJournal> DriveJournal::open(const std::string& root) {
  std::error_code failure;
  fs::create_directories(root, failure);
  fs::create_directories(drive_directory(root) + "/ids", failure);
  const bool old = fs::exists(journal_path(root));
  const int fd = ::open(journal_path(root).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return failed("cannot write", journal_path(root));
  DriveJournal journal(root, fd);
  if (Status status = old ? journal.reconcile() : journal.begin(); !status) return status;
  return journal;
}

DriveJournal::DriveJournal(DriveJournal&& other) noexcept
    : root_(std::move(other.root_)),
      fd_(std::exchange(other.fd_, -1)),
      files_(std::move(other.files_)),
      events_(other.events_) {}

DriveJournal::~DriveJournal() {
  if (fd_ >= 0) ::close(fd_);
}

Status DriveJournal::note(const DriveEvent& event) {
  const std::string bytes = encode(event);
  if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return failed("cannot write", journal_path(root_));
  }
  files_.apply(event);
  ++events_;
  return {};
}

Result<FileId> DriveJournal::note_created(const std::string& name) {
  const FileId id = files_.next_id;
  const std::string path = root_ + "/" + name;
  if (::link(path.c_str(), path_of_file(root_, id).c_str()) != 0) return failed("cannot link", path);
  if (Status status = note({.kind = Kind::link, .id = id, .path = name}); !status) return status;
  files_.sizes[id] = 0;
  return id;
}

Status DriveJournal::note_write(FileId id, std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return {};
  return note_change(id, offset, length, std::min(files_.sizes[id], offset + length));
}

Status DriveJournal::note_truncation(FileId id, std::uint64_t size) {
  const std::uint64_t old_size = files_.sizes[id];
  return size < old_size ? note_change(id, size, 0, old_size) : note_write(id, old_size, size - old_size);
}

// The bytes from `offset` to `replaced_to` are about to be replaced or removed.
Status DriveJournal::note_change(FileId id, std::uint64_t offset, std::uint64_t length, std::uint64_t replaced_to) {
  DriveEvent event{.kind = Kind::write, .id = id, .offset = offset, .length = length, .size_before = files_.sizes[id]};
  if (offset < replaced_to) {
    std::ifstream file(path_of_file(root_, id), std::ios::binary);
    event.before.resize(replaced_to - offset);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(event.before.data(), static_cast<std::streamsize>(event.before.size()));
    event.before.resize(static_cast<std::size_t>(file.gcount()));
  }
  return note(event);
}

Status DriveJournal::begin() {
  std::set<std::string> directories;
  for (const auto& [name, number] : files_under(root_)) {
    Result<FileId> id = note_created(name);
    if (!id) return id.status();
    std::error_code failure;
    if (Status status = note_write(*id, 0, fs::file_size(root_ + "/" + name, failure)); !status) return status;
    if (Status status = note({.kind = Kind::sync, .id = *id, .length = events_}); !status) return status;
    directories.insert(parent_of(name));
  }
  for (const std::string& directory : directories) {
    if (Status status = note({.kind = Kind::sync_directory, .path = directory}); !status) return status;
  }
  return {};
}

// A killed process may have done something that it could not record any more (links, renames, deletions), or have
// recorded something that it could not do any more (a write).
Status DriveJournal::reconcile() {
  std::uint64_t whole_bytes = 0;
  Result<std::vector<DriveEvent>> events = read_journal(root_, &whole_bytes);
  if (!events) return events.status();
  if (ftruncate(fd_, static_cast<off_t>(whole_bytes)) != 0) return failed("cannot cut", journal_path(root_));
  for (const DriveEvent& event : *events) files_.apply(event);
  events_ = events->size();

  std::map<ino_t, FileId> known;
  for (const auto& [id, size] : files_.sizes) {
    struct stat attributes {};
    if (stat(path_of_file(root_, id).c_str(), &attributes) != 0) continue;
    known.emplace(attributes.st_ino, id);
    files_.sizes[id] = static_cast<std::uint64_t>(attributes.st_size);
  }
  const std::map<std::string, ino_t> present = files_under(root_);
  for (const auto& [name, id] : std::map(files_.names)) {
    if (present.contains(name)) continue;
    if (Status status = note({.kind = Kind::unlink, .path = name}); !status) return status;
  }
  for (const auto& [name, number] : present) {
    const auto found = known.find(number);
    if (found == known.end()) {
      std::error_code ignored;  // a link that was created but not recorded
      fs::remove(path_of_file(root_, files_.next_id), ignored);
      if (Result<FileId> id = note_created(name); !id) return id.status();
    } else if (const auto named = files_.names.find(name);
               named == files_.names.end() || named->second != found->second) {
      if (Status status = note({.kind = Kind::link, .id = found->second, .path = name}); !status) return status;
    }
  }
  return {};
}

}  // namespace spillway::faults
