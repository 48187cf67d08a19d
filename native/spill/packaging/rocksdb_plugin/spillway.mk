# RocksDB's make reads this in its own build, with ROCKSDB_PLUGINS=spillway ROCKSDB_CXX_STANDARD=c++20. Its CMake build
# reads the lines of the sources and of the function. scripts/rocksdb_plugin.sh fills in the lists.
spillway_SOURCES = @SOURCES@
spillway_HEADERS = @HEADERS@
spillway_CXXFLAGS = -Iplugin/spillway
spillway_FUNC = spillway_register
