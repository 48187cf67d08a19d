// The RocksDB that this process has loaded, found without needing one: the preloaded library is also loaded into
// programs that have none.
#pragma once

#include <optional>
#include <string>

namespace spillway::accelerate {

struct RocksdbLibrary {
  void* handle = nullptr;  // of dlopen
  std::string path;
  std::string version;  // "7.8"
};

// A library of the program, or one that was loaded at run time and keeps its symbols to itself (Python's ctypes).
std::optional<RocksdbLibrary> find_rocksdb();

// The name of the exported function at this address.
std::string symbol_of(const void* function);
// The definition of the symbol that the program would have without this library. Ends the process if there is none: the
// program called it.
void* next_definition(const std::string& symbol);
// The file that has this address; empty if none has.
std::string file_of(const void* address);

}  // namespace spillway::accelerate
