"""Plans: TOML read, completed from one table of keys, checked, and resolved into arms."""
