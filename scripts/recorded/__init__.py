"""What the docs show of recorded runs, made from runs/: `make docs` fills the marked blocks and draws the pictures."""
