// A file with the drive's state.
//
//   "SPILLWAY-DRIVE\0\0", version (u32), zero (u32), payload length (u64), payload (Ssd::save), CRC-32 of all before
//   (u32)
//
// Little-endian, as every machine on which this builds. The file is written under another name, synced and renamed, so
// that the name always has a complete state, the old or the new one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "device/emulated/emulated.h"

namespace spillway::device {
namespace {

constexpr std::array<char, 16> kMagic = {'S', 'P', 'I', 'L', 'L', 'W', 'A', 'Y', '-', 'D', 'R', 'I', 'V', 'E', 0, 0};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;  // few system calls, little memory

struct Header {
  std::array<char, 16> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t zero = 0;
};
static_assert(sizeof(Header) == 24);
constexpr std::size_t kTrailerBytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }
  bool close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

// Appends to a file through a buffer, and computes the CRC. After a failure it writes nothing more.
class Writer {
 public:
  explicit Writer(int descriptor) : descriptor_(descriptor) { buffer_.reserve(kBufferBytes); }

  bool write(const void* bytes, std::size_t size) {
    if (size == 0) return error_ == 0;  // an empty array may have a null address, which zlib takes as a reset
    const auto* next = static_cast<const unsigned char*>(bytes);
    crc_ = crc32_z(crc_, next, size);
    written_ += size;
    while (size > 0 && error_ == 0) {
      const std::size_t part = std::min(size, kBufferBytes - buffer_.size());
      buffer_.insert(buffer_.end(), next, next + part);
      next += part;
      size -= part;
      if (buffer_.size() == kBufferBytes) flush();
    }
    return error_ == 0;
  }

