"""`python -m e2e.stories.dns`."""

from e2e.stories.dns.command import main

if __name__ == "__main__":
    main()
