"""``python -m kvgauge``."""

from kvgauge.cli import main

if __name__ == "__main__":
    main()
