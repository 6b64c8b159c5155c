"""`python -m bettong`, the same as `bettong`."""

from bettong.garbage import CollectionPaused

with CollectionPaused():  # what is loaded stays
    from bettong.cli.main import main

if __name__ == "__main__":
    main()
