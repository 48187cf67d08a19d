"""Run directories: written under a hidden name, renamed when whole, read again. Nothing here measures."""
