#include "accelerate/preload/rocksdb_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace spillway::accelerate {
namespace {

// std::string rocksdb::GetRocksVersionAsString(bool with_patch)
constexpr const char* kVersionFunction = "_ZN7rocksdb23GetRocksVersionAsStringB5cxx11Eb";
using VersionFunction = std::string (*)(bool);

std::vector<std::string> loaded_files() {
  std::vector<std::string> files;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
          static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &files);
  return files;
}

// The definition in any loaded file but the accelerator's own.
void* find_in_loaded_files(const char* symbol) {
  const std::string own = file_of(reinterpret_cast<const void*>(&find_in_loaded_files));
  for (const std::string& file : loaded_files()) {
    if (file == own) continue;
    void* const handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const found = ::dlsym(handle, symbol);
    ::dlclose(handle);  // it was loaded before and stays so
    if (found != nullptr && file_of(found) == file) return found;
  }
  return nullptr;
}

void* find_next(const char* symbol) {
  void* const found = ::dlsym(RTLD_NEXT, symbol);
  return found != nullptr ? found : find_in_loaded_files(symbol);
}

}  // namespace

std::string file_of(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string symbol_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_sname != nullptr ? info.dli_sname : "";
}

std::optional<RocksdbLibrary> find_rocksdb() {
  void* const found = find_next(kVersionFunction);
  if (found == nullptr) return std::nullopt;
  RocksdbLibrary library;
  library.path = file_of(found);
  library.handle = ::dlopen(library.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  library.version = reinterpret_cast<VersionFunction>(found)(/*with_patch=*/false);
  return library;
}

void* next_definition(const std::string& symbol) {
  void* const found = find_next(symbol.c_str());
  if (found == nullptr) {
    (void)std::fprintf(stderr, "spillway: this program calls %s, which no library that it has loaded defines\n",
                       symbol.c_str());
    std::abort();
  }
  return found;
}

}  // namespace spillway::accelerate