  bool flush() {
    std::size_t done = 0;
    while (done < buffer_.size() && error_ == 0) {
      const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
      if (n >= 0) {
        done += static_cast<std::size_t>(n);
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    buffer_.clear();
    return error_ == 0;
  }

  std::uint32_t crc() const { return static_cast<std::uint32_t>(crc_); }
  std::uint64_t written() const { return written_; }
  int error() const { return error_; }

 private:
  int descriptor_;
  std::vector<unsigned char> buffer_;
  uLong crc_ = crc32_z(0, nullptr, 0);
  std::uint64_t written_ = 0;
  int error_ = 0;
};

// Reads a file through a buffer.
class Reader {
 public:
  explicit Reader(int descriptor) : descriptor_(descriptor), buffer_(kBufferBytes) {}

  bool read(void* bytes, std::size_t size) {
    auto* next = static_cast<unsigned char*>(bytes);
    while (size > 0) {
      if (begin_ == end_ && !refill()) return false;
      const std::size_t part = std::min(size, end_ - begin_);
      std::memcpy(next, buffer_.data() + begin_, part);
      begin_ += part;
      next += part;
      size -= part;
    }
    return true;
  }

 private:
  bool refill() {
    ssize_t n = -1;
    while ((n = ::read(descriptor_, buffer_.data(), buffer_.size())) < 0 && errno == EINTR) {
    }
    begin_ = 0;
    end_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    return end_ > 0;
  }

  int descriptor_;
  std::vector<unsigned char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// A drive still programs its cache after the last command is complete. A state is that of an idle drive.
void settle(ssd::Ssd& ssd) {
  std::vector<ssd::Completion> none;
  while (const auto next = ssd.next_event()) ssd.advance(*next, none);
}

Status cannot_write(const std::string& path, int error) {
  return Status::error(error == EACCES || error == ENOENT || error == ENOTDIR || error == EISDIR || error == EROFS
                           ? Fault::bad_input
                           : Fault::io_error,
                       path + ": the drive's state cannot be written (" + std::strerror(error) +
                           "); name a file in a directory with room and permission to write");
}

// Returns an errno, or 0.
int write_all(ssd::Ssd& ssd, int descriptor) {
  Writer writer(descriptor);
  const Header header;
  writer.write(&header, sizeof header);
  ssd.save([&writer](const void* bytes, std::size_t size) { return writer.write(bytes, size); });
  const std::uint64_t payload_bytes = writer.written() - sizeof header;
  const std::uint32_t crc = writer.crc();
  writer.write(&payload_bytes, sizeof payload_bytes);
  writer.write(&crc, sizeof crc);
  if (!writer.flush()) return writer.error();
  return ::fsync(descriptor) == 0 ? 0 : errno;
}

// A name is durable when its directory is synced.
void sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const File file(::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) static_cast<void>(::fsync(file.get()));
}

// None, or why the file is not a complete state of this version.
std::optional<std::string> damage(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return std::string("cannot be examined (") + std::strerror(errno) + ")";
  if (!S_ISREG(status.st_mode)) return "is not a file";
  Reader reader(descriptor);
  Header header;
  if (!reader.read(&header, sizeof header) || header.magic != kMagic) return "is not a drive's state";
  if (header.version != kVersion)
    return "is a state of version " + std::to_string(header.version) + ", not " + std::to_string(kVersion);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  constexpr std::size_t frame = sizeof(Header) + kTrailerBytes;
  if (size < frame) return "is truncated";
  uLong crc = crc32_z(0, reinterpret_cast<const unsigned char*>(&header), sizeof header);
  std::vector<unsigned char> part(kBufferBytes);
  for (std::uint64_t left = size - frame; left > 0;) {
    const std::size_t n = std::min<std::uint64_t>(left, part.size());
    if (!reader.read(part.data(), n)) return "cannot be read to its end";
    crc = crc32_z(crc, part.data(), n);
    left -= n;
  }
  std::uint64_t payload_bytes = 0;
  std::uint32_t stored = 0;
  if (!reader.read(&payload_bytes, sizeof payload_bytes) || !reader.read(&stored, sizeof stored)) {
    return "cannot be read to its end";
  }
  if (payload_bytes != size - frame) return "is truncated";
  if (stored != crc) return "is damaged: its checksum does not fit";
  return std::nullopt;
}

}  // namespace

Status save_state(ssd::Ssd& ssd, const std::string& path) {
  settle(ssd);
  std::string temporary = path + ".XXXXXX";
  File file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return cannot_write(path, errno);
  int error = write_all(ssd, file.get());
  if (error == 0 && ::fchmod(file.get(), 0644) != 0) error = errno;
  if (!file.close() && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return cannot_write(path, error);
  }
  sync_directory_of(path);
  return {};
}

Status load_state(ssd::Ssd& ssd, const std::string& path) {
  const std::string mend = "; make it again with `spillway ssd precondition`";
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0)
    return Status::bad_input(path + ": the drive's state cannot be read (" + std::strerror(errno) + ")" + mend);
  // The whole file is checked before the drive reads any of it.
  if (const auto what = damage(file.get())) return Status::bad_input(path + ": " + *what + mend);
  if (::lseek(file.get(), sizeof(Header), SEEK_SET) < 0) return Status::io_error(path + ": " + std::strerror(errno));
  Reader reader(file.get());
  const auto refused = ssd.load([&reader](void* bytes, std::size_t size) { return reader.read(bytes, size); });
  if (refused) return Status::bad_input(path + ": " + *refused + mend);
  return {};
}

namespace {

Status no_state(const std::string& path, const DriveModel& drive) {
  return Status::bad_input(path + ": " + drive.name() +
                           " is a disk, which has no state to keep; choose initial.kind trimmed");
}

}  // namespace

Status save_state(DriveModel& drive, const std::string& path) {
  return drive.flash() != nullptr ? save_state(*drive.flash(), path) : no_state(path, drive);
}

Status load_state(DriveModel& drive, const std::string& path) {
  return drive.flash() != nullptr ? load_state(*drive.flash(), path) : no_state(path, drive);
}

}  // namespace spillway::device
