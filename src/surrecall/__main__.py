"""`python -m surrecall`."""

from surrecall._cli import main

if __name__ == "__main__":
    main()
