# cpack -G DEB: the library as a Debian package, libspillway-dev. It is for one minor version of RocksDB, so it depends on
# that one. Read by the top CMakeLists.txt.
set(CPACK_PACKAGE_NAME spillway)
set(CPACK_PACKAGE_VENDOR Spillway)
set(CPACK_PACKAGE_CONTACT "Spillway <spillway@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "RocksDB whose writes go round its stalls (development files)")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL library)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libspillway-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
    "librocksdb-dev (>= ${rocksdb_MAJOR}.${rocksdb_MINOR}), librocksdb-dev (<< ${rocksdb_MAJOR}.${rocksdb_NEXT_MINOR}~)")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/libspillway-dev RENAME copyright COMPONENT library)
include(CPack)
