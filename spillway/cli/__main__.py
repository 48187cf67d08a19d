"""`python -m spillway.cli` is the command too."""

from spillway.cli import main

if __name__ == "__main__":
    main()
