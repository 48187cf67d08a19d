// RocksDB's build asks each plugin for a function that registers what option strings may name. The library has its own
// Open and nothing that an option string could name.
#include <rocksdb/utilities/object_registry.h>

#include <string>

// Returns how many objects it has registered.
int spillway_register(rocksdb::ObjectLibrary& library, const std::string& argument);  // RocksDB declares it itself

int spillway_register(rocksdb::ObjectLibrary& /*library*/, const std::string& /*argument*/) { return 0; }
