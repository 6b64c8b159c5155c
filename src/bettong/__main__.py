"""`python -m bettong`, the same as `bettong`."""

from bettong.cli.main import main

if __name__ == "__main__":
    main()
