# Writes a header with a digest of sources: cmake -DOUT=FILE -DROOT=DIRECTORY -P sources_stamp.cmake
# Of all that a loaded engine and its program share in memory (engine/modules.h).
file(GLOB sources ${ROOT}/base/*.h ${ROOT}/ssd/*.h ${ROOT}/ssd/*.cc ${ROOT}/device/*.h ${ROOT}/device/*.cc ${ROOT}/fs/*.h
     ${ROOT}/fs/*.cc ${ROOT}/fs/rocksdb/*.h ${ROOT}/fs/rocksdb/*.cc ${ROOT}/engine/*.h ${ROOT}/engine/*.cc)
list(SORT sources)
set(digests "")
foreach(source ${sources})
  file(SHA256 ${source} digest)
  string(APPEND digests "${digest}")
endforeach()
string(SHA256 stamp "${digests}")
set(text "#pragma once\n#define SPILLWAY_SOURCES_STAMP \"${stamp}\"\n")
set(present "")
if(EXISTS ${OUT})
  file(READ ${OUT} present)
endif()
if(NOT present STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
