#include "tool/run/kept_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/file_bytes.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;

constexpr const char* kFormat = "spillway-kept-1";
constexpr std::size_t kCopyBytes = std::size_t{1} << 20;  // few system calls, little memory

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

struct Contents {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

bool write_all(int file, const unsigned char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(file, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// Reads all of `from`, and writes it to `to` if that is a file (>= 0). None on failure, with errno set.
std::optional<Contents> read_through(int from, int to) {
  Contents contents;
  uLong crc = crc32_z(0, nullptr, 0);
  std::vector<unsigned char> buffer(kCopyBytes);
  for (;;) {
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    crc = crc32_z(crc, buffer.data(), static_cast<std::size_t>(n));
    contents.bytes += static_cast<std::uint64_t>(n);
    if (to >= 0 && !write_all(to, buffer.data(), static_cast<std::size_t>(n))) return std::nullopt;
  }
  contents.crc = static_cast<std::uint32_t>(crc);
  return contents;
}

std::uint32_t crc_of(const std::string& text) {
  return static_cast<std::uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

Json entry_of(const std::string& relative, const Contents& contents) {
  return {{"path", relative}, {"bytes", contents.bytes}, {"crc32", contents.crc}};
}

// Whether the path stays inside its directory. A kept state has no others.
bool stays_inside(const std::string& relative) {
  const filesystem::path path(relative);
  if (path.empty() || path.is_absolute()) return false;
  for (const auto& part : path) {
    if (part == "..") return false;
  }
  return true;
}

bool is_entry(const Json& entry) {
  return entry.is_object() && entry.contains("path") && entry["path"].is_string() && entry.contains("bytes") &&
         entry["bytes"].is_number_unsigned() && entry.contains("crc32") && entry["crc32"].is_number_unsigned() &&
         stays_inside(entry["path"].get<std::string>());
}

}  // namespace

KeptDirectory::~KeptDirectory() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (use_ == Use::replace) {
    if (begun_) remove_others(generation_);
    if (made_ && !filesystem::exists(path_ + "/kept.json", ignored)) {
      ::unlink((path_ + "/lock").c_str());
      ::rmdir(path_.c_str());  // does nothing if the directory is not empty
    }
  }
  ::close(lock_);
}

Status KeptDirectory::failed(const std::string& what, const std::string& path, int error) const {
  const bool input = error == EACCES || error == ENOTDIR || error == EROFS;
  return Status::error(input ? Fault::bad_input : Fault::io_error,
                       key_ + ": " + path + " cannot be " + what + " (" + std::strerror(error) +
                           "); make room or give permission, or name another directory");
}

bool KeptDirectory::is_same_as(const KeptDirectory& other) const {
  std::error_code ignored;
  return filesystem::weakly_canonical(path_, ignored) == filesystem::weakly_canonical(other.path_, ignored);
}

Status KeptDirectory::open(Use use) {
  use_ = use;
  std::error_code failure;
  if (use == Use::replace) {
    filesystem::create_directories(path_, failure);
    if (failure) return refused("cannot be made: " + failure.message() + "; name another directory");
    const bool is_ours =
        filesystem::exists(path_ + "/lock", failure) || filesystem::exists(path_ + "/kept.json", failure);
    if (!is_ours && !filesystem::is_empty(path_, failure))
      return refused("holds something that is no kept state; name another directory");
  } else if (!filesystem::exists(path_ + "/kept.json", failure)) {
    return refused("holds no kept state; make it first, with a run that keeps it there");
  }
  made_ = !filesystem::exists(path_ + "/lock", failure);
  lock_ = ::open((path_ + "/lock").c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0644);
  if (lock_ < 0) return failed("locked", path_, errno);
  struct stat status {};
  const int how = (use == Use::replace ? LOCK_EX : LOCK_SH) | LOCK_NB;
  if (::flock(lock_, how) != 0 || ::fstat(lock_, &status) != 0 || status.st_nlink == 0) {
    ::close(std::exchange(lock_, -1));  // another run has it: nothing is removed
    return refused("is in use by another run; wait for its end or name another");
  }
  return {};
}

Result<Json> KeptDirectory::read() {
  const std::string path = path_ + "/kept.json";
  const std::string mend = "; make the state again, or remove it";
  std::string text;
  if (!read_file_bytes(path, &text))
    return refused("holds no kept state; make it first, with a run that keeps it there");
  Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("format"))
    return refused("is damaged: kept.json is no such document" + mend);
  if (document["format"] != kFormat)
    return refused("is of format " + document["format"].dump() + ", and this version reads \"" + kFormat + "\"" + mend);
  const Json stated = document.contains("crc32") ? document["crc32"] : Json(nullptr);
  document.erase("crc32");
  if (stated != crc_of(document.dump())) return refused("is damaged: kept.json was changed or is not whole" + mend);
  if (!document["generation"].is_number_unsigned() || !document["files"].is_array())
    return refused("is damaged: kept.json names no files" + mend);
  generation_ = document["generation"].get<std::uint64_t>();
  for (const Json& entry : document["files"]) {
    if (!is_entry(entry)) return refused("is damaged: kept.json lists what is no file" + mend);
    std::error_code failure;
    const std::uint64_t bytes = filesystem::file_size(path_of(entry), failure);
    const std::string name = entry["path"].get<std::string>();
    if (failure) return refused("is damaged: its file " + name + " is missing" + mend);
    if (bytes != entry["bytes"]) {
      return refused("is damaged: its file " + name + " has " + std::to_string(bytes) + " bytes, not " +
                     entry["bytes"].dump() + mend);
    }
  }
  return document;
}

std::string KeptDirectory::path_of(const Json& entry) const {
  return path_ + "/" + std::to_string(generation_) + "/" + entry["path"].get<std::string>();
}

Status KeptDirectory::copy_out(const Json& entry, const std::string& target) const {
  std::error_code ignored;
  filesystem::create_directories(filesystem::path(target).parent_path(), ignored);
  const File from(::open(path_of(entry).c_str(), O_RDONLY | O_CLOEXEC));
  if (from.get() < 0) return failed("read", path_of(entry), errno);
  const File to(::open(target.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
  if (to.get() < 0) return failed("written", target, errno);
  const auto contents = read_through(from.get(), to.get());
  if (!contents) return failed("copied to " + target, path_of(entry), errno);
  return check_contents(entry, contents->bytes, contents->crc);
}

Status KeptDirectory::check(const Json& entry) const {
  const File from(::open(path_of(entry).c_str(), O_RDONLY | O_CLOEXEC));
  const auto contents = from.get() < 0 ? std::nullopt : read_through(from.get(), -1);
  if (!contents) return failed("read", path_of(entry), errno);
  return check_contents(entry, contents->bytes, contents->crc);
}

Status KeptDirectory::check_contents(const Json& entry, std::uint64_t bytes, std::uint32_t crc) const {
  if (bytes == entry["bytes"] && crc == entry["crc32"]) return {};
  return refused("is damaged: its file " + entry["path"].get<std::string>() +
                 " was changed; make the state again, or remove it");
}

std::string KeptDirectory::in_new(const std::string& relative) const {
  return path_ + "/" + std::to_string(generation_ + 1) + "/" + relative;
}

Status KeptDirectory::begin() {
  std::string text;  // a damaged state is replaced like any other
  const Json old = read_file_bytes(path_ + "/kept.json", &text) ? Json::parse(text, nullptr, false) : Json();
  if (old.is_object() && old.contains("generation") && old["generation"].is_number_unsigned())
    generation_ = old["generation"].get<std::uint64_t>();
  begun_ = true;
  remove_others(generation_);
  std::error_code failure;
  filesystem::create_directories(in_new(""), failure);
  return failure ? failed("made", in_new(""), failure.value()) : Status::ok();
}

Result<std::string> KeptDirectory::new_file(const std::string& relative) {
  std::error_code failure;
  const std::string path = in_new(relative);
  filesystem::create_directories(filesystem::path(path).parent_path(), failure);
  if (failure) return failed("written", path, failure.value());
  return path;
}

Status KeptDirectory::add_written(const std::string& relative) {
  const File file(::open(in_new(relative).c_str(), O_RDONLY | O_CLOEXEC));
  const auto contents = file.get() < 0 ? std::nullopt : read_through(file.get(), -1);
  if (!contents || ::fsync(file.get()) != 0) return failed("read", in_new(relative), errno);
  files_.push_back(entry_of(relative, *contents));
  added_bytes_ += contents->bytes;
  return {};
}

Status KeptDirectory::add_copy(const std::string& source, const std::string& relative) {
  auto path = new_file(relative);
  if (!path) return path.status();
  const File from(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  if (from.get() < 0) return failed("read", source, errno);
  const File to(::open(path->c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
  if (to.get() < 0) return failed("written", *path, errno);
  const auto contents = read_through(from.get(), to.get());
  if (!contents || ::fsync(to.get()) != 0) return failed("written", *path, errno);
  files_.push_back(entry_of(relative, *contents));
  added_bytes_ += contents->bytes;
  return {};
}

Status KeptDirectory::add_tree(const std::string& source, const std::string& relative) {
  std::error_code failure;
  filesystem::recursive_directory_iterator entry(source, failure);
  for (; !failure && entry != filesystem::recursive_directory_iterator(); entry.increment(failure)) {
    if (!entry->is_regular_file(failure)) continue;
    const std::string inside = entry->path().lexically_relative(source).string();
    if (Status status = add_copy(entry->path().string(), relative + "/" + inside); !status) return status;
  }
  return failure ? failed("read", source, failure.value()) : Status::ok();
}

Status KeptDirectory::add_kept(const KeptDirectory& from, const Json& entry) {
  const std::string relative = entry["path"].get<std::string>();
  auto path = new_file(relative);
  if (!path) return path.status();
  if (::link(from.path_of(entry).c_str(), path->c_str()) != 0) return add_copy(from.path_of(entry), relative);
  files_.push_back(entry);
  added_bytes_ += entry["bytes"].get<std::uint64_t>();
  return {};
}

// A name is durable when its directory is synced.
Status KeptDirectory::sync_directory(const std::string& path) const {
  const File directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) return failed("synced", path, errno);
  return {};
}

// Syncs every directory of the new generation, and the directory that contains it.
Status KeptDirectory::sync_new() const {
  const filesystem::path top = in_new("");
  std::set<filesystem::path> directories{top.parent_path(), filesystem::path(path_)};
  for (const Json& entry : files_) {
    filesystem::path relative = filesystem::path(entry["path"].get<std::string>()).parent_path();
    for (; !relative.empty(); relative = relative.parent_path()) directories.insert(in_new(relative.string()));
  }
  for (const filesystem::path& directory : directories) {
    if (Status status = sync_directory(directory.string()); !status) return status;
  }
  return {};
}

Status KeptDirectory::commit(Json document) {
  Json whole = {{"format", kFormat}, {"generation", generation_ + 1}};
  whole.update(document);
  whole["files"] = files_;
  whole["crc32"] = crc_of(whole.dump());
  if (Status status = sync_new(); !status) return status;
  const std::string path = path_ + "/kept.json";
  const std::string beside = path + ".new";
  const std::string text = whole.dump(2) + "\n";
  const File file(::open(beside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644));
  if (file.get() < 0 || !write_all(file.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size()) ||
      ::fsync(file.get()) != 0 || ::rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside.c_str());
    return failed("written", path, error);
  }
  // Until the new name is durable, a loss of power may leave the old generation as the state.
  if (Status status = sync_directory(path_); !status) return status;
  ++generation_;
  remove_others(generation_);
  return {};
}

// Removes generations that are not the state: an earlier one, or one that a killed run has left.
void KeptDirectory::remove_others(std::uint64_t generation) const {
  std::error_code ignored;
  for (const auto& entry : filesystem::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_generation = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    if (is_generation && name != std::to_string(generation)) filesystem::remove_all(entry.path(), ignored);
  }
}

}  // namespace spillway::tool
