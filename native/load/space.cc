#include "load/space.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace spillway::load {

std::uint64_t directory_bytes(const std::string& path) {
  constexpr std::uint64_t kStatBlockBytes = 512;  // POSIX does not define it; Linux's stat(2) does
  std::uint64_t sum = 0;
  std::error_code failure;
  std::filesystem::recursive_directory_iterator entry(path, failure);
  for (; !failure && entry != std::filesystem::recursive_directory_iterator(); entry.increment(failure)) {
    struct stat facts {};
    if (::lstat(entry->path().c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
      sum += static_cast<std::uint64_t>(facts.st_blocks) * kStatBlockBytes;
    }
  }
  return sum;
}

}  // namespace spillway::load
