// The process as it began: a program may change its working directory and its standard files before it opens a
// database.
#pragma once

#include <string>

namespace spillway::accelerate {

// The working directory when the process began; empty if it had none.
const std::string& first_directory();

// The directory of this library, absolute, as it was when the process began; with a slash at its end.
const std::string& library_directory();

// One line on standard error. Nothing where file descriptor 2 has become a file of the program's own: who closes it
// gives its number to the next file that is opened, a database's log for example. Taken for standard error are the file
// that it was at first, a terminal or another character device, a file that is appended to, and what is standard output
// too.
void write_to_standard_error(const std::string& line);

}  // namespace spillway::accelerate
