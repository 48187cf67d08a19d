"""Run directories: written beside their place, renamed when whole, read again; nothing here measures."""
