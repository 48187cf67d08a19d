#!/bin/sh
# A compiler launcher: sources are checked and nothing is generated; headers that CMake compiles ahead are compiled.
case " $* " in
  *" -x c++-header "*) exec "$@" ;;
  *) exec "$@" -fsyntax-only ;;
esac
